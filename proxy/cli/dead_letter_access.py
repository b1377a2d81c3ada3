"""The options of `sluicegate dead-letters`: the cluster, the login, and the policies of the original topics."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sluicegate.config.files.source import Source
from sluicegate.config.loading import Loaded, load
from sluicegate.proxy.cli.console import end, read, read_checked

if TYPE_CHECKING:
    from sluicegate.dead_letters.cluster import Cluster
    from sluicegate.dead_letters.letter import ReadLetter, StoredRecord
    from sluicegate.dead_letters.verdicts import LetterValidator
    from sluicegate.proxy.reload.letter_policies import LetterPolicies
    from sluicegate.validation.policy import TopicPolicy

USAGE = 2
_UPSTREAM, _LISTEN = "127.0.0.1:9092", "127.0.0.1:19092"  # required sections, which are not used
_STEPS = 10_000

ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="The proxy's configuration file, with the cluster and the policies."),
]
PolicyConfig = Annotated[
    Path,
    typer.Option("--config", metavar="FILE", help="The configuration file with the policies of the original topics."),
]
Bootstrap = Annotated[
    str | None,
    typer.Option(
        "--bootstrap",
        metavar="HOST:PORT",
        help="Address of a broker or a proxy. Replaces `upstream` of the configuration file with its login.",
    ),
]
ClientConfig = Annotated[
    Path | None,
    typer.Option(
        "--client-config",
        metavar="FILE",
        help="A .properties file of a Kafka client with your login. Default: `upstream` of the configuration file.",
    ),
]


ToBootstrap = Annotated[
    str | None,
    typer.Option(
        "--to-bootstrap",
        metavar="HOST:PORT",
        help="Address for the original topics, if they are in another cluster or records go through a proxy.",
    ),
]
ToClientConfig = Annotated[
    Path | None,
    typer.Option(
        "--to-client-config", metavar="FILE", help="A .properties file with your login for the original topics."
    ),
]


class Dimension(StrEnum):
    """What `show` groups letters by."""

    CAUSE = "cause"
    CLIENT = "client"
    TOPIC = "topic"
    OWNER = "owner"
    HOUR = "hour"


class RecordTime(StrEnum):
    """The timestamp with which a letter is validated and written: its original one, or the present time."""

    RECORD = "record"
    NOW = "now"


class FixTime(StrEnum):
    """The corrections of timestamps."""

    NOW = "now"
    CLAMP = "clamp"
    UNIT = "unit"


class TargetPartition(StrEnum):
    """The partition to which a record is redriven."""

    SAME = "same"
    KEY = "key"


class Desk:
    """The cluster of a command, and the policies of the configuration, if `has_policies`."""

    def __init__(self, cluster: "Cluster", loaded: Loaded, has_policies: bool) -> None:
        self.cluster = cluster
        self.has_policies = has_policies
        self._loaded = loaded
        self._known: LetterPolicies | None = None

    @cached_property
    def read_letter(self) -> "ReadLetter":
        """Return the function that reads letters, also those of the configuration's `dead_letter_topics`."""
        from sluicegate.dead_letters.formats import LetterReader
        from sluicegate.dead_letters.mapped_format import mapped_format

        return LetterReader([mapped_format(entry) for entry in self._loaded.config.dead_letter_topics]).read

    @property
    def policies(self) -> "LetterPolicies":
        """Return the policies of the configuration."""
        from sluicegate.proxy.reload.letter_policies import LetterPolicies

        if self._known is None:
            self._known = LetterPolicies(self._loaded, self.cluster.topics())
        return self._known

    def owner_of(self, topic: str) -> str:
        """Return the team that owns a topic; "" if the configuration names none."""
        owner = self.policy_of(topic).owner
        return "" if owner is None else owner.team

    def policy_of(self, topic: str) -> "TopicPolicy":
        """Return the policy of a topic with the cluster's settings, as a running proxy applies it."""
        return self.policies.of(topic)

    def validator(self, now_ms: int, time: RecordTime) -> "LetterValidator":
        """Return a validator of letters as of a moment (Unix time, ms)."""
        from sluicegate.dead_letters.verdicts import own_time

        return self.policies.validator(own_time if time is RecordTime.RECORD else lambda _: now_ms, now_ms)


@contextmanager
def desk(
    config: Path | None, bootstrap: str | None, client_config: Path | None, mapping: Mapping[str, Any] | None = None
) -> Iterator[Desk]:
    """Connect to the cluster. A wrong option, an unreachable cluster and a missing library end the command.

    `mapping` is an entry of `dead_letter_topics` that precedes those of the configuration.
    """
    from sluicegate.proxy.network.tls.contexts import MemoryFiles
    from sluicegate.proxy.writing.topic_writer import ClientMissing, check_client, client_settings

    try:
        check_client("dead-letters")
    except ClientMissing as error:
        end([f"sluicegate: {error}"], USAGE)
    from sluicegate.dead_letters.cluster import Cluster, ClusterUnavailable

    loaded = _loaded(config, bootstrap, client_config)
    if mapping is not None:
        loaded = _with_mapping(loaded, mapping)
    with MemoryFiles() as copies:
        try:
            yield Desk(Cluster(client_settings(loaded.config.upstream, copies)), loaded, config is not None)
        except ClusterUnavailable as error:
            end([f"sluicegate dead-letters: {error}"], USAGE)


@contextmanager
def open_target_cluster(
    source: Desk, config: Path, bootstrap: str | None, client_config: Path | None
) -> Iterator[Desk]:
    """Connect to the cluster of the original topics, which is that of the dead letters without an option."""
    if bootstrap is None and client_config is None:
        yield source
    else:
        with desk(config, bootstrap, client_config) as target:
            yield target


def records_of(cluster: "Cluster", topic: str, partitions: int) -> "Iterator[StoredRecord]":
    """Yield the records that a topic has now, with a progress bar on a terminal."""
    from sluicegate.dead_letters.cluster import ranges_of
    from sluicegate.dead_letters.reading import read_records

    consumer = cluster.consumer()
    try:
        ranges = ranges_of(consumer, topic, partitions)
        count = sum(each.end - each.start for each in ranges)
        with typer.progressbar(length=count, file=sys.stderr, update_min_steps=_STEPS) as bar:
            for record in read_records(consumer, topic, ranges):
                yield record
                bar.update(1)
    finally:
        consumer.close()


def _loaded(config: Path | None, bootstrap: str | None, client_config: Path | None) -> Loaded:
    if config is None and bootstrap is None:
        end(["sluicegate dead-letters: specify --config FILE or --bootstrap HOST:PORT"], USAGE)
    access = {} if client_config is None else _access_in(client_config)
    if config is None:
        return _given(upstream={"bootstrap": bootstrap, **access})
    loaded = read_checked(config, USAGE)
    if not access and bootstrap is None:
        return loaded
    addresses = bootstrap or ",".join(map(str, loaded.config.upstream.bootstrap))
    login = _given(upstream={"bootstrap": addresses, **access}).config.upstream
    return replace(loaded, config=replace(loaded.config, upstream=login))


def _with_mapping(loaded: Loaded, mapping: Mapping[str, Any]) -> Loaded:
    given = _given(upstream={"bootstrap": _UPSTREAM}, dead_letter_topics=[mapping]).config.dead_letter_topics
    topics = (*given, *loaded.config.dead_letter_topics)
    return replace(loaded, config=replace(loaded.config, dead_letter_topics=topics))


def _given(**sections: Any) -> Loaded:
    given = Source("command line", {"listen": {"bootstrap": _LISTEN}, **sections})
    return read(lambda: load(given, {}), code=USAGE)


def _access_in(client_config: Path) -> dict[str, Any]:
    from sluicegate.proxy.bootstrap.client_settings import UnusableClientSettings, upstream_from

    try:
        return upstream_from(client_config)
    except UnusableClientSettings as error:
        end([f"{client_config}: {error}"], USAGE)
