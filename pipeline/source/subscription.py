"""Determines the partitions that a query reads, from one of the options subscribe, subscribePattern and assign."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sluicegate.pipeline.kafka.cluster import KafkaCluster, TopicPartition
from sluicegate.pipeline.source.bounds import BadOption

if TYPE_CHECKING:
    import re2

_OPTIONS = {"subscribe": "subscribe", "subscribepattern": "subscribePattern", "assign": "assign"}


@dataclass(frozen=True, slots=True)
class Subscription:
    """A subscription, in which exactly one field is set.

    The fields are the names of `topics`, a `pattern` (an RE2 expression for whole names), and the `assigned`
    partitions.
    """

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    assigned: tuple[TopicPartition, ...] = ()

    def names(self, cluster: KafkaCluster) -> tuple[str, ...]:
        """Return the topics. A pattern selects from all existing topics that are not internal.

        Raises BadOption and BrokerUnreachable.
        """
        if self.pattern is None:
            return self.topics or tuple(dict.fromkeys(of.topic for of in self.assigned))
        matches = _matcher(self.pattern)
        there = (topic.name for topic in cluster.topics() if not topic.is_internal)
        return tuple(name for name in there if matches.fullmatch(name))

    def covers(self, of: TopicPartition) -> bool:
        """Return whether the partition belongs to the subscription, if it exists."""
        if self.assigned:
            return of in self.assigned
        return of.topic in self.topics if self.pattern is None else bool(_matcher(self.pattern).fullmatch(of.topic))

    def partitions(self, cluster: KafkaCluster) -> list[TopicPartition]:
        """Return the partitions that exist now.

        Raises BadOption, BrokerUnreachable, and TopicTrouble if a topic or an assigned partition does not exist.
        """
        names = self.names(cluster)
        if not names:
            raise BadOption(f"subscribePattern: this login may see no topic that matches {self.pattern!r}")
        found = cluster.partitions(names)
        if not self.assigned:
            return found
        missing = sorted(set(self.assigned) - set(found))
        if missing:
            raise BadOption(f"assign: there is no partition {missing[0]}")
        return sorted(self.assigned)


def subscription_of(options: Mapping[str, str]) -> Subscription:
    """Parse the options, whose names must be in lower case. Raises BadOption."""
    given = [name for name in _OPTIONS if options.get(name, "").strip()]
    if len(given) != 1:
        found = f"found {' and '.join(_OPTIONS[name] for name in given)}" if given else "found none"
        raise BadOption(
            f"one of the options {', '.join(_OPTIONS.values())} is required ({found}): subscribe takes one or more "
            f"topics, separated by commas"
        )
    text = options[given[0]]
    if given[0] == "assign":
        return Subscription(assigned=_assigned(text))
    if given[0] == "subscribepattern":
        _matcher(text)
        return Subscription(pattern=text)
    topics = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not topics:
        raise BadOption(f"subscribe: expected one or more topics, separated by commas, found {text!r}")
    return Subscription(topics)


def _assigned(text: str) -> tuple[TopicPartition, ...]:
    expected = f'assign: expected {{"topic": [0, 1]}}, found {text!r}'
    try:
        value: dict[str, list[int]] = json.loads(text)
        found = [(topic, partition) for topic, partitions in value.items() for partition in partitions]
    except (ValueError, AttributeError, TypeError) as error:
        raise BadOption(expected) from error
    if not found or not all(type(partition) is int and partition >= 0 for _, partition in found):
        raise BadOption(expected)
    return tuple(dict.fromkeys(TopicPartition(topic, partition) for topic, partition in found))


def _matcher(pattern: str) -> "re2._Regexp":
    import re2  # noqa: PLC0415  # 3 MB only for expressions

    from sluicegate.config.values.topic_pattern import re2_options, regular_expression_of  # noqa: PLC0415

    try:
        return re2.compile(regular_expression_of(f"/{pattern}/"), re2_options())
    except ValueError as error:
        raise BadOption(f"subscribePattern: {pattern!r}: {error}") from error
