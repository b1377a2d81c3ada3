"""Selects a job's topics by name, glob, or RE2 expression between slashes, as in the proxy's configuration."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property
from typing import Any

import re2
from pyspark.sql import DataFrame, SparkSession

from sluicegate.config.values.topic_pattern import exact_name_of, re2_options, regular_expression_of
from sluicegate.pipeline.kafka.cluster import ClusterTopic, KafkaCluster, OffsetRange, TopicPartition
from sluicegate.pipeline.kafka.connection import Address
from sluicegate.pipeline.kafka.settings import ClientSettings, settings_for_librdkafka
from sluicegate.pipeline.runs.errors import PipelineError
from sluicegate.pipeline.source.options import source_options
from sluicegate.pipeline.source.ranges import planned_ranges
from sluicegate.protocol.messages.fetch import LATEST

ALL = "*"
_MOST_TOPICS = 10_000
_MOST_NAMED = 10
_OWN = "__"
"""Prefix of Kafka's own topics, of which brokers mark only some as internal."""


class BadSelection(PipelineError):
    """Raised if the selection matches no topics, or too many. The message gives the reason."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The selected topics.

    `names` is in the order of the request; names that one pattern matched are sorted. `left_out` contains the internal
    topics that a pattern matched.
    """

    names: tuple[str, ...]
    left_out: tuple[str, ...] = ()


def selection(cluster: KafkaCluster, patterns: Sequence[str]) -> Selection:
    """Resolve names and patterns. Sends a request to the cluster only if there is a pattern. Raises BadSelection."""
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
    """Return a selection of names. Raises BadSelection for a pattern.

    Jobs that write or resume do not accept patterns, because a pattern could match their results.
    """
    for each in patterns:
        if exact_name_of(each) is None:
            raise BadSelection(f"{each!r} is a pattern, but this job takes names: use --topic for each topic")
    return Selection(tuple(dict.fromkeys(patterns)))


def left_out_warnings(left_out: Sequence[str]) -> list[str]:
    """Return a warning about omitted internal topics; an empty list if there are none."""
    if not left_out:
        return []
    return [f"internal topics are skipped unless named: {_named(left_out)}"]


def _matcher(pattern: str) -> re2._Regexp:
    try:
        return re2.compile(regular_expression_of(pattern), re2_options())
    except ValueError as error:
        raise BadSelection(f"--topic {pattern!r}: {error}") from error


def _is_own(topic: ClusterTopic) -> bool:
    return topic.is_internal or topic.name.startswith(_OWN)


def _nothing(pattern: str, matched: Sequence[ClusterTopic], there: Sequence[ClusterTopic]) -> str:
    if matched:
        return f"{pattern!r} matches only internal topics, which must be named: {_named([t.name for t in matched])}"
    visible = [topic.name for topic in there if not _is_own(topic)]
    if not visible:
        return f"{pattern!r} matches no topic: this login cannot see any topic of this cluster"
    near = get_close_matches(pattern.strip("/"), visible[:_MOST_TOPICS], _MOST_NAMED) or visible
    return f"{pattern!r} matches none of the {len(visible):,} topics of this cluster, such as {_named(near)}"


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(sorted(names)[:_MOST_NAMED]) + more


_TIMEOUT_SECONDS = 5.0
"""Short, because a person waits, and the address may be wrong."""


_CRITICAL = 2
"""A syslog level. librdkafka retries the causes of less severe messages, or the call raises an error for them."""


@dataclass(frozen=True)
class Topics:
    """The topics of a job, and how to read them.

    - `settings`: librdkafka's option names and values.
    - `left_out`: internal topics that a pattern matched.
    - `skip_unreadable`: whether to skip batches that cannot be read, instead of failing.
    - `skip_missing`: whether to continue after offsets that no longer exist.
    - `owners`: the owner of each topic, if it is known.
    """

    bootstrap: str
    names: tuple[str, ...]
    settings: dict[str, str] = field(default_factory=dict, repr=False)
    left_out: tuple[str, ...] = ()
    skip_unreadable: bool = False
    skip_missing: bool = False
    owners: dict[str, str] = field(default_factory=dict)

    def owner(self, name: str) -> dict[str, str]:
        """Return the part of a topic's summary that names its owner."""
        return {"owner": self.owners[name]} if name in self.owners else {}

    @property
    def options(self) -> dict[str, str]:
        """Return options for the raw source and for the sources based on it."""
        clients = {f"kafka.{name}": value for name, value in self.settings.items()}
        passing = {"failOnUnreadable": "false"} if self.skip_unreadable else {}
        passing |= {"failOnDataLoss": "false"} if self.skip_missing else {}
        return {"kafka.bootstrap.servers": self.bootstrap, "subscribe": ",".join(self.names), **clients, **passing}

    @property
    def for_librdkafka(self) -> dict[str, Any]:
        """Return settings for librdkafka's clients."""
        return {"log_level": _CRITICAL, "bootstrap.servers": self.bootstrap, **settings_for_librdkafka(self.settings)}

    @cached_property
    def client(self) -> tuple[tuple[Address, ...], ClientSettings]:
        """Return the addresses and settings for connections. Raises BadOption and BadSetting."""
        checked = source_options(self.options)
        return checked.bootstrap, checked.settings

    def cluster(self) -> KafkaCluster:
        """Return a new KafkaCluster, which the caller must close."""
        return KafkaCluster(*self.client, timeout_seconds=_TIMEOUT_SECONDS)

    def partitions(self) -> list[TopicPartition]:
        """Return all partitions. A job calls this method first.

        Raises TopicTrouble, BrokerUnreachable and ClusterLoginRejected.
        """
        with self.cluster() as cluster:
            return cluster.partitions(self.names)

    def ranges(self) -> list[OffsetRange]:
        """Return the existing committed offsets as a range for each non-empty partition."""
        with self.cluster() as cluster:
            return planned_ranges(cluster, source_options(self.options))

    def selected(self) -> "Topics":
        """Return a copy in which topics replace the patterns among `names`.

        Raises BadSelection and the errors of `partitions`.
        """
        if not self.names:
            raise BadSelection("no topics: use --topic with a name or a pattern, or --all-topics")
        with self.cluster() as cluster:
            found = selection(cluster, self.names)
        return replace(self, names=found.names, left_out=found.left_out)

    def open_transactions(self) -> list[str]:
        """Return a sentence for each partition with records that are skipped because of an open transaction."""
        with self.cluster() as cluster:
            partitions = cluster.partitions(self.names)
            readable, ends = (cluster.offsets(partitions, LATEST, committed) for committed in (True, False))
        return [
            f"{p}: offsets {readable[p]} to {ends[p] - 1} are after the start of an open transaction, and are skipped "
            f"until that transaction ends"
            for p in partitions
            if readable[p] < ends[p]
        ]

    def read(self, spark: SparkSession, source: str, **options: str) -> DataFrame:
        """Return a batch DataFrame over all topics."""
        return spark.read.format(source).options(**self.options, **options).load()
