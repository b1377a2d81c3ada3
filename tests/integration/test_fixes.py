"""Fixed timestamps are read back from a broker with the same limits, and producers continue without an error."""

import os
import time
from collections.abc import Iterator

import confluent_kafka
import pytest

from sluicegate.protocol.messages.produce import PRODUCE_RESPONSE
from sluicegate.protocol.records.record_batch import RecordBatch
from tests.broker.eventually import eventually
from tests.broker.proxy_process import ProxyProcess
from tests.integration.stateful_producers import BY_TIME_ALWAYS, TRANSACTIONAL, java_producer
from tests.integration.topics import VALIDATED, create_topic
from tests.oracle.kafka_java import KAFKA_NEW
from tests.wire.batches import CODECS, Rec, batch
from tests.wire.raw_client import PRODUCE, RawClient, produce_body, topic_data

HOUR = 3_600_000
RECORDS = 40
_KINDS = ("now", "clamp", "previous", "unit")
# Each fix with each codec, and transactions with each fix and with each codec. With SLUICEGATE_THOROUGH, all
# combinations.
_FIXES = [
    (fix, codec, transactional)
    for i, fix in enumerate(_KINDS)
    for j, codec in enumerate(("none", "gzip", "snappy", "lz4", "zstd"))
    for transactional in ((False, True) if os.environ.get("SLUICEGATE_THOROUGH") else ((i + j) % 2 == 1,))
]


@pytest.fixture(scope="module")
def proxy(kafka_bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyProcess]:
    """Yield a proxy with a kind of fix for each topic prefix, and the limits of the broker's topics."""
    topics = [{"match": f"{fix}-*", "fix": {"timestamp": fix}} for fix in _KINDS]
    process = ProxyProcess(tmp_path_factory.mktemp("proxy"), kafka_bootstrap, {"topics": topics})
    try:
        yield process.start()
    finally:
        process.stop()


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@pytest.mark.parametrize("codec", list(CODECS))
def test_a_fixed_batch_of_every_codec_is_accepted_by_a_broker_with_the_same_limits(
    codec: str, kafka_bootstrap: str, proxy: ProxyProcess
) -> None:
    topic = create_topic(kafka_bootstrap, VALIDATED, prefix="unit")
    now = now_ms()
    headers = [(b"tenant", b"a"), (b"null", None)]
    original = [Rec(now, b"k0", b"v" * 500), Rec(now * 1_000_000, b"k1", None, headers), Rec(now // 1000, None, b"v2")]
    data = batch(original, CODECS[codec])

    with RawClient(kafka_bootstrap) as client:
        direct = client.produce(9, [topic_data(topic, (1, data))])
    with RawClient(f"127.0.0.1:{proxy.broker_port(1)}") as client:
        through = client.produce(9, [topic_data(topic, (0, data))])
    with RawClient(kafka_bootstrap) as client:
        stored = client.log_of(topic, 0)

    assert (error_code_in(direct), error_code_in(through)) == (32, 0), "the broker itself rejects the record"
    before, after = (RecordBatch(memoryview(each), 0, len(each)) for each in (data, stored))
    assert (after.record_count, after.attributes, after.last_offset_delta) == (
        before.record_count,
        before.attributes,
        before.last_offset_delta,
    )
    assert (after.base_timestamp, after.max_timestamp) == (now, now)
    if codec == "none":
        wanted = [Rec(now, *(r.key, r.value, r.headers)) for r in original]
        wanted[2] = Rec(now // 1000 * 1000, None, b"v2")
        assert stored[21:] == batch(wanted)[21:]
    assert consume_records(kafka_bootstrap, topic, 3) == [
        (now, b"k0", b"v" * 500, None),
        (now, b"k1", None, [("tenant", b"a"), ("null", None)]),
        (now // 1000 * 1000, None, b"v2", None),
    ]
    (event,) = proxy.wait_for_violations(topic, 1)
    assert (event["mode"], event["records"], event["bad_records"]) == ("fix", 3, 2)
    assert [(s["index"], s["timestamp"], s["fixed"]) for s in event["samples"]] == [
        (1, now * 1_000_000, now),
        (2, now // 1000, now // 1000 * 1000),
    ]


def error_code_in(response: object) -> int:
    assert isinstance(response, dict), response
    code: int = response["responses"][0]["partition_responses"][0]["error_code"]
    return code


def consume_records(bootstrap: str, topic: str, count: int, partition: int = 0) -> list[tuple[object, ...]]:
    """Return timestamp, key, value and headers of a partition's committed records, read by librdkafka."""
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "g", "isolation.level": "read_committed", "check.crcs": True}
    )
    consumer.assign([confluent_kafka.TopicPartition(topic, partition, 0)])
    found: list[tuple[object, ...]] = []
    end = time.monotonic() + 30
    while len(found) < count and time.monotonic() < end:
        message = consumer.poll(0.5)
        if message is not None and message.error() is None:
            found.append((message.timestamp()[1], message.key(), message.value(), message.headers()))
    consumer.close()
    return found


@pytest.mark.parametrize(("fix", "codec", "transactional"), _FIXES)
def test_stateful_producers_continue_after_a_fix(
    fix: str, codec: str, transactional: bool, kafka_bootstrap: str, proxy: ProxyProcess
) -> None:
    """Every third timestamp is in nanoseconds; all records are stored once, in order, without an error."""
    topic = create_topic(kafka_bootstrap, VALIDATED, prefix=fix)
    settings: dict[str, str | int | float | bool] = {
        "bootstrap.servers": proxy.bootstrap,
        "compression.type": codec,
        "linger.ms": 1,
        "batch.num.messages": 4,
        "enable.idempotence": True,
    }
    if transactional:
        settings |= {"transactional.id": topic}
    errors: list[object] = []
    producer = confluent_kafka.Producer(settings)
    began = now_ms()
    for name in "ab":
        if transactional:
            if name == "a":
                producer.init_transactions(30)
            producer.begin_transaction()
        for i in range(RECORDS):
            now = now_ms()
            producer.produce(
                topic,
                f"{name}{i}".encode() + bytes(100),
                partition=0,
                timestamp=now * 1_000_000 if i % 3 == 2 else now,
                on_delivery=lambda error, _: errors.append(error) if error else None,
            )
        assert producer.flush(30) == 0
        if transactional:
            producer.commit_transaction(30)

    found = consume_records(kafka_bootstrap, topic, 2 * RECORDS)

    assert errors == []
    assert [value[:-100] for _, _, value, _ in found] == [f"{n}{i}".encode() for n in "ab" for i in range(RECORDS)]
    within = HOUR if fix == "clamp" else 1
    assert all(began <= stamp <= now_ms() + within for stamp, *_ in found)
    bad = 2 * (RECORDS // 3)
    eventually(lambda: sum(event["bad_records"] for event in proxy.violations_of(topic)) >= bad, what="the events")
    assert sum(event["bad_records"] for event in proxy.violations_of(topic)) == bad
    assert {event["mode"] for event in proxy.violations_of(topic)} == {"fix"}


@pytest.mark.long
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_javas_transactions_continue_after_a_fix(codec: str, kafka_bootstrap: str, proxy: ProxyProcess) -> None:
    """The second transaction protocol (KIP-890), five requests in flight, one with a timestamp in nanoseconds."""
    topic = create_topic(kafka_bootstrap, VALIDATED, partitions=1, prefix="unit")

    lines = java_producer(KAFKA_NEW, codec)(proxy.bootstrap, topic, TRANSACTIONAL, BY_TIME_ALWAYS)

    ended = [(what, outcome) for what, outcome in lines if what.startswith("transaction-")]
    assert [outcome for _, outcome in ended] == ["aborted", "committed", "aborted", "committed"]
    assert {outcome for what, outcome in lines if (what, outcome) not in ended} == {"ok"}
    found = consume_records(kafka_bootstrap, topic, 2 * RECORDS)
    assert [value for _, _, value, _ in found] == [f"{name}{i}".encode() for name in "bd" for i in range(RECORDS)]
    assert [event["mode"] for event in proxy.wait_for_violations(topic, 4)] == ["fix"] * 4


def test_an_unfixable_timestamp_is_rejected(kafka_bootstrap: str, proxy: ProxyProcess) -> None:
    topic = create_topic(kafka_bootstrap, VALIDATED, prefix="unit")
    with RawClient(f"127.0.0.1:{proxy.broker_port(1)}") as client:
        times = (now_ms() // 1000, 77, now_ms())
        response = client.produce(9, [topic_data(topic, *((p, batch([Rec(each)])) for p, each in enumerate(times)))])

    assert isinstance(response, dict)
    found = {e["index"]: e["error_code"] for e in response["responses"][0]["partition_responses"]}
    assert found == {0: 0, 1: 32, 2: 0}
    eventually(lambda: [e["mode"] for e in proxy.violations_of(topic)] in (["reject", "fix"], ["fix", "reject"]))


def _produced(client: RawClient, topic: str, records: list[Rec], sequence: int) -> int:
    data = batch(records, producer_id=7, producer_epoch=0, base_sequence=sequence)
    return error_code_in(client.produce(9, [topic_data(topic, (0, data))]))


def test_a_fix_uses_the_previous_time_of_a_batch_that_the_broker_stored(
    kafka_bootstrap: str, proxy: ProxyProcess
) -> None:
    """A good timestamp in a batch that the broker rejects for its sequence is not used for fixes."""
    topic = create_topic(kafka_bootstrap, VALIDATED, prefix="previous")
    now = now_ms()
    ahead = now + 50 * 60_000
    with RawClient(f"127.0.0.1:{proxy.broker_port(1)}") as client:
        stored = _produced(client, topic, [Rec(now - 9_000)], 0)
        wrong = _produced(client, topic, [Rec(ahead)], 5)
        fixed = _produced(client, topic, [Rec(now * 1_000_000)], 1)

    assert (stored, wrong, fixed) == (0, 45, 0)  # OUT_OF_ORDER_SEQUENCE_NUMBER
    assert [time for time, *_ in consume_records(kafka_bootstrap, topic, 2)] == [now - 9_000, now - 9_000]


def test_a_fix_waits_for_earlier_requests_of_the_connection(kafka_bootstrap: str, proxy: ProxyProcess) -> None:
    """Pipelined: a good batch, a batch that the broker rejects, and a batch with a bad timestamp."""
    topic = create_topic(kafka_bootstrap, VALIDATED, prefix="previous")
    now = now_ms()
    sent = [([Rec(now - 9_000)], 0), ([Rec(now + 50 * 60_000)], 5), ([Rec(now * 1_000_000)], 1)]
    bodies = [
        produce_body(9, [topic_data(topic, (0, batch(r, producer_id=9, producer_epoch=0, base_sequence=s)))])
        for r, s in sent
    ]
    with RawClient(f"127.0.0.1:{proxy.broker_port(1)}") as client:
        asked = [client.send(PRODUCE, 9, body) for body in bodies]
        codes = [error_code_in(client.response_to(each, PRODUCE, 9, PRODUCE_RESPONSE)) for each in asked]

    assert codes == [0, 45, 0]
    assert [time for time, *_ in consume_records(kafka_bootstrap, topic, 2)] == [now - 9_000, now - 9_000]


def test_a_batch_with_acks_0_is_not_used_for_fixes(kafka_bootstrap: str, proxy: ProxyProcess) -> None:
    topic = create_topic(kafka_bootstrap, VALIDATED, prefix="previous")
    now = now_ms()
    with RawClient(f"127.0.0.1:{proxy.broker_port(1)}") as client:
        client.send(PRODUCE, 9, produce_body(9, [topic_data(topic, (0, batch([Rec(now - 9_000)])))], acks=0))
        assert len(consume_records(kafka_bootstrap, topic, 1)) == 1
        assert error_code_in(client.produce(9, [topic_data(topic, (0, batch([Rec(now * 1_000_000)])))])) == 32
