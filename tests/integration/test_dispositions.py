"""Dispositions that store bad records work with producers of each kind on a real broker."""

import hmac
import io
import json
import os
import time
import uuid
from collections.abc import Iterator

import confluent_kafka
import fastavro
import pytest

from tests.broker.kafka import Kafka
from tests.broker.proxy_process import ProxyProcess
from tests.framing.consumers import CONSUMERS, LAST
from tests.integration.clients import CLIENTS, IDEMPOTENT, TRANSACTIONAL, Client, Sent
from tests.integration.strict_broker import Kept, create_topic_on_node, read_records
from tests.integration.topics import DEFAULTS
from tests.wire.batches import NONE, ZSTD, Rec, batch
from tests.wire.raw_client import RawClient, topic_data

_MODES = (IDEMPOTENT, TRANSACTIONAL)
# Each client in one mode, every second client in transactions. With SLUICEGATE_THOROUGH, all clients in both modes.
CLIENTS_AND_MODES = [
    pytest.param(kind, mode, id=f"{kind.name}-{mode}")
    for number, kind in enumerate(CLIENTS)
    for mode in (_MODES if os.environ.get("SLUICEGATE_THOROUGH") else (_MODES[number % 2],))
]

OK = "ok"
KEY = "0123456789abcdef-test"
AVRO = {
    "type": "record",
    "name": "Customer",
    "fields": [
        {"name": "mail", "type": ["null", "string"], "confluent:tags": ["PII"]},
        {"name": "city", "type": "string"},
    ],
}


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@pytest.fixture(scope="module")
def proxy(strict_kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyProcess]:
    create_topic_on_node(strict_kafka, 1, "copies")
    key = tmp_path_factory.mktemp("key") / "key"
    key.write_text(KEY + "\n")
    sensitive = [
        {"name": "mail", "action": "mask", "fields": ["customer.mail"]},
        {"name": "card", "action": "hash", "fields": ["cards.number"], "key_file": str(key)},
    ]
    schema = tmp_path_factory.mktemp("schema") / "customer.avsc"
    schema.write_text(json.dumps(AVRO))
    tagged = {"name": "pii", "action": "hash", "tags": ["PII"], "key_file": str(key)}
    tagged |= {"schema": {"file": str(schema), "format": "avro"}}
    brief = [{"name": "brief", "value": {"max_size": 4}}]
    topics = [
        {"match": "avro-*", "mode": "observe", "sensitive": [tagged]},
        {"match": "copied-*", "mode": "observe", "quarantine": "copies", "rules": brief},
        {"match": "marked-*", "mode": "mark", "rules": brief},
        {"match": "masked-*", "mode": "observe", "sensitive": sensitive},
        {"match": "stuck-*", "mode": "observe", "quarantine": "copies-gone"},
    ]
    settings = {"defaults": DEFAULTS, "topics": topics}
    process = ProxyProcess(tmp_path_factory.mktemp("proxy"), strict_kafka.nodes[0].address, settings)
    try:
        yield process.start()
    finally:
        process.stop()


def new_topic(kafka: Kafka, kind: str) -> str:
    # The proxy's policy is stricter than the broker's own, so that the broker stores the bad records.
    return create_topic_on_node(kafka, 1, f"{kind}-{uuid.uuid4().hex[:8]}", message_timestamp_type="CreateTime")


def last_header_value(record: Kept, name: str) -> str | None:
    values = [value for key, value in record[2] if key == f"sluicegate.{name}"]
    return None if not values else (values[-1] or b"").decode()


@pytest.mark.long
@pytest.mark.parametrize(("kind", "mode"), CLIENTS_AND_MODES)
def test_bad_records_are_stored_and_copied(kind: Client, mode: str, strict_kafka: Kafka, proxy: ProxyProcess) -> None:
    topic = new_topic(strict_kafka, "copied")
    sent = [Sent("good", now_ms()), Sent("old", 5), Sent("longer", now_ms()), Sent("oldest", 5), Sent("fine", now_ms())]

    outcomes = kind.send(proxy.bootstrap, topic, sent, "lz4", mode)

    assert outcomes == [OK] * 5
    stored = sorted(value or b"" for _, value, _ in read_records(strict_kafka, topic, 5))
    assert stored == [b"fine", b"good", b"longer", b"old", b"oldest"]
    copies = [each for each in read_records(strict_kafka, "copies", 3) if last_header_value(each, "topic") == topic]
    assert {(each[1], *(last_header_value(each, name) for name in ("copy", "reason", "rule"))) for each in copies} == {
        (b"old", "true", "timestamp_too_old", None),
        (b"longer", "true", "rule_violated", "brief"),
        (b"oldest", "true", "timestamp_too_old", "brief"),
    }
    assert len(copies) == 3
    assert {each["mode"] for each in proxy.wait_for_violations(topic, 1)} == {"copy"}


@pytest.mark.long
def test_an_idempotent_producer_retries_until_copies_can_be_written(strict_kafka: Kafka, proxy: ProxyProcess) -> None:
    topic = new_topic(strict_kafka, "stuck")
    outcomes: dict[int, object] = {}
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": proxy.bootstrap, "enable.idempotence": True, "batch.num.messages": 1, "linger.ms": 0}
    )
    for i in range(12):
        producer.produce(
            topic,
            f"{i}".encode(),
            partition=0,
            timestamp=5 if i % 3 == 2 else now_ms(),
            on_delivery=lambda error, _, i=i: outcomes.__setitem__(i, error),
        )
    producer.poll(0)
    until = time.monotonic() + 60
    while proxy.metric("sluicegate_quarantine_failures_total") == 0 and time.monotonic() < until:
        producer.poll(0.1)
    create_topic_on_node(strict_kafka, 1, "copies-gone")

    assert producer.flush(120) == 0
    assert outcomes == dict.fromkeys(range(12))
    assert [int(value or b"") for _, value, _ in read_records(strict_kafka, topic, 12)] == list(range(12))
    assert {int(value or b"") for _, value, _ in read_records(strict_kafka, "copies-gone", 4)} == {2, 5, 8, 11}


@pytest.mark.long
@pytest.mark.parametrize(("kind", "mode"), CLIENTS_AND_MODES)
def test_bad_records_are_stored_with_marks(kind: Client, mode: str, strict_kafka: Kafka, proxy: ProxyProcess) -> None:
    topic = new_topic(strict_kafka, "marked")
    sent = [Sent("good", now_ms()), Sent("old", 5), Sent("too long", now_ms()), Sent("fine", now_ms())]

    outcomes = kind.send(proxy.bootstrap, topic, sent, "lz4", mode)

    assert outcomes == [OK] * 4
    assert kind.read(proxy.bootstrap, topic, 4) == [each.value for each in sent]
    found = read_records(strict_kafka, topic, 4)
    assert [
        (record[1], last_header_value(record, "reason"), last_header_value(record, "rule")) for record in found
    ] == [
        (b"good", None, None),
        (b"old", "timestamp_too_old", None),
        (b"too long", "rule_violated", "brief"),
        (b"fine", None, None),
    ]
    assert {event["mode"] for event in proxy.wait_for_violations(topic, 2)} == {"mark"}


def test_no_client_reads_a_forged_mark(strict_kafka: Kafka, proxy: ProxyProcess) -> None:
    """librdkafka's clients read a header name up to its first NUL. Names that differ in case are different names."""
    topic = new_topic(strict_kafka, "marked")
    names = [
        b"sluicegate.rule",
        b"sluicegate.reason",
        b"sluicegate.reason\0",
        b"sluicegate.rule\0x",
        b"Sluicegate.Rule",
    ]
    forged = [(name, value) for name in names for value in (b"forged", b"", None)]
    records = [Rec(now_ms(), b"k", value, forged) for value in (b"good", b"too long")]

    with RawClient(f"127.0.0.1:{proxy.broker_port(1)}") as client:
        for codec in (NONE, ZSTD):
            response = client.produce(9, [topic_data(topic, (0, batch(records, codec)))])
            assert response["responses"][0]["partition_responses"][0]["error_code"] == 0

    found = read_records(strict_kafka, topic, 4)
    marks = [
        [header for header in headers if header[0] in {"sluicegate.rule", "sluicegate.reason"}] for *_, headers in found
    ]
    assert marks == [[], [("sluicegate.reason", b"rule_violated"), ("sluicegate.rule", b"brief")]] * 2
    assert {sum(value == b"forged" for _, value in headers) for *_, headers in found} == {len(names)}


def test_a_batch_that_grows_beyond_the_topics_size_is_rejected_as_by_the_broker(
    strict_kafka: Kafka, proxy: ProxyProcess
) -> None:
    """The response equals that of a broker to an unmarked batch that is one byte too large."""
    topic = create_topic_on_node(strict_kafka, 1, f"marked-{uuid.uuid4().hex[:8]}", max_message_bytes="100")
    too_long = batch([Rec(now_ms(), b"k", b"12345")])
    assert len(too_long) < 100 < len(batch([Rec(now_ms(), b"k", b"1234" * 20)]))

    with RawClient(f"127.0.0.1:{proxy.broker_port(1)}") as client:
        codes = [
            client.produce(9, [topic_data(topic, (0, each))])["responses"][0]["partition_responses"][0]["error_code"]
            for each in (too_long, batch([Rec(now_ms(), b"k", b"1234")]))
        ]
    with RawClient(strict_kafka.nodes[0].address) as direct:
        large = batch([Rec(now_ms(), b"k", b"1234" * 20)])
        response = direct.produce(9, [topic_data(topic, (0, large))])

    assert codes == [10, 0]
    assert response["responses"][0]["partition_responses"][0]["error_code"] == 10
    assert [value for _, value, _ in read_records(strict_kafka, topic, 1)] == [b"1234"]


@pytest.mark.long
@pytest.mark.parametrize(("kind", "mode"), CLIENTS_AND_MODES)
def test_sensitive_fields_are_masked_and_read_back(
    kind: Client, mode: str, strict_kafka: Kafka, proxy: ProxyProcess
) -> None:
    """A value that is not JSON is rejected with its batch, although the mode of the topic is observe."""
    topic = new_topic(strict_kafka, "masked")
    order = {"customer": {"mail": "me@example.com", "city": "X"}, "cards": [{"number": "4111"}, {"number": None}]}
    framed = "\0\0\0\0\x07" + json.dumps(order)
    spaced = (" ,  ", " : ")
    values = [json.dumps(order, separators=spaced), framed, "{}"]

    outcomes = kind.send(proxy.bootstrap, topic, [Sent(value, now_ms()) for value in values], "lz4", mode)
    rejected = kind.send(proxy.bootstrap, topic, [Sent('{"customer": {"mail": 7}}', now_ms())], "zstd", IDEMPOTENT)

    assert (outcomes, OK in rejected) == ([OK] * 3, False)
    stored = [value or b"" for _, value, _ in read_records(strict_kafka, topic, 3)][:3]
    digest = hmac.new(KEY.encode(), b"4111", "sha256").hexdigest()
    expected = {"customer": {"mail": "***", "city": "X"}, "cards": [{"number": digest}, {"number": None}]}
    assert stored[0].decode() == json.dumps(expected, separators=spaced)
    assert (stored[1][:5], json.loads(stored[1][5:]), stored[2]) == (framed[:5].encode(), expected, b"{}")
    assert all(b"example.com" not in (value or b"") for _, value, _ in read_records(strict_kafka, topic, 3))
    assert proxy.metric("sluicegate_masked_records_total") > 0


@pytest.mark.long
@pytest.mark.parametrize("library", ["franz", "sarama"])
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_go_clients_read_what_a_masked_topic_stores(
    codec: str, library: str, strict_kafka: Kafka, proxy: ProxyProcess
) -> None:
    if library not in CONSUMERS:
        pytest.skip(f"requires {library}, which `make clients` builds with Go")
    topic = new_topic(strict_kafka, "masked")
    orders = [{"customer": {"mail": f"{n}@example.com"}, "cards": [{"number": str(n)}], "n": n} for n in range(500)]
    sent = [Sent(json.dumps(order), now_ms()) for order in orders]

    assert CLIENTS[0].send(proxy.bootstrap, topic, sent, codec, IDEMPOTENT) == [OK] * len(sent)
    with RawClient(strict_kafka.nodes[0].address) as direct:  # the last record for the reader, which is not JSON
        direct.produce(9, [topic_data(topic, (0, batch([Rec(now_ms(), value=LAST.encode())])))])
    found = CONSUMERS[library](proxy.bootstrap, [topic])[topic]

    assert found.error is None
    assert [value for _, value in found.records[-1:]] == [LAST]
    digests = [hmac.new(KEY.encode(), str(n).encode(), "sha256").hexdigest() for n in range(500)]
    assert [json.loads(value) for _, value in found.records[:-1]] == [
        {"customer": {"mail": "***"}, "cards": [{"number": digest}], "n": n} for n, digest in enumerate(digests)
    ]


def test_tagged_fields_of_avro_are_hashed_and_read_back(strict_kafka: Kafka, proxy: ProxyProcess) -> None:
    topic = new_topic(strict_kafka, "avro")
    customers = [{"mail": "me@example.com", "city": "X"}, {"mail": None, "city": "Y"}, {"mail": "", "city": "Z"}]
    schema = fastavro.parse_schema(dict(AVRO))

    def encode_customer(customer: dict[str, str | None]) -> bytes:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, schema, customer)
        return out.getvalue()

    records = [Rec(now_ms(), b"k", encode_customer(each)) for each in customers]
    cut = [Rec(now_ms(), b"k", encode_customer(customers[0])[:-1])]
    with RawClient(f"127.0.0.1:{proxy.broker_port(1)}") as client:
        codes = [
            client.produce(9, [topic_data(topic, (0, batch(each)))])["responses"][0]["partition_responses"][0]
            for each in (records, cut)
        ]

    assert [each["error_code"] for each in codes] == [0, 87]
    stored = [
        fastavro.schemaless_reader(io.BytesIO(value or b""), schema)
        for _, value, _ in read_records(strict_kafka, topic, 3)
    ]
    hashes = [hmac.new(KEY.encode(), mail, "sha256").hexdigest() for mail in (b"me@example.com", b"")]
    assert stored == [{"mail": hashes[0], "city": "X"}, {"mail": None, "city": "Y"}, {"mail": hashes[1], "city": "Z"}]
