"""Sends each request twice: directly to a broker with limits, and through sluicegate to a broker without."""

import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from confluent_kafka.admin import AdminClient, NewTopic

from sluicegate.protocol.messages.produce import PRODUCE_RESPONSE
from tests.broker.eventually import eventually
from tests.broker.kafka import Kafka
from tests.broker.proxy_process import ProxyProcess
from tests.conformance.cases import ABSENT, TOPIC_KINDS, Topics
from tests.conformance.differences import without_diagnosis
from tests.wire.raw_client import CLOSED, PRODUCE, RawClient, produce_body, topic_data

PARTITIONS = 3
_RANGE = re.compile(r"within \[(-?\d+), (-?\d+)\]")
_CLOCK_MS = 60_000
_SILENT_SECONDS = 3
_NO_TOPICS_ID = bytes(range(1, 17))
# Settings that disable the broker's validation, so that only the proxy validates.
_VALIDATED_BY_TOPIC = ("message.timestamp.before.max.ms", "message.timestamp.after.max.ms", "cleanup.policy")
_UNVALIDATED = {"message.timestamp.after.max.ms": str(2**63 - 1)}


@dataclass(frozen=True)
class Request:
    """One request; each of `topics` names a kind of topic."""

    version: int
    topics: Topics
    acks: int = -1
    transactional_id: str | None = None


@dataclass
class Side:
    """One of the two paths: a connection that is reopened after a close, and the topic ids of its cluster."""

    address: str
    names: Mapping[str, str]
    ids: dict[str, bytes] = field(default_factory=dict)
    connection: RawClient | None = None

    def ask(self, request: Request) -> Any:
        """Send a request. Return the response or how the connection ended; with acks=0, whether it is still open."""
        client = self.connected()
        topics = [topic_data(self._key(kind, request.version), *parts) for kind, parts in request.topics]
        body = produce_body(request.version, topics, request.acks, request.transactional_id)
        asked = client.send(PRODUCE, request.version, body)
        if request.acks == 0:
            answer: Any = "open" if isinstance(client.api_versions(), dict) else CLOSED
        else:
            answer = client.response_to(asked, PRODUCE, request.version, PRODUCE_RESPONSE, _SILENT_SECONDS)
        if isinstance(answer, str):
            self.close()
        return answer

    def connected(self) -> RawClient:
        if self.connection is None:
            self.connection = RawClient(self.address)
        return self.connection

    def close(self) -> None:
        if self.connection is not None:
            self.connection.socket.close()
            self.connection = None

    def log_of(self, kind: str, partition: int) -> bytes:
        return self.connected().log_of(self.names[kind], partition)

    def _key(self, kind: str, version: int) -> str | bytes:
        name = self.names[kind]
        if version < 13:
            return name
        if kind not in self.ids:
            known = kind != ABSENT  # a metadata request would create the topic
            self.ids[kind] = self.connected().metadata(name)["topics"][0]["topic_id"] if known else _NO_TOPICS_ID
        return self.ids[kind]


class Pair:
    """Both paths, each with its own topic of every kind."""

    def __init__(self, label: str, validating: Kafka, trusting: Kafka, proxy: ProxyProcess) -> None:
        names = {kind: f"{label}-{kind}" for kind in (*TOPIC_KINDS, ABSENT)}
        _create(validating, {names[kind]: settings for kind, settings in TOPIC_KINDS.items()})
        unvalidated = {
            names[kind]: {k: v for k, v in settings.items() if k not in _VALIDATED_BY_TOPIC} | _UNVALIDATED
            for kind, settings in TOPIC_KINDS.items()
        }
        _create(trusting, unvalidated)
        self.direct = Side(validating.bootstrap, names)
        self.through = Side(f"127.0.0.1:{proxy.broker_port(1)}", names)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.direct.close()
        self.through.close()

    def compare(self, request: Request, now: int | None = None) -> tuple[Any, Any]:
        """Return both responses without fields that depend on time or cluster. `now`: the time of frozen clocks."""
        now = now or time.time_ns() // 1_000_000
        direct, through = self.direct.ask(request), self.through.ask(request)
        kinds = {name: kind for kind, name in self.direct.names.items()}
        return (
            _normalised(direct, now, kinds | _kinds_by_id(self.direct)),
            _normalised(_as_a_broker_says(through), now, kinds | _kinds_by_id(self.through)),
        )

    def differing_logs(self) -> list[str]:
        """Return the partitions with different bytes, or with different sizes if the broker sets the timestamps."""
        differing = []
        for kind in TOPIC_KINDS:
            for partition in range(PARTITIONS):
                direct, through = self.direct.log_of(kind, partition), self.through.log_of(kind, partition)
                if direct != through if kind != "append-time" else len(direct) != len(through):
                    differing.append(f"{kind}-{partition}: {len(direct)} and {len(through)} bytes")
        return differing


def versions_of(kafka_version: str) -> range:
    """Return the versions of Produce that a release accepts."""
    return range(0, 12) if kafka_version.startswith("3.") else range(3, 14)


def proxy_settings() -> dict[str, Any]:
    """Return the topic limits of the validating broker as proxy configuration, with the broker's framing."""
    topics = [
        {"match": f"*-{kind}", "framing": "broker", **{k: int(v) if v.isdigit() else v for k, v in settings.items()}}
        for kind, settings in TOPIC_KINDS.items()
    ]
    return {"topics": topics}


def _create(broker: Kafka, topics: Mapping[str, Mapping[str, str]]) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    kept = {"retention.ms": "-1"}  # old records must not be deleted during the test
    new = [NewTopic(name, PARTITIONS, 1, config=dict(config) | kept) for name, config in topics.items()]
    for future in admin.create_topics(new).values():
        future.result(30)
    for topic in topics:
        eventually(lambda topic=topic: _leads_all(broker, topic), what=f"a leader for {topic}")


def _leads_all(broker: Kafka, topic: str) -> bool:
    """Return whether the broker acts as leader of every partition of a new topic."""
    with RawClient(broker.bootstrap) as client:
        return all(client.fetch_error(topic, partition) == 0 for partition in range(PARTITIONS))


def _kinds_by_id(side: Side) -> dict[Any, str]:
    return {topic_id: kind for kind, topic_id in side.ids.items()}


def _normalised(answer: Any, now: int, kinds: Mapping[Any, str]) -> Any:
    """Return a comparable response: bounds relative to `now`, append times as one word, topics by kind, offsets only as
    present or absent (logs are compared separately). Topics and partitions are sorted; brokers order them by topic id.
    """
    if isinstance(answer, str):
        return answer
    for topic in answer["responses"]:
        topic["kind"] = kinds[topic.pop("topic_id", None) or topic.pop("name")]
        topic.pop("name", None)
        topic["partition_responses"].sort(key=lambda entry: entry["index"])
        for entry in topic["partition_responses"]:
            entry["base_offset"] = min(entry["base_offset"], 0)  # one difference must not cause all later differences
            if entry.get("log_append_time_ms", -1) > 0:
                entry["log_append_time_ms"] = "now"
            for error in entry.get("record_errors", []):
                error["batch_index_error_message"] = _without_clock(error["batch_index_error_message"], now)
    answer["responses"].sort(key=lambda topic: topic["kind"])
    return answer


def _as_a_broker_says(answer: Any) -> Any:
    """Return the response without the diagnosis in record errors about timestamps, a listed difference."""
    for topic in answer["responses"] if isinstance(answer, dict) else ():
        for entry in topic["partition_responses"]:
            for error in entry.get("record_errors", []):
                error["batch_index_error_message"] = without_diagnosis(error["batch_index_error_message"])
    return answer


def _without_clock(text: str, now: int) -> str:
    def describe_clock_bounds(found: re.Match[str]) -> str:
        bounds = [int(number) - now for number in found.groups()]
        return f"within {[round(bound / _CLOCK_MS) for bound in bounds]}"

    return _RANGE.sub(describe_clock_bounds, text)


def describe_request(request: Request) -> str:
    """Return a description from which a request can be rebuilt."""
    parts: Iterable[str] = (
        f"{kind}: {[(i, None if r is None else r.hex()) for i, r in entries]}" for kind, entries in request.topics
    )
    return f"v{request.version} acks {request.acks} id {request.transactional_id} {'; '.join(parts)}"
