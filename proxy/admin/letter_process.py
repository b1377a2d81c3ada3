"""The process that reads dead letters for the web UI, groups them and validates them against the policies in force.

Its libraries parse data from unknown clients. A separate process can be stopped, and takes no processor time from the
proxy's event loop. It prints JSON, one line for each intermediate result. Only the last line counts, so a timeout loses
no results found before it.
"""

import json
import os
import pickle
import resource
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sluicegate.config.loading import Loaded
from sluicegate.dead_letters.cluster import Cluster, ClusterUnavailable, Range, ranges_of
from sluicegate.dead_letters.formats import LetterReader
from sluicegate.dead_letters.groups import Group, LetterGroups, ids_of
from sluicegate.dead_letters.letter import Letter, ReadLetter
from sluicegate.dead_letters.mapped_format import mapped_format
from sluicegate.dead_letters.reading import read_records
from sluicegate.dead_letters.survey import survey_topic
from sluicegate.dead_letters.verdict_counts import VerdictCounts
from sluicegate.proxy.network.tls.contexts import MemoryFiles
from sluicegate.proxy.reload.letter_groups import group_json
from sluicegate.proxy.reload.letter_policies import LetterPolicies
from sluicegate.proxy.writing.topic_writer import client_settings
from sluicegate.validation.rules.rule import Outage, RuleUnusable

MOST_LETTERS = 10_000
MOST_GROUPS = 100
_MOST_BYTES = 64 << 20
_SURVEYED = 100
_MOST_MEMORY = 4 << 30  # address space, most of which the libraries' threads never use
_LOW_PRIORITY = 5

Lines = Iterator[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class LetterQuestion:
    """What to read: one topic or, if `topic` is None, the newest records of each configured topic.

    The process ends after `seconds`.
    """

    loaded: Loaded
    topic: str | None
    seconds: int


class LetterDesk:
    """Reads dead letters with the login of `upstream`, at most until `until` (s, monotonic)."""

    def __init__(self, cluster: Cluster, loaded: Loaded, until: float) -> None:
        self._cluster = cluster
        self._loaded = loaded
        self._until = until
        self._read_letter: ReadLetter = LetterReader(
            [mapped_format(entry) for entry in loaded.config.dead_letter_topics]
        ).read
        self._topics = cluster.topics()
        self._policies = LetterPolicies(loaded, self._topics)

    def survey(self) -> Lines:
        """Yield the topics of `admin.dead_letters` that have been read so far, after each topic."""
        rows: list[dict[str, Any]] = []
        for topic in self._loaded.config.admin.dead_letters:
            rows.append(self._row(topic))
            yield {"topics": rows}

    def _row(self, topic: str) -> dict[str, Any]:
        if topic not in self._topics:
            return {"topic": topic, "problem": "the topic does not exist, or the proxy's login may not describe it"}
        consumer = self._cluster.consumer()
        try:
            found = survey_topic(consumer, topic, self._topics[topic], _SURVEYED, self._read_letter)
        except ClusterUnavailable as error:
            return {"topic": topic, "problem": str(error)}
        finally:
            consumer.close()
        if found is None:
            return {"topic": topic, "problem": None, "records": 0}
        return {
            "topic": topic,
            "problem": None,
            "records": found.records,
            "read": found.sampled,
            "letters": len(found.letters),
            "formats": found.formats,
            "oldest_ms": found.oldest,
            "newest_ms": found.newest,
            "from_topics": dict(found.sources),
        }

    def groups(self, topic: str) -> Lines:
        """Yield the groups of a topic's newest letters, first without verdicts, then with them."""
        if topic not in self._topics:
            raise ClusterUnavailable(f"{topic}: the topic does not exist, or the proxy's login may not describe it")
        letters, total, others = self._newest(topic)
        counted = LetterGroups()
        for letter in letters:
            counted.add(letter)
        listed = counted.ordered()
        content: dict[str, Any] = {
            "topic": topic,
            "records": total,
            "read": len(letters) + others,
            "not_letters": others,
            "other_groups": max(0, len(listed) - MOST_GROUPS),
            "groups": [{**group_json(group, None), "verdicts": None} for group in listed[:MOST_GROUPS]],
        }
        yield content
        try:
            verdicts = self._verdicts(letters, listed[:MOST_GROUPS])
            shown = [{**group_json(group, self._policies), **verdicts[group.id]} for group in listed[:MOST_GROUPS]]
        except (RuleUnusable, Outage) as error:
            yield {**content, "verdict_problem": str(error)}
        else:
            yield {**content, "groups": shown}

    def _newest(self, topic: str) -> tuple[list[Letter], int, int]:
        """Return a topic's newest letters, its number of records, and the number of records read
        that are not letters.
        """
        consumer = self._cluster.consumer()
        try:
            ranges = [each for each in ranges_of(consumer, topic, self._topics[topic]) if each.start < each.end]
            of_each = max(1, MOST_LETTERS // max(1, len(ranges)))
            newest = [Range(each.partition, max(each.start, each.end - of_each), each.end) for each in ranges]
            letters, others, size = [], 0, 0
            for record in read_records(consumer, topic, newest):
                letter = self._read_letter(record)
                if letter is None:
                    others += 1
                else:
                    letters.append(letter)
                size += record.size + sum(len(name) + len(value or b"") for name, value in record.headers)
                if size >= _MOST_BYTES or time.monotonic() >= self._until:
                    break
            return letters, sum(each.end - each.start for each in ranges), others
        finally:
            consumer.close()

    def _verdicts(self, letters: list[Letter], groups: list[Group]) -> dict[str, dict[str, Any]]:
        """Return the verdicts by group id. Raises RuleUnusable and Outage."""
        validator = self._policies.validator()
        counts = {group.id: VerdictCounts(validator) for group in groups}
        for letter in letters:
            for known in ids_of(letter) & counts.keys():
                counts[known].add(letter)
        return {name: {"verdicts": _verdicts_json(each), "obstacles": each.obstacles} for name, each in counts.items()}


def _verdicts_json(counts: VerdictCounts) -> list[dict[str, Any]]:
    return [
        {
            "is_accepted": is_accepted,
            "code": code,
            "rules": rules,
            "letters": letters,
            "valid_after": counts.fixes.get((is_accepted, code, rules), {}),
        }
        for (is_accepted, code, rules), letters in counts.counts.most_common()
    ]


def main() -> None:
    """Read a question from the standard input, and print the lines of the result."""
    os.nice(_LOW_PRIORITY)
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
    question: LetterQuestion = pickle.load(sys.stdin.buffer)  # noqa: S301  # the proxy has written it
    signal.alarm(question.seconds)  # ends the process even while it runs a library's code
    until = time.monotonic() + question.seconds / 2  # the rest of the time is for verdicts
    with MemoryFiles() as copies:
        try:
            cluster = Cluster(client_settings(question.loaded.config.upstream, copies))
            desk = LetterDesk(cluster, question.loaded, until)
            for line in desk.survey() if question.topic is None else desk.groups(question.topic):
                print(json.dumps(line), flush=True)  # noqa: T201  # the proxy reads it
        except ClusterUnavailable as error:
            print(json.dumps({"problem": str(error)}), flush=True)  # noqa: T201
