"""Topics by pattern: globs and RE2's expressions between slashes, as the proxy's configuration has them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import re2

from sluicegate.config.values.topic_pattern import exact_name_of, options, regular_expression_of
from sluicegate.pipeline.errors import PipelineError
from sluicegate.pipeline.kafka.cluster import Cluster, SeenTopic

ALL = "*"
_MOST_TOPICS = 10_000
_MOST_NAMED = 10
_OWN = "__"
"""How Kafka's own topics begin; brokers call only some of them internal."""


class BadSelection(PipelineError):
    """What was asked for names no topics, or too many; the text says which and what to do."""


@dataclass(frozen=True, slots=True)
class Selection:
    """`names`: in the order in which they were asked for, those of a pattern by the alphabet. `left_out`: internal
    topics that a pattern matched.
    """

    names: tuple[str, ...]
    left_out: tuple[str, ...] = ()


def selection(cluster: Cluster, asked: Sequence[str]) -> Selection:
    """Of names and patterns; the cluster is asked only where there is a pattern. May raise BadSelection."""
    wanted = {pattern: _matcher(pattern) for pattern in asked if exact_name_of(pattern) is None}
    there = cluster.topics() if wanted else []
    names: dict[str, None] = {}
    left_out: dict[str, None] = {}
    for each in asked:
        if each not in wanted:
            names[each] = None
            continue
        matched = [topic for topic in there if wanted[each].fullmatch(topic.name)]
        found = [topic.name for topic in matched if not _is_own(topic)]
        if not found:
            raise BadSelection(_nothing(each, matched, there))
        names |= dict.fromkeys(found)
        left_out |= dict.fromkeys(topic.name for topic in matched if _is_own(topic))
    if len(names) > _MOST_TOPICS:
        raise BadSelection(
            f"{len(names):,} topics are asked for, and a run takes {_MOST_TOPICS:,}: give narrower patterns to several"
        )
    return Selection(tuple(names), tuple(name for name in left_out if name not in names))


def only_names(asked: Iterable[str]) -> Selection:
    """For jobs that write, or go on where they were: a pattern would match what they have made. Raises BadSelection."""
    for each in asked:
        if exact_name_of(each) is None:
            raise BadSelection(f"{each!r} is a pattern, and this job takes names: give each topic with --topic")
    return Selection(tuple(dict.fromkeys(asked)))


def in_a_sentence(left_out: Sequence[str]) -> list[str]:
    """What is said of internal topics that were left out; nothing where there are none."""
    if not left_out:
        return []
    return [f"internal topics are left out unless they are named: {_named(left_out)}"]


def _matcher(pattern: str) -> re2._Regexp:
    try:
        return re2.compile(regular_expression_of(pattern), options())
    except ValueError as error:
        raise BadSelection(f"--topic {pattern!r}: {error}") from error


def _is_own(topic: SeenTopic) -> bool:
    return topic.is_internal or topic.name.startswith(_OWN)


def _nothing(pattern: str, matched: Sequence[SeenTopic], there: Sequence[SeenTopic]) -> str:
    if matched:
        return f"{pattern!r} matches internal topics only, which need their names: {_named([t.name for t in matched])}"
    visible = [topic.name for topic in there if not _is_own(topic)]
    if not visible:
        return f"{pattern!r} matches no topic: this cluster has none that this login may see"
    near = get_close_matches(pattern.strip("/"), visible[:_MOST_TOPICS], _MOST_NAMED) or visible
    return f"{pattern!r} matches none of the {len(visible):,} topics of this cluster, such as {_named(near)}"


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(sorted(names)[:_MOST_NAMED]) + more
