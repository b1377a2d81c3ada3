"""Which topics of which cluster a job is about, as its command line says."""

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

_PATIENCE_SECONDS = 5.0
"""Somebody is waiting, perhaps with an address that is wrong."""


_CRITICAL = 2
"""Of syslog's levels: what librdkafka prints below that is either retried, or raised by the call that it concerns."""


@dataclass(frozen=True)
class Topics:
    """`settings` are librdkafka's names and values. `left_out`: internal topics that a pattern matched.
    `skip_unreadable`: batches that cannot be read are passed over, instead of ending the reading of records.
    """

    bootstrap: str
    names: tuple[str, ...]
    settings: dict[str, str] = field(default_factory=dict, repr=False)
    left_out: tuple[str, ...] = ()
    skip_unreadable: bool = False

    @property
    def options(self) -> dict[str, str]:
        """For the raw source and those built on it."""
        clients = {f"kafka.{name}": value for name, value in self.settings.items()}
        passing = {"failOnUnreadable": "false"} if self.skip_unreadable else {}
        return {"kafka.bootstrap.servers": self.bootstrap, "subscribe": ",".join(self.names), **clients, **passing}

    @property
    def for_librdkafka(self) -> dict[str, Any]:
        """For its clients."""
        return {"log_level": _CRITICAL, "bootstrap.servers": self.bootstrap, **settings_for_librdkafka(self.settings)}

    @cached_property
    def client(self) -> tuple[tuple[Address, ...], ClientSettings]:
        """How to connect. Raises BadOption and BadSetting."""
        checked = source_options(self.options)
        return checked.bootstrap, checked.settings

    def cluster(self) -> Cluster:
        """To ask; close it."""
        return Cluster(*self.client, patience_seconds=_PATIENCE_SECONDS)

    def partitions(self) -> list[TopicPartition]:
        """All of them. Raises TopicTrouble, BrokerUnreachable and LoginRejected, so a job learns of these first."""
        with self.cluster() as cluster:
            return cluster.partitions(self.names)

    def ranges(self) -> list[OffsetRange]:
        """All that there is now, committed: a range for each partition that holds something."""
        with self.cluster() as cluster:
            return planned_ranges(cluster, source_options(self.options))

    def selected(self) -> "Topics":
        """The same cluster's, with a name for each topic that a pattern among `names` matches. Raises BadSelection, and
        what `partitions` does.
        """
        if not self.names:
            raise BadSelection("say which topics: --topic with a name or a pattern, or --all-topics")
        with self.cluster() as cluster:
            found = selection(cluster, self.names)
        return replace(self, names=found.names, left_out=found.left_out)

    def held_back(self) -> list[str]:
        """A sentence for each partition where records lie behind an open transaction: they are not read."""
        with self.cluster() as cluster:
            partitions = cluster.partitions(self.names)
            readable, ends = (cluster.offsets(partitions, LATEST, committed) for committed in (True, False))
        return [
            f"{p}: offsets {readable[p]} to {ends[p] - 1} lie behind a transaction that is still open, and are left "
            "out until it has ended"
            for p in partitions
            if readable[p] < ends[p]
        ]

    def read(self, spark: SparkSession, source: str, **options: str) -> DataFrame:
        """A batch over all of it."""
        return spark.read.format(source).options(**self.options, **options).load()
