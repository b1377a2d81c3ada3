"""For each reason in docs/reasons.md, a proxy emits the event, the metric and the client's error on that page."""

import re
import struct
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from sluicegate.protocol.errors import ErrorCode
from sluicegate.validation.verdict import Reason
from tests.broker.kafka import Kafka
from tests.broker.ports import free_ports
from tests.broker.proxy_process import ProxyProcess
from tests.framing.cases import AMBIGUOUS, UNREADABLE
from tests.integration.test_modes import error_code_in, make_topic_known, now_ms
from tests.integration.topics import DEFAULTS, UNVALIDATED, create_topic
from tests.oracle.kafka_java import KAFKA_OLD
from tests.registry.stand_in import StandIn, http_response
from tests.wire.batches import GZIP, LZ4, Rec, batch, message, wrapper
from tests.wire.raw_client import RawClient, topic_data

PAGE = Path(__file__).parents[2] / "docs" / "reasons.md"
CONTROL, LOG_APPEND_TIME = 0x20, 0x08
MANY_HEADERS = 20
UNREADABLE_SCHEMA = b'{"schema": "{\\"type\\": \\"nothing\\"}"}'


@dataclass(frozen=True, slots=True)
class ReasonCause:
    """What a client sends for one reason: `records(now)`, in `version`, to a topic with these settings and policy.

    `forwarded`: the batch is stored, so that the client gets no error.
    """

    records: Callable[[int], bytes]
    version: int = 9
    settings: dict[str, str] = field(default_factory=lambda: UNVALIDATED)
    policy: dict[str, Any] = field(default_factory=dict)
    acks: int = -1
    forwarded: bool = False


def good_batch(now: int, **changes: Any) -> bytes:
    return batch([Rec(now), Rec(now)], **changes)


def old_message(now: int) -> bytes:
    return message(1, b"v", timestamp=now)


def schema_rule(registry: str) -> dict[str, Any]:
    value = {"schema": {"registry": registry, "subject": "any"}}
    return {"rules": [{"name": "body", "value": value, "on_outage": "retriable", "on_schema_error": "retriable"}]}


def batch_with_schema_id(now: int) -> bytes:
    return batch([Rec(now, value=struct.pack(">bi", 0, 7) + b"contents")])


CAUSES: dict[Reason, ReasonCause] = {
    Reason.TIMESTAMP_TOO_OLD: ReasonCause(lambda now: batch([Rec(now // 1000)])),
    Reason.TIMESTAMP_IN_FUTURE: ReasonCause(lambda now: batch([Rec(now * 1000)])),
    Reason.REHEARSED_BOUND: ReasonCause(
        lambda now: batch([Rec(now + 600_000)]),
        policy={"rehearse": {"message.timestamp.after.max.ms": ["1m"]}},
        forwarded=True,
    ),
    Reason.LOG_APPEND_TIME: ReasonCause(
        lambda now: good_batch(now, flags=LOG_APPEND_TIME), settings={"message.timestamp.type": "LogAppendTime"}
    ),
    Reason.NULL_KEY: ReasonCause(
        lambda now: batch([Rec(now, key=None)]), settings={"cleanup.policy": "compact", **UNVALIDATED}
    ),
    Reason.INNER_MAGIC: ReasonCause(lambda now: wrapper(1, [message(0, b"v")], GZIP, timestamp=now), version=2),
    Reason.NESTED_COMPRESSION: ReasonCause(
        lambda now: wrapper(1, [wrapper(1, [old_message(now)], GZIP, timestamp=now)], GZIP, timestamp=now), version=2
    ),
    Reason.NO_BATCH: ReasonCause(lambda _now: b""),
    Reason.UNSUPPORTED_MAGIC: ReasonCause(old_message),
    Reason.SEVERAL_BATCHES: ReasonCause(lambda now: good_batch(now) + good_batch(now)),
    Reason.BASE_OFFSET: ReasonCause(lambda now: good_batch(now, base_offset=5)),
    Reason.BATCH_TOO_LARGE: ReasonCause(
        lambda now: batch([Rec(now, value=bytes(2000))]), settings={"max.message.bytes": "1000", **UNVALIDATED}
    ),
    Reason.CRC_MISMATCH: ReasonCause(lambda now: good_batch(now, crc=1)),
    Reason.UNSUPPORTED_CODEC: ReasonCause(lambda now: good_batch(now, attributes=5)),
    Reason.DAMAGED_PAYLOAD: ReasonCause(lambda now: batch([Rec(now)], LZ4, compressed=b"this is not compressed")),
    Reason.DECOMPRESSION_LIMIT: ReasonCause(lambda now: batch([Rec(now, value=bytes(2_000_000))], GZIP)),
    Reason.TOO_MANY_HEADERS: ReasonCause(lambda now: batch([Rec(now, headers=[(b"h", b"")] * (MANY_HEADERS + 1))])),
    Reason.RECORD_COUNT: ReasonCause(lambda now: good_batch(now, last_offset_delta=9)),
    Reason.CONTROL_BATCH: ReasonCause(lambda now: good_batch(now, flags=CONTROL)),
    Reason.MISSING_SEQUENCE: ReasonCause(lambda now: good_batch(now, producer_id=7, producer_epoch=0)),
    Reason.RECORD_FORMAT: ReasonCause(
        lambda now: batch([], payload=b"\x80", count=1, base_timestamp=now, max_timestamp=now)
    ),
    Reason.AMBIGUOUS_FRAMING: ReasonCause(AMBIGUOUS["a length +5, lz4"]),
    Reason.UNREADABLE_FRAMING: ReasonCause(UNREADABLE["trailing bytes, lz4"], forwarded=True),
    Reason.UNKNOWN_TOPIC_ID: ReasonCause(good_batch, version=13),
    Reason.OWN_TOPIC: ReasonCause(good_batch),
    Reason.RULE_VIOLATED: ReasonCause(good_batch, policy={"rules": [{"name": "key", "cel": "key == 'other'"}]}),
    Reason.REQUEST_RULE_VIOLATED: ReasonCause(good_batch, acks=1),
    Reason.DEPENDENCY_UNAVAILABLE: ReasonCause(batch_with_schema_id, policy=schema_rule("closed")),
    Reason.SCHEMA_UNUSABLE: ReasonCause(batch_with_schema_id, policy=schema_rule("broken")),
}

METRIC_RULES: dict[Reason, str | None] = {
    Reason.RULE_VIOLATED: "key",
    Reason.REQUEST_RULE_VIOLATED: "acks",
    Reason.REHEARSED_BOUND: None,
}
"""Reasons whose metric names the rule itself. None means that another metric counts the reason."""


def topic_prefix(reason: Reason) -> str:
    return reason.value.replace("_", "-")


def documented_reasons() -> dict[str, tuple[str, set[int]]]:
    """Return the page's text and error codes by the code of the reason."""
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| (.+?) \| .+ \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return {code: (text, {int(number) for number in re.findall(r"-?\d+", errors)}) for code, text, errors in rows}


def violated_rules(proxy: ProxyProcess) -> set[str]:
    """Return the values of the label `rule` of the metric that counts violations."""
    lines = [line for line in proxy.get("/metrics")[1].splitlines() if line.startswith("sluicegate_violations_total{")]
    return {rule for line in lines for rule in re.findall(r'rule="(.+?)"', line)}


@pytest.fixture(scope="module")
def settings() -> Iterator[dict[str, Any]]:
    """Yield the configuration of a proxy with a policy for each reason."""
    acks = {"name": "acks", "match": {"topics": f"{topic_prefix(Reason.REQUEST_RULE_VIOLATED)}-*"}, "acks": ["all"]}
    with StandIn(lambda client, _head: client.sendall(http_response("200 OK", UNREADABLE_SCHEMA))) as broken:
        yield {
            "defaults": DEFAULTS,
            "topics": [{"match": f"{topic_prefix(reason)}-*", **cause.policy} for reason, cause in CAUSES.items()],
            "requests": [acks],
            "registries": {"closed": {"url": f"http://127.0.0.1:{free_ports(1)}"}, "broken": {"url": broken.url}},
            "limits": {"max_request_headers": MANY_HEADERS, "max_decompressed_bytes": 1_000_000},
        }


@pytest.fixture(scope="module")
def proxy(
    kafka_bootstrap: str, settings: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, ProxyProcess]]:
    """Yield the newest broker's address, and a proxy that shares its state in a topic."""
    state = create_topic(kafka_bootstrap, {"cleanup.policy": "compact"}, 1, prefix="state")
    process = ProxyProcess(tmp_path_factory.mktemp("proxy"), kafka_bootstrap, {**settings, "state": {"topic": state}})
    try:
        yield kafka_bootstrap, process.start()
    finally:
        process.stop()


@pytest.fixture(scope="module")
def old_proxy(settings: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, ProxyProcess]]:
    """Yield the address of a broker that still accepts messages of magic 0 and 1, and its proxy."""
    broker = Kafka(KAFKA_OLD, tmp_path_factory.mktemp("broker"))
    process = None
    try:
        process = ProxyProcess(tmp_path_factory.mktemp("proxy"), broker.start().bootstrap, settings)
        yield broker.bootstrap, process.start()
    finally:
        if process is not None:
            process.stop()
        broker.stop()


def test_every_documented_reason_has_a_test_case() -> None:
    assert list(documented_reasons()) == [reason.value for reason in CAUSES]


@pytest.mark.parametrize("reason", CAUSES, ids=str)
def test_a_running_proxy_reports_each_reason_as_documented(reason: Reason, request: pytest.FixtureRequest) -> None:
    cause = CAUSES[reason]
    bootstrap, proxy = request.getfixturevalue("old_proxy" if cause.version < 3 else "proxy")
    if reason is Reason.OWN_TOPIC:
        topic = key = proxy.config["state"]["topic"]
    elif reason is Reason.UNKNOWN_TOPIC_ID:
        topic, key = None, uuid.uuid4().bytes
    else:
        topic = key = create_topic(bootstrap, cause.settings, 1, prefix=topic_prefix(reason))
        make_topic_known(proxy, topic)
    text, errors = documented_reasons()[reason.value]

    with RawClient(f"127.0.0.1:{proxy.broker_port(1)}") as client:
        code = error_code_in(client.produce(cause.version, [topic_data(key, (0, cause.records(now_ms())))], cause.acks))

    assert code in ({0} if cause.forwarded else errors)
    (event,) = proxy.wait_for_violations(topic, 1)
    assert (event["reason"], event["reason_text"]) == (reason.value, text)
    assert ErrorCode[event["error"]] in errors
    assert METRIC_RULES.get(reason, reason.value) in {*violated_rules(proxy), None}
