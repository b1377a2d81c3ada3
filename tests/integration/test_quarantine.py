"""Bad records are in a dead-letter topic before the response. None is lost if the topic is missing, full or slow."""

import json
import signal
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from sluicegate.protocol.messages.produce import PRODUCE_RESPONSE
from tests.broker.eventually import eventually
from tests.broker.kafka import Kafka
from tests.broker.proxy_process import ProxyProcess
from tests.integration.clients import CLIENTS, IDEMPOTENT, PLAIN, Client, Sent
from tests.integration.strict_broker import create_topic_on_node, read_records
from tests.integration.test_modes import make_topic_known, metric_value
from tests.integration.topics import DEFAULTS
from tests.wire.batches import CODECS, LZ4, Rec, batch
from tests.wire.raw_client import CLOSED, PRODUCE, RawClient, produce_body, topic_data

HEADERS = [(b"a", b"1"), (b"a", None), (b"b", b""), (b"\xff\0", b"2")]
RETRIABLE = 7


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@pytest.fixture(scope="module")
def proxy(strict_kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyProcess]:
    """Yield a proxy with a working dead-letter topic for `kept` topics. For others it is missing, full or slow."""
    for target, node, size in (("dead", 1, "1000000"), ("dead-full", 1, "200"), ("dead-slow", 2, "1000000")):
        create_topic_on_node(strict_kafka, node, target, max_message_bytes=size)
    topics = [
        {"match": f"{kind}-*", "quarantine": target}
        for kind, target in (("kept", "dead"), ("gone", "dead-gone"), ("full", "dead-full"), ("slow", "dead-slow"))
    ]
    settings = {"defaults": DEFAULTS, "topics": topics, "limits": {"max_record_errors": 2}}
    process = ProxyProcess(tmp_path_factory.mktemp("proxy"), strict_kafka.nodes[0].address, settings)
    try:
        yield process.start()
    finally:
        process.stop()


@pytest.fixture
def topic(request: pytest.FixtureRequest, strict_kafka: Kafka) -> str:
    return create_topic_on_node(strict_kafka, 1, f"{getattr(request, 'param', 'kept')}-{uuid.uuid4().hex[:8]}")


def entries_by_partition(response: Any) -> dict[int, Any]:
    assert isinstance(response, dict), response
    return {entry["index"]: entry for topic in response["responses"] for entry in topic["partition_responses"]}


def raw_client_of(proxy: ProxyProcess) -> RawClient:
    return RawClient(f"127.0.0.1:{proxy.broker_port(1)}", timeout=60)


def produce_and_wait(client: RawClient, topic: str, data: bytes) -> Any:
    """Send one batch and return its entry of the response; waits for the end of the quarantine write."""
    asked = client.send(PRODUCE, 9, produce_body(9, [topic_data(topic, (0, data))]))
    return entries_by_partition(client.response_to(asked, PRODUCE, 9, PRODUCE_RESPONSE, 60))[0]


def proxy_headers(headers: list[tuple[str, bytes | None]]) -> dict[str, str]:
    return {
        name[11:]: (value or b"").decode(errors="replace") for name, value in headers if name.startswith("sluicegate.")
    }


def wait_for_quarantined_records(kafka: Kafka, topic: str, count: int, dead: str = "dead") -> list[Any]:
    """Wait for `count` quarantined records of a topic and return them."""
    found: list[Any] = []

    def is_record_kept() -> bool:
        found[:] = [each for each in read_records(kafka, dead, 0) if proxy_headers(each[2]).get("topic") == topic]
        return len(found) >= count

    eventually(is_record_kept, what=f"{count} records of {topic} in {dead}")
    return found


@pytest.mark.parametrize("codec", list(CODECS))
@pytest.mark.parametrize("version", [3, 9, 12])
def test_bad_records_are_quarantined_unchanged_before_the_response(
    codec: str, version: int, strict_kafka: Kafka, proxy: ProxyProcess, topic: str
) -> None:
    if codec == "zstd" and version == 3:
        pytest.skip("zstd is allowed from v7 on")
    now = now_ms()
    records = [
        Rec(now * 1_000_000, b"k0", b"v" * 300, HEADERS),
        Rec(now),
        Rec(0, None, None),
        Rec(-1),
        Rec(7, b"", b""),
    ]

    with raw_client_of(proxy) as client:
        (entry,) = entries_by_partition(
            client.produce(version, [topic_data(topic, (0, batch(records, CODECS[codec])))])
        ).values()

    assert entry["error_code"] == 32
    if version >= 8:
        assert [error["batch_index"] for error in entry["record_errors"]] == [0, 2], "at most max_record_errors"
    found = wait_for_quarantined_records(strict_kafka, topic, 3)
    assert [(key, value) for key, value, _ in found] == [(b"k0", b"v" * 300), (None, None), (b"", b"")]
    headers = found[0][2]
    assert headers[:3] == [("a", b"1"), ("a", None), ("b", b"")]
    raw = b"\x08" + b"\x02a\x021" + b"\x02a\x01" + b"\x02b\x00" + b"\x04\xff\0\x022"
    assert (headers[3], headers[4]) == (("\\xff\\x00", b"2"), ("sluicegate.headers", raw))
    reported = proxy_headers(headers[5:])
    assert {key: reported[key] for key in ("reason", "topic", "partition", "index", "timestamp", "client.id")} == {
        "reason": "timestamp_in_future",
        "topic": topic,
        "partition": "0",
        "index": "0",
        "timestamp": str(now * 1_000_000),
        "client.id": "raw",
    }
    assert reported["client.address"].startswith("127.0.0.1:")
    assert [proxy_headers(headers)["index"] for _, _, headers in found] == ["0", "2", "4"]
    (event,) = proxy.wait_for_violations(topic, 1)
    assert (event["mode"], event["error"], event["bad_records"]) == ("quarantine", "INVALID_TIMESTAMP", 3)


def test_quarantined_records_are_counted_and_reported(strict_kafka: Kafka, proxy: ProxyProcess, topic: str) -> None:
    make_topic_known(proxy, topic)
    with raw_client_of(proxy) as client:
        for _ in range(3):
            client.produce(9, [topic_data(topic, (0, batch([Rec(0), Rec(1), Rec(now_ms())])))])

    assert len(wait_for_quarantined_records(strict_kafka, topic, 6)) == 6
    assert metric_value(proxy, "sluicegate_quarantined_batches_total", error="INVALID_TIMESTAMP", topic=topic) == 3
    assert metric_value(proxy, "sluicegate_quarantined_records_total", error="INVALID_TIMESTAMP", topic=topic) == 6
    proxy.wait_for_line("batch quarantined")


def test_all_bad_records_of_a_large_batch_are_quarantined(strict_kafka: Kafka, proxy: ProxyProcess, topic: str) -> None:
    count = 20_000
    data = batch([Rec(i, f"{i}".encode(), b"v") for i in range(count)], LZ4)

    with raw_client_of(proxy) as client:
        entry = produce_and_wait(client, topic, data)

    assert (entry["error_code"], len(entry["record_errors"])) == (32, 2)
    found = wait_for_quarantined_records(strict_kafka, topic, count)
    assert sorted(int(key) for key, _, _ in found) == list(range(count))


def test_good_partitions_of_the_request_are_stored(strict_kafka: Kafka, proxy: ProxyProcess, topic: str) -> None:
    other = create_topic_on_node(strict_kafka, 1, f"other-{uuid.uuid4().hex[:8]}")
    good, bad = batch([Rec(now_ms())]), batch([Rec(3)])

    with raw_client_of(proxy) as client:
        response = client.produce(9, [topic_data(topic, (0, bad)), topic_data(other, (0, good))])
        assert isinstance(response, dict)
        codes = {e["name"]: e["partition_responses"][0]["error_code"] for e in response["responses"]}
        assert len(client.log_of(other, 0)) == len(good)

    assert codes == {topic: 32, other: 0}
    assert len(wait_for_quarantined_records(strict_kafka, topic, 1)) == 1


def test_bad_records_with_acks_0_are_quarantined_and_the_connection_is_closed(
    strict_kafka: Kafka, proxy: ProxyProcess, topic: str
) -> None:
    for version in (3, 9):
        with raw_client_of(proxy) as client:
            client.send(PRODUCE, version, produce_body(version, [topic_data(topic, (0, batch([Rec(3)])))], acks=0))
            assert client.receive(60) == CLOSED

    assert len(wait_for_quarantined_records(strict_kafka, topic, 2)) == 2


def test_an_unparsable_batch_is_rejected_and_not_quarantined(
    strict_kafka: Kafka, proxy: ProxyProcess, topic: str
) -> None:
    damaged = [batch([Rec(0)], crc=7), batch([Rec(0)], count=2, last_offset_delta=1), batch([Rec(0)], LZ4, tail=b"x")]
    with raw_client_of(proxy) as client:
        codes = [
            entries_by_partition(client.produce(9, [topic_data(topic, (0, each))]))[0]["error_code"] for each in damaged
        ]
        client.produce(9, [topic_data(topic, (0, batch([Rec(1)])))])

    assert codes[0] == 2
    assert 0 not in codes
    assert [
        proxy_headers(headers)["timestamp"] for _, _, headers in wait_for_quarantined_records(strict_kafka, topic, 1)
    ][-1] == "1"


def test_a_batch_that_the_broker_rejects_is_not_quarantined(strict_kafka: Kafka, proxy: ProxyProcess) -> None:
    """Otherwise any client could write to a dead-letter topic with the proxy's login, by inventing topic names."""
    before = len(read_records(strict_kafka, "dead", 0))
    with raw_client_of(proxy) as client:
        (entry,) = entries_by_partition(client.produce(9, [topic_data("kept-nowhere", (0, batch([Rec(0)])))])).values()

    assert entry["error_code"] == 3
    assert len(read_records(strict_kafka, "dead", 0)) == before


@pytest.mark.parametrize("topic", ["full"], indirect=True)
def test_a_failed_quarantine_write_is_reported_and_nothing_is_acknowledged(
    strict_kafka: Kafka, proxy: ProxyProcess, topic: str
) -> None:
    make_topic_known(proxy, topic)
    with raw_client_of(proxy) as client:
        entry = produce_and_wait(client, topic, batch([Rec(0, b"k", bytes(500))]))
        assert client.log_of(topic, 0) == b""

    assert entry["error_code"] == RETRIABLE
    assert "could not be written to dead-full: Broker: Message size too large" in entry["error_message"]
    assert proxy.violations_of(topic) == [], "the client retries"
    assert metric_value(proxy, "sluicegate_quarantine_failures_total", topic=topic) == 1
    assert topic in proxy.wait_for_line("quarantine write failed")


@pytest.mark.long
@pytest.mark.parametrize("topic", ["slow"], indirect=True)
def test_only_the_quarantined_client_waits(strict_kafka: Kafka, proxy: ProxyProcess, topic: str) -> None:
    other = create_topic_on_node(strict_kafka, 1, f"kept-{uuid.uuid4().hex[:8]}")
    broker = strict_kafka.nodes[1].process
    assert broker is not None
    bad = batch([Rec(0)])
    with raw_client_of(proxy) as client, raw_client_of(proxy) as neighbour:
        # From now on, librdkafka knows the leaders of both dead-letter topics, and sends no request to a stopped
        # broker.
        for each, name_of in ((client, topic), (neighbour, other)):
            assert entries_by_partition(each.produce(9, [topic_data(name_of, (0, bad))]))[0]["error_code"] == 32
        broker.send_signal(signal.SIGSTOP)
        try:
            client.send(PRODUCE, 9, produce_body(9, [topic_data(topic, (0, bad))]))
            began = time.monotonic()
            for _ in range(20):
                good = topic_data(other, (0, batch([Rec(now_ms())])))
                assert entries_by_partition(neighbour.produce(9, [good]))[0]["error_code"] == 0
                assert entries_by_partition(neighbour.produce(9, [topic_data(other, (0, bad))]))[0]["error_code"] == 32
            took = time.monotonic() - began
            assert isinstance(client.receive(60), bytes), "no response after the timeout"
            assert time.monotonic() - began > took
            later = produce_and_wait(client, topic, bad)
            assert later["error_code"] == RETRIABLE
            assert "Message timed out" in later["error_message"]
        finally:
            broker.send_signal(signal.SIGCONT)

        def is_rejected() -> bool:
            return bool(produce_and_wait(client, topic, bad)["error_code"] == 32)

        eventually(is_rejected, what="a verdict after the broker resumes")
    assert len(wait_for_quarantined_records(strict_kafka, topic, 2, "dead-slow")) >= 2


@pytest.mark.long
@pytest.mark.parametrize("topic", ["gone"], indirect=True)
@pytest.mark.parametrize("mode", [PLAIN, IDEMPOTENT])
@pytest.mark.parametrize("kind", CLIENTS, ids=lambda each: each.name)
def test_clients_retry_until_the_topic_exists_and_are_then_rejected(
    kind: Client, mode: str, strict_kafka: Kafka, tmp_path: Path, topic: str
) -> None:
    """All bad records are quarantined in the end, and no client gets a success."""
    dead = f"dead-{uuid.uuid4().hex[:8]}"
    settings = {"defaults": DEFAULTS, "topics": [{"match": topic, "quarantine": dead}]}
    proxy = ProxyProcess(tmp_path, strict_kafka.nodes[0].address, settings).start()
    now = now_ms()
    sent = [Sent("good", now), Sent("bad", now * 1_000_000), Sent("early", 5)]
    outcomes: list[str] = []

    def send() -> None:
        outcomes.extend(kind.send(proxy.bootstrap, topic, sent, "lz4", mode))

    sender = threading.Thread(target=send)
    try:
        sender.start()
        eventually(lambda: proxy.metric("sluicegate_quarantine_failures_total") > 0, what="a failure")
        create_topic_on_node(strict_kafka, 1, dead)
        sender.join(120)
        assert not sender.is_alive()
        assert len(outcomes) == 3
        assert "ok" not in outcomes
        values = [value for _, value, _ in wait_for_quarantined_records(strict_kafka, topic, 2, dead)]
        assert set(values) == {b"bad", b"early"}
        assert proxy.wait_for_violations(topic, 1)[0]["mode"] == "quarantine"
    finally:
        proxy.stop()
        sender.join(1)


@pytest.mark.long
def test_a_producer_continues_after_quarantined_records(strict_kafka: Kafka, proxy: ProxyProcess, topic: str) -> None:
    """Every third record of an idempotent producer is bad, each in its own batch; all others are stored."""
    outcomes: dict[int, object] = {}
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": proxy.bootstrap, "enable.idempotence": True, "batch.num.messages": 1, "linger.ms": 0}
    )
    for i in range(60):
        producer.produce(
            topic,
            f"{i}".encode(),
            partition=0,
            timestamp=now_ms() * (1_000_000 if i % 3 == 2 else 1),
            on_delivery=lambda error, _, i=i: outcomes.__setitem__(i, error),
        )
    assert producer.flush(120) == 0

    bad = {i for i in range(60) if i % 3 == 2}
    assert {i for i, error in outcomes.items() if error is not None} == bad
    assert {int(value) for _, value, _ in wait_for_quarantined_records(strict_kafka, topic, len(bad))} == bad
    stored = [int(value or b"") for _, value, _ in read_records(strict_kafka, topic, 40)]
    assert stored == [i for i in range(60) if i not in bad]


def test_events_report_the_outcome_of_each_batch(strict_kafka: Kafka, proxy: ProxyProcess, topic: str) -> None:
    """Events have one mode for quarantined batches and another for batches that were only rejected."""
    with raw_client_of(proxy) as client:
        client.produce(9, [topic_data(topic, (0, batch([Rec(0)])))])
        client.produce(9, [topic_data(topic, (0, batch([Rec(0)], crc=1)))])

    events = proxy.wait_for_violations(topic, 2)
    assert [json.dumps([e["mode"], e["reason"]]) for e in events] == [
        '["quarantine", "timestamp_too_old"]',
        '["reject", "crc_mismatch"]',
    ]


def test_a_record_that_violates_a_rule_is_quarantined_with_the_rules_name(strict_kafka: Kafka, tmp_path: Path) -> None:
    topic = create_topic_on_node(strict_kafka, 1, f"ruled-{uuid.uuid4().hex[:8]}")
    rules = [{"name": "keyed", "key": {"required": True}}, {"name": "tenant", "headers": {"required": ["tenant"]}}]
    settings = {"topics": [{"match": topic, "quarantine": "dead-ruled", "rules": rules}]}
    create_topic_on_node(strict_kafka, 1, "dead-ruled")
    process = ProxyProcess(tmp_path, strict_kafka.nodes[0].address, settings)
    try:
        process.start()
        tenant = [(b"tenant", b"a")]
        records = [Rec(now_ms(), b"k", b"0", tenant), Rec(now_ms(), None, b"1", tenant), Rec(now_ms(), None, b"2")]
        with raw_client_of(process) as client:
            entry = produce_and_wait(client, topic, batch(records))
        kept = wait_for_quarantined_records(strict_kafka, topic, 2, "dead-ruled")
    finally:
        process.stop()

    assert entry["error_code"] == 87
    assert [error["batch_index"] for error in entry["record_errors"]] == [1, 2]
    assert [(value, proxy_headers(headers)["rule"]) for _, value, headers in kept] == [
        (b"1", "keyed"),
        (b"2", "keyed, tenant"),
    ]
