"""Topic selection by name, glob, or RE2 expression between slashes, as in the proxy's configuration."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import re2

from sluicegate.config.values.topic_pattern import exact_name_of, options, regular_expression_of
from sluicegate.pipeline.errors import PipelineError
from sluicegate.pipeline.kafka.cluster import Cluster, ListedTopic

ALL = "*"
_MOST_TOPICS = 10_000
_MOST_NAMED = 10
_OWN = "__"
"""Prefix of Kafka's own topics; brokers mark only some of them as internal."""


class BadSelection(PipelineError):
    """The selection matches no topics, or too many; the text gives the reason."""


@dataclass(frozen=True, slots=True)
class Selection:
    """`names`: in the order of the request, those of a pattern sorted. `left_out`: internal topics that a pattern
    matched.
    """

    names: tuple[str, ...]
    left_out: tuple[str, ...] = ()


def selection(cluster: Cluster, patterns: Sequence[str]) -> Selection:
    """Resolve names and patterns; asks the cluster only if there is a pattern. Raises BadSelection."""
    wanted = {pattern: _matcher(pattern) for pattern in patterns if exact_name_of(pattern) is None}
    there = cluster.topics() if wanted else []
    names: dict[str, None] = {}
    left_out: dict[str, None] = {}
    for each in patterns:
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
            f"{len(names):,} topics match, and the limit for one run is {_MOST_TOPICS:,}: use narrower patterns"
        )
    return Selection(tuple(names), tuple(name for name in left_out if name not in names))


def only_names(patterns: Iterable[str]) -> Selection:
    """Accept names only, for jobs that write or resume: a pattern could match their results. Raises BadSelection."""
    for each in patterns:
        if exact_name_of(each) is None:
            raise BadSelection(f"{each!r} is a pattern, and this job takes names: give each topic with --topic")
    return Selection(tuple(dict.fromkeys(patterns)))


def in_a_sentence(left_out: Sequence[str]) -> list[str]:
    """Return a warning about internal topics that were left out, or nothing."""
    if not left_out:
        return []
    return [f"internal topics are skipped unless named: {_named(left_out)}"]


def _matcher(pattern: str) -> re2._Regexp:
    try:
        return re2.compile(regular_expression_of(pattern), options())
    except ValueError as error:
        raise BadSelection(f"--topic {pattern!r}: {error}") from error


def _is_own(topic: ListedTopic) -> bool:
    return topic.is_internal or topic.name.startswith(_OWN)


def _nothing(pattern: str, matched: Sequence[ListedTopic], there: Sequence[ListedTopic]) -> str:
    if matched:
        return f"{pattern!r} matches only internal topics, which must be named:  {_named([t.name for t in matched])}"
    visible = [topic.name for topic in there if not _is_own(topic)]
    if not visible:
        return f"{pattern!r} matches no topic: this login may see no topic of this cluster"
    near = get_close_matches(pattern.strip("/"), visible[:_MOST_TOPICS], _MOST_NAMED) or visible
    return f"{pattern!r} matches none of the {len(visible):,} topics of this cluster, such as {_named(near)}"


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(sorted(names)[:_MOST_NAMED]) + more
