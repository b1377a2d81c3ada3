"""A client under one of sluicegate's quotas is throttled as under a broker's quota; other clients are not."""

import struct
import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer, ThrottleEvent

from sluicegate.protocol.messages.produce import PRODUCE_RESPONSE
from tests.bounds.frames import short_string
from tests.broker.eventually import eventually
from tests.broker.proxy_process import ProxyProcess
from tests.integration.java import java_tool
from tests.integration.test_produce import now_ms
from tests.integration.topics import DEFAULTS, UNVALIDATED, create_topic
from tests.oracle.kafka_java import CONFIG_COMMAND
from tests.wire.batches import Rec, batch
from tests.wire.raw_client import PRODUCE, RawClient, produce_body, topic_data

_RATE = 20_000
_SIZE = 60_000
_UNDER_BROKERS, _UNDER_OURS, _LIBRDKAFKA = "quota-of-broker", "quota-of-ours", "quota-librdkafka"
_FLOOD = "quota-flood"


@pytest.fixture(scope="module")
def proxy(kafka_bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyProcess]:
    quotas = [
        {"name": "ours", "client_id": _UNDER_OURS, "bytes_per_second": _RATE},
        {"name": "library", "client_id": _LIBRDKAFKA, "bytes_per_second": "200kB"},
        {"name": "flood", "client_id": _FLOOD, "bytes_per_second": 100_000},
        {"name": "nameless", "client_id": "//", "bytes_per_second": 100_000},
    ]
    process = ProxyProcess(tmp_path_factory.mktemp("proxy"), kafka_bootstrap, {"defaults": DEFAULTS, "quotas": quotas})
    try:
        yield process.start()
    finally:
        process.stop()


def _throttled(address: str, client_id: str, topic: str) -> tuple[int, float]:
    """Send requests on one connection until one is throttled. Return the throttle time (ms) and the time until the
    response to the next request (s). All requests are stored.
    """
    body = produce_body(9, [topic_data(topic, (0, batch([Rec(now_ms(), value=bytes(_SIZE))])))])
    with RawClient(address, timeout=60) as client:
        for _ in range(50):
            began = time.monotonic()
            asked = client.send(PRODUCE, 9, body, client_id)
            response = client.response_to(asked, PRODUCE, 9, PRODUCE_RESPONSE, timeout=60)
            assert isinstance(response, dict)
            assert response["responses"][0]["partition_responses"][0]["error_code"] == 0
            if response["throttle_time_ms"] > 0:
                asked = client.send(PRODUCE, 9, body, client_id)
                assert isinstance(client.response_to(asked, PRODUCE, 9, PRODUCE_RESPONSE, timeout=60), dict)
                return response["throttle_time_ms"], time.monotonic() - began
    raise AssertionError("no request was throttled")


@pytest.mark.long
def test_a_client_is_throttled_as_under_a_brokers_quota(kafka_bootstrap: str, proxy: ProxyProcess) -> None:
    """The response comes at once with a throttle time, and the proxy pauses the client for that time."""
    topic = create_topic(kafka_bootstrap, UNVALIDATED, partitions=1)
    counted_names = ("--alter", "--entity-type", "clients", "--entity-name", _UNDER_BROKERS)
    what = ("--add-config", f"producer_byte_rate={_RATE}")
    java_tool(CONFIG_COMMAND, "--bootstrap-server", kafka_bootstrap, *counted_names, *what)

    brokers_ms, brokers_seconds = _throttled(kafka_bootstrap, _UNDER_BROKERS, topic)
    ours_ms, our_seconds = _throttled(proxy.bootstrap, _UNDER_OURS, topic)

    assert brokers_seconds >= brokers_ms / 1000 - 0.05
    assert our_seconds >= ours_ms / 1000 - 0.05
    assert proxy.metric('sluicegate_quota_throttles_total{quota="ours"}') >= 1
    line = proxy.wait_for_line("client throttled")
    assert _UNDER_OURS in line and '"quota": "ours"' in line


def test_a_client_without_a_quota_is_not_throttled(kafka_bootstrap: str, proxy: ProxyProcess) -> None:
    topic = create_topic(kafka_bootstrap, UNVALIDATED, partitions=1)
    with RawClient(proxy.bootstrap) as client:
        for _ in range(20):
            response = client.produce(9, [topic_data(topic, (0, batch([Rec(now_ms(), value=bytes(_SIZE))])))])
            assert isinstance(response, dict)
            assert response["throttle_time_ms"] == 0


def test_librdkafka_respects_the_throttle_time(kafka_bootstrap: str, proxy: ProxyProcess) -> None:
    topic = create_topic(kafka_bootstrap, UNVALIDATED, partitions=1)
    throttled: list[ThrottleEvent] = []
    failed: list[object] = []
    producer = Producer(
        {
            "bootstrap.servers": proxy.bootstrap,
            "client.id": _LIBRDKAFKA,
            "batch.size": 50_000,
            "throttle_cb": throttled.append,
            "log_level": 0,
        }
    )
    began = time.monotonic()

    for _ in range(80):
        producer.produce(topic, bytes(10_000), on_delivery=lambda error, _: error and failed.append(error))
    assert producer.flush(60) == 0
    lasted = time.monotonic() - began

    assert failed == []
    assert any(event.throttle_time > 0 for event in throttled)
    assert lasted > 2, "800 kB, of which 200 kB are free, at 200 kB/s, but for the last request's wait"


@pytest.mark.parametrize("client_id", [_FLOOD, pytest.param(None, marks=pytest.mark.long)])
@pytest.mark.parametrize("acks", [1, 0])
def test_a_connection_for_each_request_does_not_evade_the_quota(
    kafka_bootstrap: str, proxy: ProxyProcess, client_id: str | None, acks: int
) -> None:
    """The requests have 600 kB, the quota is 100 kB/s, and the burst is at most 100 kB."""
    topic = create_topic(kafka_bootstrap, UNVALIDATED, partitions=1)
    body = produce_body(9, [topic_data(topic, (0, batch([Rec(now_ms(), value=bytes(_SIZE))])))], acks)
    began = time.monotonic()

    for _ in range(10):
        with RawClient(proxy.bootstrap, timeout=60) as client:
            client.send_frame(_request_by(client_id, body))
            if acks:
                assert isinstance(client.receive(timeout=60), bytes)
    eventually(lambda: _stored(kafka_bootstrap, topic) == 10, what="ten records", seconds=60)

    assert time.monotonic() - began > 4


def _request_by(client_id: str | None, body: bytes) -> bytes:
    """Return a request; only a raw frame can have a null client id."""
    name = (-1).to_bytes(2, "big", signed=True) if client_id is None else short_string(client_id.encode())
    return struct.pack(">hhi", PRODUCE, 9, 1) + name + b"\0" + body


def _stored(bootstrap: str, topic: str) -> int:
    with RawClient(bootstrap) as client:
        return client.log_of(topic, 0).count(bytes(_SIZE))
