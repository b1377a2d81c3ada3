"""Decides which topics have their own series.

At most 500 topics have their own series, and only if the cluster or the configuration knows them. Names that only
clients use are counted as `other`. Otherwise a client could use up all slots. If all slots are taken, a new topic
replaces the least recently counted topic of the client with the most topics. The counts of the replaced topic move to
`other`, so that sums never decrease.
"""

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from sluicegate.config.model import Config
from sluicegate.proxy.reporting.bounded_text import cut
from sluicegate.proxy.reporting.metrics.batch_events import BatchEvent, Unit
from sluicegate.proxy.reporting.metrics.counters import OTHER, Counters
from sluicegate.proxy.reporting.metrics.fair_label_slots import FairLabelSlots
from sluicegate.proxy.reporting.metrics.families import BATCH_COUNTERS
from sluicegate.proxy.reporting.metrics.family import TOPIC
from sluicegate.validation.rulebook import Rulebook
from sluicegate.validation.verdict import Finding

MAX_TOPICS = 500
_FEWEST_TOPICS = 25
_PATTERN = frozenset("*?[/")
_BY_TOPIC = tuple(family for family in BATCH_COUNTERS if TOPIC in family.labels)


_Counter = tuple[Counter[Any], int, bool, Callable[[Finding], bool] | None]
"""Describes how to add to a metric.

The tuple contains the metric's counts, the index of its key in the result of `count`, whether it counts records, and
`Counted.when`.
"""
_BY_LABELS = {(True, False): 0, (True, True): 1, (False, True): 2, (False, False): 3}
"""The index of a metric's key, by whether the metric has the label `topic` and whether it has another label."""


class TopicLabels:
    """Counts events into `counters` by topic.

    `is_known` returns whether the cluster has a topic with this name. A `holder` is a client's name for fair limits
    (`ClientDetails.holder`). `folding` is locked while counts move to `other`.
    """

    def __init__(
        self,
        counters: Counters,
        is_known: Callable[[str], bool],
        configured: Iterable[str],
        max_topics: int = MAX_TOPICS,
    ) -> None:
        self._counters = counters
        self._is_known = is_known
        self._configured = frozenset(configured)
        self._slots: FairLabelSlots[str] = FairLabelSlots(max_topics, self._fold)
        self._noted: defaultdict[str, set[str]] = defaultdict(set)  # the values of the other label, by topic
        self._by_event = _by_event(counters)
        self.folding = threading.Lock()

    def configure(self, names: Iterable[str]) -> None:
        """Use the topics of a new configuration. Topics that have a slot keep it."""
        self._configured = frozenset(names)

    def knows(self, topic: str) -> bool:
        """Return whether the cluster or the configuration knows `topic`."""
        return topic in self._configured or self._is_known(topic)

    def count(
        self,
        event: BatchEvent,
        topic: str | None,
        holder: str,
        detail: str = "",
        records: int = 0,
        finding: Finding | None = None,
    ) -> str:
        """Count a batch's event in every metric of that event.

        Return the topic's label. `detail` is the value of the event's label besides `topic`. `records` is the number of
        bad or fixed records. `finding` is the verdict, or None if there is none.
        """
        label = self.label(topic, holder)
        keys = (label, (label, detail), detail, ())
        for counts, by, is_in_records, when in self._by_event[event]:
            if when is None or (finding is not None and when(finding)):
                counts[keys[by]] += records if is_in_records else 1
        if detail and label is not OTHER:
            self._noted[label].add(detail)
        return label

    def counted(self) -> Counters:
        """Return a copy of the counters. Thread-safe."""
        with self.folding:
            return self._counters.copied()

    def label(self, topic: str | None, holder: str) -> str:
        """Return a topic's label: its name or `other`."""
        if topic is None or topic == OTHER or not (topic in self._slots or self.knows(topic)):
            return OTHER
        self._slots.take_any(topic, holder)
        return topic

    def _fold(self, topic: str) -> None:
        details = self._noted.pop(topic, ())
        with self.folding:
            for family in _BY_TOPIC:
                counts = self._counters.batch_counts[family.name]
                if len(family.labels) == 1:
                    if topic in counts:
                        counts[OTHER] += counts.pop(topic)
                    continue
                for detail in details:
                    if (topic, detail) in counts:
                        counts[OTHER, detail] += counts.pop((topic, detail))


def _by_event(counters: Counters) -> tuple[tuple[_Counter, ...], ...]:
    """Return each event's counters, in the order of BatchEvent."""
    by_event: list[list[_Counter]] = [[] for _ in BatchEvent]
    for family in BATCH_COUNTERS:
        assert family.counted is not None
        counts = counters.batch_counts.setdefault(family.name, Counter())
        by = _BY_LABELS[TOPIC in family.labels, bool({*family.labels} - {TOPIC})]
        counter: _Counter = (counts, by, family.counted.unit is Unit.RECORDS, family.counted.when)
        for event in family.counted.events:
            by_event[event].append(counter)
    return tuple(map(tuple, by_event))


def exact_names(config: Config) -> list[str]:
    """Return the topics that a configuration names without patterns."""
    return [topic.match for topic in config.topics if not _PATTERN & set(topic.match)]


def topics_of_one(workers: int) -> int:
    """Return the number of topic labels per worker, so that their sum stays near one process's limit."""
    return max(MAX_TOPICS // workers, _FEWEST_TOPICS)


def with_few_topics(counters: Counters, max_topics: int = MAX_TOPICS) -> Counters:
    """Return the counts with a limited number of topics.

    If more than `max_topics` topics have violations, all of them are counted under `other`. The same applies to topics
    with traffic.
    """
    if len({topic for topic, _ in counters.topic_batches}) > max_topics:
        counters = replace(counters, topic_batches=_folded(counters.topic_batches))
    if len(_topics_with_events(counters)) > max_topics:
        counts = counters.batch_counts.copied()
        counts.update({family.name: _folded(counts[family.name]) for family in _BY_TOPIC})
        counters = replace(counters, batch_counts=counts)
    return counters


def owners_of(counters: Counters, rulebook: Rulebook) -> dict[str, tuple[str, str]]:
    """Return the team and contact of each topic that has its own series and an owner. Long strings are truncated."""
    if not rulebook.in_file.has_owners:
        return {}
    topics = _topics_with_events(counters) | {topic for topic, _ in counters.topic_batches}
    owners = {topic: rulebook.policy_of(topic).owner for topic in topics if topic != OTHER}
    return {topic: (cut(owner.team), cut(owner.contact or "")) for topic, owner in owners.items() if owner is not None}


def _topics_with_events(counters: Counters) -> set[str]:
    return {_topic_of(key) for family in _BY_TOPIC for key in counters.batch_counts[family.name]}


def _topic_of(key: str | tuple[str, str]) -> str:
    return key if isinstance(key, str) else key[0]


def _folded(counts: Counter[Any]) -> Counter[Any]:
    folded: Counter[Any] = Counter()
    for key, count in counts.items():
        folded[OTHER if isinstance(key, str) else (OTHER, key[1])] += count
    return folded
