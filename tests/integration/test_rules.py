"""With a real broker and real clients, each rule rejects violations and accepts good records."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from sluicegate.protocol.messages.produce import PRODUCE_RESPONSE
from tests.broker.eventually import eventually
from tests.broker.proxy_process import ProxyProcess
from tests.integration.topics import DEFAULTS, UNVALIDATED, create_topic
from tests.wire.batches import CODECS, LZ4, NONE, ZSTD, Rec, batch
from tests.wire.raw_client import PRODUCE, RawClient, produce_body, topic_data

INVALID_RECORD, POLICY_VIOLATION, INVALID_TIMESTAMP = 87, 44, 32
RULES: dict[str, list[dict[str, Any]]] = {
    "keyed": [{"name": "keyed", "key": {"required": True, "min_size": 1, "max_size": 4}}],
    "text": [{"name": "text", "value": {"utf8": True, "max_size": "1kB"}}],
    "headers": [
        {
            "name": "tenant",
            "headers": {"required": ["tenant"], "forbidden": ["debug"], "patterns": {"tenant": "/[a-z]+/"}},
        },
        {"name": "few", "headers": {"max_count": 2, "max_size": 20}},
    ],
    "few": [{"name": "few-records", "batch": {"max_records": 2}}],
    "order": [{"name": "order", "time": {"monotonic": True}, "mode": "observe"}],
    "mild": [{"name": "mild", "key": {"required": True}, "mode": "observe"}],
    "json": [{"name": "json", "value": {"json": {"duplicate_keys": "reject"}}}],
    "cel": [{"name": "positive", "cel": "value.amount > 0"}],
    "mail": [{"name": "mail", "cel": "value.email.matches('.+@.+')"}],
    "kept": [{"name": "prefix", "cel": "key.startsWith('k')", "on_outage": "forward"}],
    "tenant": [{"name": "tenant", "cel": "headers.tenant == 'acme' && size(value) == 2"}],
    "avro": [{"name": "order", "value": {"schema": {"file": "order.avsc", "format": "avro"}}}],
    "shape": [{"name": "shape", "value": {"schema": {"file": "shape.json", "format": "json"}}}],
    "proto": [{"name": "proto", "value": {"schema": {"file": "order.proto", "format": "protobuf", "message": "O"}}}],
    "typed": [
        {"name": "typed", "value": {"schema": {"file": "order.avsc", "format": "avro"}}, "cel": "value.id > 0"},
    ],
    "long": [
        {
            "name": "long",
            "value": {"schema": {"file": "order.proto", "format": "protobuf", "message": "O"}},
            "cel": "value.id.size() > 1",
        }
    ],
    "own": [{"name": "paid", "entry_point": "currency", "options": {"is": "EUR"}}],
    "seen": [{"name": "keyed", "key": {"required": True}}, {"name": "text", "value": {"utf8": True}}],
}
FILES = {
    "order.avsc": '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}',
    "shape.json": '{"type": "object", "required": ["id"], "properties": {"id": {"type": "integer", "minimum": 1}}}',
    "order.proto": 'syntax = "proto3"; message O { string id = 1; }',
    "our_rules.py": """from sluicegate.validation.rules.rule import Part

class Currency:
    parts = Part.HEADERS
    is_slow = False

    def __init__(self, options):
        self._wanted = options["is"].encode()

    def fault(self, record):
        return None if (b"currency", self._wanted) in record.headers else "it is paid in another currency"
""",
    "our_rules-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: our-rules\nVersion: 1\n",
    "our_rules-1.dist-info/entry_points.txt": "[sluicegate.rules]\ncurrency = our_rules:Currency\n",
}
"""Schemas, and an installed distribution with a custom rule."""
REQUESTS = [
    {"name": "all-acks", "match": {"topics": "acks-*"}, "acks": ["all"]},
    {"name": "zstd", "match": {"topics": "codec-*"}, "codecs": ["zstd", "lz4"]},
    {"name": "idempotent", "match": {"topics": "idem-*"}, "idempotent": True},
    {"name": "team", "match": {"topics": "team-*"}, "client_id": "team-*"},
    {"name": "small", "match": {"topics": "small-*"}, "max_batch_bytes": 200},
    {
        "name": "recent",
        "match": {"topics": "recent-*"},
        "software": [
            {"name": "librdkafka", "min_version": "999"},
            {"name": "confluent-kafka-python*", "min_version": 999},
        ],
    },
]


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@pytest.fixture(scope="module")
def proxy(kafka_bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyProcess]:
    """Yield a proxy with rules for each topic prefix."""
    topics: list[dict[str, Any]] = [{"match": f"{prefix}-*", "rules": rules} for prefix, rules in RULES.items()]
    topics[-1]["mode"] = "observe"
    folder = tmp_path_factory.mktemp("proxy")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    for prefix in ("avro", "shape", "proto", "typed", "long"):
        schema = RULES[prefix][0]["value"]["schema"]
        schema["file"] = str(folder / Path(schema["file"]).name)
    settings = {
        "defaults": DEFAULTS,
        "topics": topics,
        "requests": REQUESTS,
        "exempt": [{"client_id": "mirror-*"}, {"client_id": "loader", "topics": ["keyed-*"]}],
    }
    process = ProxyProcess(folder, kafka_bootstrap, settings)
    process.environment = process.environment | {"PYTHONPATH": str(folder)}
    try:
        yield process.start()
    finally:
        process.stop()


def test_one_large_record_delays_no_other_client(kafka_bootstrap: str, proxy: ProxyProcess) -> None:
    """This includes the interpreted modules, which need seconds to parse the record."""
    large = create_topic(kafka_bootstrap, UNVALIDATED | {"max.message.bytes": "20000000"}, prefix="json")
    small = create_topic(kafka_bootstrap, UNVALIDATED, prefix="plain")
    value = b'["' + b"a" * 8_000_000 + b'"'  # unterminated
    codes: list[int] = []

    def send() -> None:
        codes.extend(
            produce_entry(proxy, large, batch([Rec(now_ms(), value=value)], codec))["error_code"]
            for codec in (NONE, LZ4)
        )

    sender = threading.Thread(target=send)
    sender.start()
    slowest = 0.0
    with RawClient(f"127.0.0.1:{proxy.broker_port(1)}") as neighbour:
        while sender.is_alive():
            began = time.monotonic()
            neighbour.produce(9, [topic_data(small, (0, batch([Rec(now_ms())])))])
            slowest = max(slowest, time.monotonic() - began)
    assert codes == [INVALID_RECORD] * 2
    assert slowest < 0.5


def produce_entry(
    proxy: ProxyProcess, topic: str, data: bytes, acks: int = -1, client_id: str = "raw", software: bool = False
) -> Any:
    """Send a batch; return the partition's entry in the response. `software`: the client reports its name, `raw 1`."""
    with RawClient(f"127.0.0.1:{proxy.broker_port(1)}") as client:
        if software:
            client.api_versions(3)
        asked = client.send(PRODUCE, 9, produce_body(9, [topic_data(topic, (0, data))], acks), client_id)
        response = client.response_to(asked, PRODUCE, 9, PRODUCE_RESPONSE)
    assert isinstance(response, dict), response
    return response["responses"][0]["partition_responses"][0]


def log_of(bootstrap: str, topic: str) -> bytes:
    with RawClient(bootstrap) as client:
        return client.log_of(topic, 0)


TENANT = (b"tenant", b"acme")


@pytest.mark.parametrize("codec", [NONE, LZ4, ZSTD])
@pytest.mark.parametrize(
    ("prefix", "good", "bad", "words"),
    [
        ("keyed", Rec(0, b"k"), Rec(0, None), "rule keyed: the key is null; send a key"),
        ("keyed", Rec(0, b"1234"), Rec(0, b""), "rule keyed: the key has 0 bytes; at least 1 are required"),
        ("keyed", Rec(0, b"k", None), Rec(0, b"12345"), "rule keyed: the key has 5 bytes; at most 4 are allowed"),
        ("text", Rec(0, None, "é".encode()), Rec(0, b"k", b"ab\xff"), "is invalid UTF-8 at byte 2"),
        ("text", Rec(0, b"\xff", b"v" * 1000), Rec(0, b"k", b"v" * 1001), "at most 1000 are allowed"),
        ("headers", Rec(0, headers=[TENANT]), Rec(0), "rule tenant: header tenant is missing"),
        ("headers", Rec(0, headers=[TENANT]), Rec(0, headers=[TENANT, (b"debug", b"")]), "header debug is not allowed"),
        ("headers", Rec(0, headers=[TENANT]), Rec(0, headers=[(b"tenant", b"42")]), "header tenant does not match"),
        ("headers", Rec(0, headers=[TENANT] * 2), Rec(0, headers=[TENANT] * 3), "rule few: 3 headers, but at most 2"),
        ("headers", Rec(0, headers=[TENANT]), Rec(0, headers=[TENANT, (b"n", b"v" * 10)]), "headers of 21 bytes"),
        ("json", Rec(0, b"k", b'{"a": 1}'), Rec(0, b"k", b'{"a": 1, "a": 2}'), "rule json: the value is JSON with"),
        ("json", Rec(0, b"k", None), Rec(0, b"k", b"{} {}"), "rule json: the value is"),
        ("cel", Rec(0, b"k", b'{"amount": 1}'), Rec(0, b"k", b'{"amount": 0}'), "rule positive: "),
        ("mail", Rec(0, b"k", b'{"email": "a@b"}'), Rec(0, b"k", b'{"email": null}'), "of a type or size"),
        ("mail", Rec(0, b"k", b'{"email": "a@b"}'), Rec(0, b"k", None), "rule mail: the record has a value"),
        ("kept", Rec(0, b"k"), Rec(0, None), "rule prefix: the record has a value of a type"),
        (
            "tenant",
            Rec(0, b"k", '"éé"'.encode(), [(b"\xff", b"1"), TENANT]),
            Rec(0, b"k", '"é"'.encode(), [(b"\xff", b"1"), TENANT]),
            "rule tenant: not true of the record",
        ),
        ("avro", Rec(0, b"k", b"\x02"), Rec(0, b"k", b"\x02\x02"), "rule order: the value "),
        ("shape", Rec(0, b"k", b'{"id": 1}'), Rec(0, b"k", b'{"id": 0}'), "rule shape: the value does not match its"),
        ("shape", Rec(0, b"k", None), Rec(0, b"k", b"{}"), "rule shape: the value does not match its"),
        ("typed", Rec(0, b"k", b"\x02"), Rec(0, b"k", b"\x01"), "rule typed: not true of the record: value.id > 0"),
        ("long", Rec(0, b"k", b"\x0a\x02ab"), Rec(0, b"k", b"\x0a\x01a"), "rule long: not true of the record"),
        (
            "proto",
            Rec(0, b"k", b"\x0a\x01a"),
            Rec(0, b"k", b"\x0a\x05a"),
            "rule proto: the value does not match its Protobuf",
        ),
        ("own", Rec(0, headers=[(b"currency", b"EUR")]), Rec(0, headers=[(b"currency", b"USD")]), "rule paid: it is"),
    ],
)
def test_a_record_that_violates_a_rule_is_rejected_and_a_good_one_is_stored(
    kafka_bootstrap: str, proxy: ProxyProcess, codec: int, prefix: str, good: Rec, bad: Rec, words: str
) -> None:
    topic = create_topic(kafka_bootstrap, UNVALIDATED, prefix=prefix)
    good, bad = (Rec(now_ms(), each.key, each.value, each.headers) for each in (good, bad))

    rejected = produce_entry(proxy, topic, batch([good, bad], codec))
    taken = produce_entry(proxy, topic, batch([good], codec))

    assert (rejected["error_code"], taken["error_code"]) == (INVALID_RECORD, 0)
    (error,) = rejected["record_errors"]
    assert error["batch_index"] == 1
    assert words in error["batch_index_error_message"]
    assert words in rejected["error_message"]
    stored = log_of(kafka_bootstrap, topic)
    assert stored[61:] == batch([good], codec)[61:], "only the good record"
    (event,) = proxy.wait_for_violations(topic, 1)
    (sample,) = event["samples"]
    assert event["rule"] == sample["rule"] == event["rules"][0]["rule"]
    assert (event["mode"], event["reason"], event["bad_records"]) == ("reject", "rule_violated", 1)
    assert words in sample["diagnosis"]


def test_a_batch_of_too_many_records_is_rejected(kafka_bootstrap: str, proxy: ProxyProcess) -> None:
    topic = create_topic(kafka_bootstrap, UNVALIDATED, prefix="few")

    found = [produce_entry(proxy, topic, batch([Rec(now_ms())] * count)) for count in (2, 3, 500)]

    assert [entry["error_code"] for entry in found] == [0, INVALID_RECORD, INVALID_RECORD]
    assert "more than 2 records" in found[2]["error_message"]
    assert [error["batch_index"] for error in found[2]["record_errors"]] == [2]


def test_decreasing_timestamps_are_reported_and_stored(kafka_bootstrap: str, proxy: ProxyProcess) -> None:
    topic = create_topic(kafka_bootstrap, UNVALIDATED, prefix="order")
    now = now_ms()
    with RawClient(f"127.0.0.1:{proxy.broker_port(1)}") as client:
        for times in ((now - 5, now), (now,), (now - 7, now + 1)):
            response = client.produce(9, [topic_data(topic, (0, batch([Rec(time) for time in times])))])
            assert isinstance(response, dict)
            assert response["responses"][0]["partition_responses"][0]["error_code"] == 0

    (event,) = proxy.wait_for_violations(topic, 1)
    assert (event["mode"], event["rule"], event["samples"][0]["index"]) == ("observe", "order", 0)
    assert "7 ms before" in event["samples"][0]["diagnosis"]


def test_an_observed_rule_forwards_violations(kafka_bootstrap: str, proxy: ProxyProcess) -> None:
    topic = create_topic(kafka_bootstrap, UNVALIDATED, prefix="mild")

    assert produce_entry(proxy, topic, batch([Rec(now_ms(), None)]))["error_code"] == 0

    (event,) = proxy.wait_for_violations(topic, 1)
    assert (event["mode"], event["rule"]) == ("observe", "mild")
    assert 'sluicegate_rule_batches_total{outcome="accepted",rule="mild"} 1' in proxy.get("/metrics")[1]
    assert "rule=mild" in proxy.wait_for_line("mild") or '"rule"' in proxy.wait_for_line("mild")


def test_the_brokers_error_codes_come_before_those_of_rules(kafka_bootstrap: str, proxy: ProxyProcess) -> None:
    topic = create_topic(kafka_bootstrap, UNVALIDATED, prefix="keyed")

    assert produce_entry(proxy, topic, batch([Rec(now_ms() * 1000, None)]))["error_code"] == INVALID_TIMESTAMP
    assert produce_entry(proxy, topic, batch([Rec(now_ms(), None)], crc=1))["error_code"] == 2


def test_rules_on_an_observed_topic_leave_the_log_as_without_a_proxy(kafka_bootstrap: str, proxy: ProxyProcess) -> None:
    """The same mixed stream; the broker itself rejects parts of it."""
    seen, direct = (create_topic(kafka_bootstrap, UNVALIDATED, prefix=prefix) for prefix in ("seen", "direct"))
    now = now_ms()
    kinds = [[Rec(now)], [Rec(now, None), Rec(now)], [Rec(now, b"k", b"\xff")], [Rec(now, None, b"\xff"), Rec(1)]]
    stream = [batch(records, codec) for codec in CODECS.values() for records in kinds]
    stream += [batch([Rec(now)], crc=7), batch([Rec(now, None)], count=2, last_offset_delta=1), b""]

    def produce_codes(address: str, topic: str) -> list[int]:
        found = []
        with RawClient(address) as client:
            for each in stream:
                response = client.produce(9, [topic_data(topic, (0, each))])
                assert isinstance(response, dict)
                found.append(response["responses"][0]["partition_responses"][0]["error_code"])
        return found

    through = produce_codes(f"127.0.0.1:{proxy.broker_port(1)}", seen)

    assert through == produce_codes(kafka_bootstrap, direct)
    assert log_of(kafka_bootstrap, seen) == log_of(kafka_bootstrap, direct)
    events = proxy.wait_for_violations(seen, 3 * len(CODECS) + 3)
    assert {event["mode"] for event in events} == {"observe"}
    assert {event.get("rule") for event in events} == {"keyed", "text", None}


@pytest.mark.parametrize(
    ("prefix", "good", "bad", "advice"),
    [
        ("acks", {}, {"acks": 1}, "rule all-acks: acks=1 is not allowed for this topic; set acks=all"),
        (
            "codec",
            {"codec": ZSTD},
            {},
            "rule zstd: compression none is not allowed for this topic; set compression.type=lz4",
        ),
        ("idem", {"producer_id": 7}, {}, "rule idempotent: only idempotent producers may write to this topic"),
        (
            "team",
            {"client_id": "team-x"},
            {},
            "rule team: the client id is not allowed for this topic; set a client.id",
        ),
        ("small", {}, {"value": b"v" * 200}, "this topic allows at most 200: set a lower batch.size"),
    ],
)
def test_rules_for_requests_reject_by_settings_and_client(
    kafka_bootstrap: str,
    proxy: ProxyProcess,
    prefix: str,
    good: dict[str, Any],
    bad: dict[str, Any],
    advice: str,
) -> None:
    topic = create_topic(kafka_bootstrap, UNVALIDATED, prefix=prefix)

    def send_batch(codec: int = NONE, producer_id: int = -1, value: bytes = b"v", **how: Any) -> Any:
        state = {} if producer_id < 0 else {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": 0}
        return produce_entry(proxy, topic, batch([Rec(now_ms(), b"k", value)], codec, **state), **how)

    taken, rejected = send_batch(**good), send_batch(**bad)

    assert (taken["error_code"], rejected["error_code"]) == (0, POLICY_VIOLATION)
    assert advice in rejected["error_message"]
    (event,) = proxy.wait_for_violations(topic, 1)
    assert (event["error"], event["reason"]) == ("POLICY_VIOLATION", "request_rule_violated")


def test_an_old_library_is_rejected_with_the_version_to_use(kafka_bootstrap: str, proxy: ProxyProcess) -> None:
    """librdkafka fails each record of the batch permanently, with the message that names the fix."""
    topic = create_topic(kafka_bootstrap, UNVALIDATED, prefix="recent")
    errors: list[Any] = []
    producer = confluent_kafka.Producer({"bootstrap.servers": proxy.bootstrap})
    producer.produce(topic, b"v", on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(30) == 0

    assert [error.code() for error in errors] == [POLICY_VIOLATION]
    assert produce_entry(proxy, topic, batch([Rec(now_ms())]), software=True)["error_code"] == 0
    (event,) = proxy.wait_for_violations(topic, 1)
    assert "is too old for this topic; use 999 or later" in event["message"]


def test_an_exempt_client_is_validated_only_by_the_broker(kafka_bootstrap: str, proxy: ProxyProcess) -> None:
    topic = create_topic(kafka_bootstrap, UNVALIDATED, prefix="keyed")
    before = proxy.metric("sluicegate_exempt_batches_total")

    mirrored = produce_entry(proxy, topic, batch([Rec(1, None)]), client_id="mirror-1")
    other = produce_entry(proxy, topic, batch([Rec(1, None)]), client_id="mirror")

    assert (mirrored["error_code"], other["error_code"]) == (0, INVALID_TIMESTAMP)
    assert proxy.metric("sluicegate_exempt_batches_total") == before + 1
    proxy.wait_for_line("clients are exempt")


def test_an_exemption_for_topics_is_for_no_other_topic(kafka_bootstrap: str, proxy: ProxyProcess) -> None:
    """Exempt batches are also counted if the topic was validated for another client on the same path."""
    keyed, other = (create_topic(kafka_bootstrap, UNVALIDATED, prefix=prefix) for prefix in ("keyed", "plain"))
    before = proxy.metric("sluicegate_exempt_batches_total")

    codes = [
        produce_entry(proxy, topic, batch([Rec(time, b"k")]), client_id=client_id)["error_code"]
        for topic, time, client_id in (
            (keyed, now_ms(), "app"),
            (keyed, now_ms(), "loader"),
            (keyed, 1, "loader"),
            (keyed, 1, "app"),
            (other, 1, "loader"),
        )
    ]

    assert codes == [0, 0, 0, INVALID_TIMESTAMP, INVALID_TIMESTAMP]
    assert proxy.metric("sluicegate_exempt_batches_total") == before + 2


def test_an_exempt_client_is_counted_by_known_topics(kafka_bootstrap: str, proxy: ProxyProcess) -> None:
    topic = create_topic(kafka_bootstrap, UNVALIDATED, prefix="plain")
    good = batch([Rec(now_ms())])
    before = proxy.metric("sluicegate_exempt_batches_total"), proxy.metric("sluicegate_accepted_batches_total")
    for client_id in ("app", "mirror-2"):
        with RawClient(f"127.0.0.1:{proxy.broker_port(1)}") as client:
            for _ in range(5):
                client.send(PRODUCE, 9, produce_body(9, [topic_data(topic, (0, good))]), client_id)
                assert isinstance(client.receive(), bytes)

    after = proxy.metric("sluicegate_exempt_batches_total"), proxy.metric("sluicegate_accepted_batches_total")
    assert (after[0] - before[0], after[1] - before[1]) == (5, 5)


@pytest.mark.parametrize("transactional", [False, True])
def test_stateful_producers_continue_after_a_rejection(
    kafka_bootstrap: str, proxy: ProxyProcess, transactional: bool
) -> None:
    """Each record is its own batch; records without a key fail, the others are stored."""
    topic = create_topic(kafka_bootstrap, UNVALIDATED, prefix="keyed")
    settings: dict[str, Any] = {"bootstrap.servers": proxy.bootstrap, "linger.ms": 0, "enable.idempotence": True}
    if transactional:
        settings["transactional.id"] = topic
    producer = confluent_kafka.Producer(settings)
    failed: list[tuple[bytes, int]] = []
    if transactional:
        producer.init_transactions(30)
        producer.begin_transaction()
    for number in range(9):
        producer.produce(topic, b"%d" % number, key=b"k", partition=0)
        assert producer.flush(30) == 0
    if transactional:
        producer.commit_transaction(30)
    else:
        producer.produce(
            topic, b"x", partition=0, on_delivery=lambda error, m: failed.append((m.value(), error.code()))
        )
        assert producer.flush(30) == 0
        assert failed == [(b"x", INVALID_RECORD)]

    assert b"8" in log_of(kafka_bootstrap, topic)
    eventually(lambda: len(proxy.violations_of(topic)) == len(failed))
