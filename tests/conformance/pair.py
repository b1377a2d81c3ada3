"""One request, two ways: straight to a broker that has the limits, and through sluicegate to one that has none."""

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
# What a broker's own topic must not validate, so that only the proxy does.
_VALIDATED_BY_TOPIC = ("message.timestamp.before.max.ms", "message.timestamp.after.max.ms", "cleanup.policy")
_UNVALIDATED = {"message.timestamp.after.max.ms": str(2**63 - 1)}


@dataclass(frozen=True)
class Request:
    """What is sent; `topics` name a kind of topic each."""

    version: int
    topics: Topics
    acks: int = -1
    transactional_id: str | None = None


@dataclass
class Side:
    """One of the two ways: a connection that is opened again when it was closed, and topic ids as they are there."""

    address: str
    names: Mapping[str, str]
    ids: dict[str, bytes] = field(default_factory=dict)
    connection: RawClient | None = None

    def ask(self, request: Request) -> Any:
        """The answer, or how the connection ended; behind acks=0, whether the connection still serves."""
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
            known = kind != ABSENT  # asking for a topic that is not there would make it
            self.ids[kind] = self.connected().metadata(name)["topics"][0]["topic_id"] if known else _NO_TOPICS_ID
        return self.ids[kind]


class Pair:
    """Both ways, with a topic of every kind of their own."""

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
        """Both answers, without what two moments and two clusters cannot share; `now` where clocks stand still."""
        now = now or time.time_ns() // 1_000_000
        direct, through = self.direct.ask(request), self.through.ask(request)
        kinds = {name: kind for kind, name in self.direct.names.items()}
        return (
            _normalised(direct, now, kinds | _kinds_by_id(self.direct)),
            _normalised(_as_a_broker_says(through), now, kinds | _kinds_by_id(self.through)),
        )

    def differing_logs(self) -> list[str]:
        """Which partitions do not hold the same bytes; where the broker sets the time, not the same sizes."""
        differing = []
        for kind in TOPIC_KINDS:
            for partition in range(PARTITIONS):
                direct, through = self.direct.log_of(kind, partition), self.through.log_of(kind, partition)
                if direct != through if kind != "append-time" else len(direct) != len(through):
                    differing.append(f"{kind}-{partition}: {len(direct)} and {len(through)} bytes")
        return differing


def versions_of(kafka_version: str) -> range:
    """Which versions of Produce a release accepts."""
    return range(0, 12) if kafka_version.startswith("3.") else range(3, 14)


def proxy_settings() -> dict[str, Any]:
    """The limits that topics of the validating broker have, for the proxy's configuration, and no stricter framing."""
    topics = [
        {"match": f"*-{kind}", "framing": "broker", **{k: int(v) if v.isdigit() else v for k, v in settings.items()}}
        for kind, settings in TOPIC_KINDS.items()
    ]
    return {"topics": topics}


def _create(broker: Kafka, topics: Mapping[str, Mapping[str, str]]) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    kept = {"retention.ms": "-1"}  # old records are sent, and must not be cleared away meanwhile
    new = [NewTopic(name, PARTITIONS, 1, config=dict(config) | kept) for name, config in topics.items()]
    for future in admin.create_topics(new).values():
        future.result(30)
    for topic in topics:
        eventually(lambda topic=topic: _leads_all(broker, topic), what=f"a leader for {topic}")  # type: ignore[misc]


def _leads_all(broker: Kafka, topic: str) -> bool:
    """Whether the broker has taken up every partition of a new topic."""
    with RawClient(broker.bootstrap) as client:
        return all(client.fetch_error(topic, partition) == 0 for partition in range(PARTITIONS))


def _kinds_by_id(side: Side) -> dict[Any, str]:
    return {topic_id: kind for kind, topic_id in side.ids.items()}


def _normalised(answer: Any, now: int, kinds: Mapping[Any, str]) -> Any:
    """Bounds as distances from `now`, append times as one word, topics by kind, offsets only as there or not (the
    comparison of the logs holds them). A broker's order of topics and partitions hangs on topic ids: sorted.
    """
    if isinstance(answer, str):
        return answer
    for topic in answer["responses"]:
        topic["kind"] = kinds[topic.pop("topic_id", None) or topic.pop("name")]
        topic.pop("name", None)
        topic["partition_responses"].sort(key=lambda entry: entry["index"])
        for entry in topic["partition_responses"]:
            entry["base_offset"] = min(entry["base_offset"], 0)  # one difference must not make all later ones
            if entry.get("log_append_time_ms", -1) > 0:
                entry["log_append_time_ms"] = "now"
            for error in entry.get("record_errors", []):
                error["batch_index_error_message"] = _without_clock(error["batch_index_error_message"], now)
    answer["responses"].sort(key=lambda topic: topic["kind"])
    return answer


def _as_a_broker_says(answer: Any) -> Any:
    """Without what is listed as a difference in every record error about a time."""
    for topic in answer["responses"] if isinstance(answer, dict) else ():
        for entry in topic["partition_responses"]:
            for error in entry.get("record_errors", []):
                error["batch_index_error_message"] = without_diagnosis(error["batch_index_error_message"])
    return answer


def _without_clock(text: str, now: int) -> str:
    def as_distances(found: re.Match[str]) -> str:
        bounds = [int(number) - now for number in found.groups()]
        return f"within {[round(bound / _CLOCK_MS) for bound in bounds]}"

    return _RANGE.sub(as_distances, text)


def described(request: Request) -> str:
    """A request as one can build it again."""
    parts: Iterable[str] = (
        f"{kind}: {[(i, None if r is None else r.hex()) for i, r in entries]}" for kind, entries in request.topics
    )
    return f"v{request.version} acks {request.acks} id {request.transactional_id} {'; '.join(parts)}"
