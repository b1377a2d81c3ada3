"""Represents a cluster as a client sees it: topics, leaders and offsets. Blocking and not thread-safe."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from sluicegate.pipeline.kafka.connection import Address, BrokerConnection, BrokerUnreachable
from sluicegate.pipeline.kafka.settings import ClientSettings
from sluicegate.pipeline.runs.errors import PipelineError
from sluicegate.protocol.api import ApiKey
from sluicegate.protocol.messages.cluster import (
    METADATA_REQUEST,
    METADATA_RESPONSE,
)
from sluicegate.protocol.messages.fetch import EARLIEST, LIST_OFFSETS_REQUEST, LIST_OFFSETS_RESPONSE
from sluicegate.protocol.messages.schema import Value

T = TypeVar("T")
_TIMEOUT_SECONDS = 30.0
_PAUSE_SECONDS = 0.2
_UNKNOWN_SECONDS = 2.0
# Errors that new metadata or a retry may fix.
_RETRIABLE = frozenset({3, 5, 6, 7, 9, 13, 56, 74, 75, 76, 78, 100, 103})
_METADATA_AT_MOST, _OFFSETS_AT_MOST = 12, 9
_TOPIC_UNKNOWN = 3
_NO_ID = bytes(16)
_EARLIEST_LOCAL, _LOCAL_START_SINCE = -4, 8


class TopicTrouble(PipelineError):
    """Raised for a broker's error that retrying does not fix. The message names topic, partition and code."""


class TopicUnknown(TopicTrouble):
    """Raised if the broker does not know a topic."""


@dataclass(frozen=True, slots=True, order=True)
class TopicPartition:
    """A partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """The offsets [start, end) of a partition."""

    of: TopicPartition
    start: int
    end: int

    @property
    def size(self) -> int:
        """Return the number of offsets."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class ClusterTopic:
    """A topic that this login may see. `is_internal` is whether the broker marks the topic as internal."""

    name: str
    is_internal: bool


class KafkaCluster:
    """A connection to a cluster, which connects on first use, and retries while leaders move and brokers restart."""

    def __init__(
        self, bootstrap: Iterable[Address], settings: ClientSettings, timeout_seconds: float = _TIMEOUT_SECONDS
    ) -> None:
        self._timeout_seconds = timeout_seconds
        self._bootstrap = list(bootstrap)
        self._settings = settings
        self._connections: dict[Address, BrokerConnection] = {}
        self._leaders: dict[TopicPartition, Address] = {}
        self._was_reached = False

    def __enter__(self) -> "KafkaCluster":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def topics(self) -> list[ClusterTopic]:
        """Return all topics, sorted by name. Raises BrokerUnreachable."""
        response = self._with_retries(lambda: self._ask_any(None))
        seen = (ClusterTopic(topic["name"], topic["is_internal"]) for topic in response["topics"])
        return sorted(seen, key=lambda topic: topic.name)

    def topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        """Return the ids of existing topics, by name. Raises BrokerUnreachable.

        A topic that is created again gets a new id. Brokers older than Kafka 2.8 do not support ids; for them the id is
        "".
        """
        found = self._with_retries(lambda: self._ask_any(sorted(set(topics))))["topics"]
        there = (topic for topic in found if topic["error_code"] != _TOPIC_UNKNOWN)
        return {topic["name"]: "" if topic["topic_id"] == _NO_ID else topic["topic_id"].hex() for topic in there}

    def partitions(self, topics: Iterable[str]) -> list[TopicPartition]:
        """Return all partitions of the topics. Raises TopicTrouble if a topic does not exist, and BrokerUnreachable."""
        wanted = sorted(set(topics))
        given_up = time.monotonic() + _UNKNOWN_SECONDS

        def ask() -> list[TopicPartition]:
            try:
                self._learn(self._ask_any(wanted), wanted)
            except TopicUnknown as error:
                if time.monotonic() > given_up:
                    raise
                raise RetryRequest(str(error)) from error  # a new topic reaches all brokers with a delay
            return sorted(partition for partition in self._leaders if partition.topic in wanted)

        return self._with_retries(ask)

    def offsets(
        self, partitions: Iterable[TopicPartition], timestamp: int, committed: bool
    ) -> dict[TopicPartition, int]:
        """Return, for each partition, the offset of the first record at or after `timestamp` (ms); -1 if there is none.

        `timestamp` may also be EARLIEST or LATEST of `sluicegate.protocol.messages.fetch`. If `committed` is true,
        LATEST is the start of the first open transaction.
        """
        missing = set(partitions)
        found: dict[TopicPartition, int] = {}

        def ask() -> dict[TopicPartition, int]:
            for leader, its in self._by_leader(missing).items():
                request = partial(_ask_offsets, partitions=its, timestamp=timestamp, committed=committed)
                found.update(self._at(leader, request))
                missing.difference_update(found)
            return found

        return self._with_retries(ask)

    def local_start(self, partition: TopicPartition) -> int:
        """Return the first offset that the leader stores locally. Earlier offsets are in remote storage."""

        def ask(broker: BrokerConnection) -> int:
            known = (
                broker.highest_version_of(ApiKey.LIST_OFFSETS) >= _LOCAL_START_SINCE
            )  # older brokers have no remote storage
            return _ask_offsets(broker, [partition], _EARLIEST_LOCAL if known else EARLIEST, committed=False)[partition]

        return self.ask_leader(partition, ask)

    def ask_leader(self, partition: TopicPartition, ask: Callable[[BrokerConnection], T]) -> T:
        """Call `ask` with the connection to a partition's leader.

        RetryRequest and BrokerUnreachable are retried until a timeout. Raises TopicUnknown if the topic or the
        partition no longer exists.
        """
        given_up = time.monotonic() + _UNKNOWN_SECONDS

        def ask_leader() -> T:
            if partition not in self._leaders:
                self._learn(self._ask_any([partition.topic]), [partition.topic])
            if partition not in self._leaders:
                if time.monotonic() > given_up:
                    raise TopicUnknown(
                        f"there is no partition {partition}: the topic was recreated with fewer partitions"
                    )
                raise RetryRequest(f"{partition} has no leader")
            return self._at(self._leaders[partition], ask)

        return self._with_retries(ask_leader)

    def _with_retries(self, act: Callable[[], T]) -> T:
        begun = time.monotonic()
        while True:
            try:
                return act()
            except (RetryRequest, BrokerUnreachable) as error:
                # A broker that returns a retriable error is up, but electing the last of a thousand leaders takes long.
                # After a response, the addresses are known to be right: a new leader is elected within 10 to 20 s.
                is_there = self._was_reached or isinstance(error, RetryRequest)
                timeout = max(self._timeout_seconds, _TIMEOUT_SECONDS) if is_there else self._timeout_seconds
                if time.monotonic() > begun + timeout:
                    raise BrokerUnreachable(f"given up after {timeout:.0f} s: {error}") from error
                self._leaders.clear()
                time.sleep(_PAUSE_SECONDS)  # Kafka does not announce an election

    def _at(self, address: Address, ask: Callable[[BrokerConnection], T]) -> T:
        connection = self._connections.get(address)
        if connection is None:
            connection = self._connections[address] = BrokerConnection(address, self._settings)
        try:
            found = ask(connection)
        except BrokerUnreachable:
            self._connections.pop(address).close()
            raise
        self._was_reached = True
        return found

    def _ask_any(self, topics: list[str] | None) -> Value:
        """Return metadata from the first broker that responds. If `topics` is None, it describes all topics."""
        wanted = None if topics is None else [{"name": name} for name in topics]
        body = {"topics": wanted, "allow_auto_topic_creation": False}
        return self.ask_any(
            lambda broker: broker.call(ApiKey.METADATA, METADATA_REQUEST, METADATA_RESPONSE, body, _METADATA_AT_MOST)
        )

    def ask_any(self, ask: Callable[[BrokerConnection], T]) -> T:
        """Call `ask` with the first broker that responds. Raises BrokerUnreachable."""
        reasons = []
        for address in dict.fromkeys([*self._connections, *self._bootstrap]):
            try:
                return self._at(address, ask)
            except BrokerUnreachable as error:
                reasons.append(str(error))
        raise BrokerUnreachable("; ".join(reasons) or "no bootstrap address is given")

    def _learn(self, response: Value, topics: list[str]) -> None:
        brokers = {broker["node_id"]: (broker["host"], broker["port"]) for broker in response["brokers"]}
        for topic in response["topics"]:
            code = topic["error_code"]
            if code == _TOPIC_UNKNOWN:
                raise TopicUnknown(f"there is no topic {topic['name']!r} on this cluster")
            if code in _RETRIABLE:
                raise RetryRequest(f"topic {topic['name']}: {error_with_name(code)}")
            if code:
                raise TopicTrouble(f"topic {topic['name']!r}: the broker returned {error_with_name(code)}")
            for partition in topic["partitions"]:
                name = TopicPartition(topic["name"], partition["partition_index"])
                if partition["leader_id"] not in brokers:
                    raise RetryRequest(f"{name} has no leader")
                self._leaders[name] = brokers[partition["leader_id"]]
        lacking = set(topics) - {topic["name"] for topic in response["topics"]}
        if lacking:
            raise TopicTrouble(f"the broker's response lacks {', '.join(sorted(lacking))}")

    def _by_leader(self, partitions: Iterable[TopicPartition]) -> Mapping[Address, list[TopicPartition]]:
        wanted = sorted(partitions)
        topics = sorted({p.topic for p in wanted if p not in self._leaders})
        if topics:
            self._learn(self._ask_any(topics), topics)
        found: dict[Address, list[TopicPartition]] = {}
        for partition in wanted:
            if partition not in self._leaders:
                raise TopicTrouble(f"there is no partition {partition}")
            found.setdefault(self._leaders[partition], []).append(partition)
        return found


def error_with_name(code: int) -> str:
    """Return an error code with its name, such as `TOPIC_AUTHORIZATION_FAILED (29)`."""
    from confluent_kafka import KafkaError  # noqa: PLC0415  # slow import, needed for errors only

    return f"{KafkaError(code).name()} ({code})"


class RetryRequest(Exception):
    """Raised for a temporary state, such as a moving leader. The request is then sent again."""


def check_code(partition: TopicPartition, code: int) -> None:
    """Raise RetryRequest for a temporary error, and TopicTrouble for a permanent error."""
    if code in _RETRIABLE:
        raise RetryRequest(f"{partition}: {error_with_name(code)}")
    if code:
        raise TopicTrouble(f"{partition}: the broker returned {error_with_name(code)}")


def _ask_offsets(
    broker: BrokerConnection, partitions: list[TopicPartition], timestamp: int, committed: bool
) -> dict[TopicPartition, int]:
    topics: dict[str, list[Value]] = {}
    for partition in partitions:
        entry = {"partition_index": partition.partition, "timestamp": timestamp}
        topics.setdefault(partition.topic, []).append(entry)
    body = {
        "isolation_level": int(committed),
        "topics": [{"name": name, "partitions": entries} for name, entries in topics.items()],
    }
    response = broker.call(ApiKey.LIST_OFFSETS, LIST_OFFSETS_REQUEST, LIST_OFFSETS_RESPONSE, body, _OFFSETS_AT_MOST)
    found = {}
    for topic in response["topics"]:
        for entry in topic["partitions"]:
            name = TopicPartition(topic["name"], entry["partition_index"])
            check_code(name, entry["error_code"])
            found[name] = entry["offset"]
    return found
