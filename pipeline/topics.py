"""The topics and the cluster of a job."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from sluicegate.pipeline.kafka.cluster import Cluster, OffsetRange, TopicPartition
from sluicegate.pipeline.kafka.connection import Address
from sluicegate.pipeline.kafka.settings import ClientSettings, settings_for_librdkafka
from sluicegate.pipeline.selection import BadSelection, selection
from sluicegate.pipeline.source.options import source_options
from sluicegate.pipeline.source.planning import planned_ranges
from sluicegate.protocol.messages.fetch import LATEST

_TIMEOUT_SECONDS = 5.0
"""Short, because a person waits and the address may be wrong."""


_CRITICAL = 2
"""A syslog level: less severe messages of librdkafka are retried, or raised by the call."""


@dataclass(frozen=True)
class Topics:
    """`settings`: librdkafka's names and values. `left_out`: internal topics that a pattern matched. `skip_unreadable`:
    skip batches that cannot be read instead of failing.
    """

    bootstrap: str
    names: tuple[str, ...]
    settings: dict[str, str] = field(default_factory=dict, repr=False)
    left_out: tuple[str, ...] = ()
    skip_unreadable: bool = False

    @property
    def options(self) -> dict[str, str]:
        """Return options for the raw source and the sources built on it."""
        clients = {f"kafka.{name}": value for name, value in self.settings.items()}
        passing = {"failOnUnreadable": "false"} if self.skip_unreadable else {}
        return {"kafka.bootstrap.servers": self.bootstrap, "subscribe": ",".join(self.names), **clients, **passing}

    @property
    def for_librdkafka(self) -> dict[str, Any]:
        """Return settings for librdkafka's clients."""
        return {"log_level": _CRITICAL, "bootstrap.servers": self.bootstrap, **settings_for_librdkafka(self.settings)}

    @cached_property
    def client(self) -> tuple[tuple[Address, ...], ClientSettings]:
        """Return addresses and settings to connect with. Raises BadOption and BadSetting."""
        checked = source_options(self.options)
        return checked.bootstrap, checked.settings

    def cluster(self) -> Cluster:
        """Return a new cluster; the caller closes it."""
        return Cluster(*self.client, timeout_seconds=_TIMEOUT_SECONDS)

    def partitions(self) -> list[TopicPartition]:
        """Return all partitions. Raises TopicTrouble, BrokerUnreachable and LoginRejected, so a job calls it first."""
        with self.cluster() as cluster:
            return cluster.partitions(self.names)

    def ranges(self) -> list[OffsetRange]:
        """Return the committed offsets that exist now, as a range for each partition that is not empty."""
        with self.cluster() as cluster:
            return planned_ranges(cluster, source_options(self.options))

    def selected(self) -> "Topics":
        """Return the same with patterns among `names` resolved to topics. Raises BadSelection and what `partitions`
        raises.
        """
        if not self.names:
            raise BadSelection("no topics: use --topic with a name or a pattern, or --all-topics")
        with self.cluster() as cluster:
            found = selection(cluster, self.names)
        return replace(self, names=found.names, left_out=found.left_out)

    def open_transactions(self) -> list[str]:
        """Return a sentence for each partition with records after the start of an open transaction; they are
        skipped.
        """
        with self.cluster() as cluster:
            partitions = cluster.partitions(self.names)
            readable, ends = (cluster.offsets(partitions, LATEST, committed) for committed in (True, False))
        return [
            f"{p}: offsets {readable[p]} to {ends[p] - 1} are after the start of an open transaction, and are "
            "skipped until it ends"
            for p in partitions
            if readable[p] < ends[p]
        ]

    def read(self, spark: SparkSession, source: str, **options: str) -> DataFrame:
        """Return a batch DataFrame over all topics."""
        return spark.read.format(source).options(**self.options, **options).load()
