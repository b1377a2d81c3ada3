"""Tests Produce over a plain socket: verdicts for each partition, merged responses, order, acks=0."""

import os
import time
from pathlib import Path

import pytest

from sluicegate.protocol.messages.produce import PRODUCE_RESPONSE
from tests.broker.eventually import eventually
from tests.broker.proxy_process import ProxyProcess
from tests.integration.topics import UNVALIDATED, create_topic
from tests.wire.batches import LZ4, Rec, batch
from tests.wire.raw_client import CLOSED, PRODUCE, RawClient, produce_body, topic_data

INVALID_TIMESTAMP, UNKNOWN_TOPIC_ID = 32, 100


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def good_batch_now() -> bytes:
    return batch([Rec(now_ms())])


def bad_batch_now() -> bytes:
    return batch([Rec(now_ms()), Rec(now_ms() * 1_000_000), Rec(now_ms())])


@pytest.fixture
def topic(kafka_bootstrap: str) -> str:
    return create_topic(kafka_bootstrap, UNVALIDATED)


def leader_of(proxy: ProxyProcess, topic: str) -> str:
    """Return the proxy's address for the leader of partition 0."""
    with RawClient(proxy.bootstrap) as client:
        response = client.metadata(topic)
    leader = response["topics"][0]["partitions"][0]["leader_id"]
    (broker,) = (b for b in response["brokers"] if b["node_id"] == leader)
    assert broker["port"] == proxy.broker_port(leader)
    return f"{broker['host']}:{broker['port']}"


def topic_name_or_id(proxy: ProxyProcess, topic: str, version: int) -> str | bytes:
    if version < 13:
        return topic
    with RawClient(proxy.bootstrap) as client:
        topic_id: bytes = client.metadata(topic)["topics"][0]["topic_id"]
        return topic_id


def log_size(proxy: ProxyProcess, topic: str, partition: int) -> int:
    with RawClient(leader_of(proxy, topic)) as client:
        return len(client.log_of(topic, partition))


@pytest.mark.parametrize("version", [3, 8, 9, 13])
def test_a_good_partition_beside_a_bad_one_is_stored_with_one_merged_response(
    version: int, topic: str, proxy: ProxyProcess
) -> None:
    first, second = good_batch_now(), bad_batch_now()
    key = topic_name_or_id(proxy, topic, version)

    with RawClient(leader_of(proxy, topic)) as client:
        response = client.produce(version, [topic_data(key, (0, first), (1, second))])
        stored = client.log_of(topic, 0)
        rejected = client.log_of(topic, 1)

    assert isinstance(response, dict)
    (entries,) = (t["partition_responses"] for t in response["responses"])
    entries.sort(key=lambda entry: entry["index"])  # brokers do not preserve the order
    assert [(e["index"], e["error_code"], e["base_offset"]) for e in entries] == [(0, 0, 0), (1, INVALID_TIMESTAMP, -1)]
    if version >= 8:
        assert [error["batch_index"] for error in entries[1]["record_errors"]] == [1]
        assert entries[1]["error_message"] == "One or more records have been rejected due to invalid timestamp"
    assert (
        stored[21:] == first[21:]
    )  # the bytes that the CRC covers; the broker sets offset and leader epoch before them
    assert rejected == b""


def test_responses_keep_the_order_of_pipelined_requests(topic: str, proxy: ProxyProcess) -> None:
    with RawClient(leader_of(proxy, topic)) as client:
        bodies = [
            produce_body(9, [topic_data(topic, (0, records))])
            for records in (good_batch_now(), bad_batch_now(), good_batch_now(), bad_batch_now())
        ]
        asked = [client.send(PRODUCE, 9, body) for _ in range(10) for body in bodies]

        codes = []
        for correlation_id in asked:
            response = client.response_to(correlation_id, PRODUCE, 9, PRODUCE_RESPONSE)
            assert isinstance(response, dict)
            codes.append(response["responses"][0]["partition_responses"][0]["error_code"])

    assert codes == [0, INVALID_TIMESTAMP, 0, INVALID_TIMESTAMP] * 10


def test_acks_0_with_a_bad_partition_stores_the_good_ones_and_closes(topic: str, proxy: ProxyProcess) -> None:
    with RawClient(leader_of(proxy, topic)) as client:
        client.send(
            PRODUCE,
            9,
            produce_body(
                9, [topic_data(topic, (0, good_batch_now()), (1, bad_batch_now()), (2, good_batch_now()))], acks=0
            ),
        )

        assert client.receive() == CLOSED

    eventually(lambda: log_size(proxy, topic, 2) > 0, what="the record of the good partition")
    assert log_size(proxy, topic, 0) > 0
    assert log_size(proxy, topic, 1) == 0


def test_an_acks_0_request_sent_just_before_the_client_closes_is_stored(topic: str, proxy: ProxyProcess) -> None:
    with RawClient(leader_of(proxy, topic)) as client:
        for _ in range(20):
            client.send(PRODUCE, 9, produce_body(9, [topic_data(topic, (0, good_batch_now()))], acks=0))

    eventually(lambda: log_size(proxy, topic, 0) == 20 * len(good_batch_now()), what="all twenty batches")


def test_the_proxy_looks_up_an_unknown_topic_id(
    topic: str, kafka_bootstrap: str, proxy: ProxyProcess, tmp_path: Path
) -> None:
    with RawClient(kafka_bootstrap.split(",", maxsplit=1)[0]) as client:
        topic_id = client.metadata(topic)["topics"][0]["topic_id"]
    fresh = ProxyProcess(tmp_path, kafka_bootstrap, {"defaults": proxy.config["defaults"]}).start()
    leader = leader_of(proxy, topic).rpartition(":")[2]
    node = int(leader) - proxy.broker_port(0)
    try:
        with RawClient(f"127.0.0.1:{fresh.broker_port(node)}") as client:
            responses = [
                client.produce(13, [topic_data(topic_id, (0, r))]) for r in (good_batch_now(), bad_batch_now())
            ]
            unknown = client.produce(13, [topic_data(bytes(range(16)), (0, good_batch_now()))])
    finally:
        fresh.stop()

    codes = [a["responses"][0]["partition_responses"][0]["error_code"] for a in (*responses, unknown)]
    assert codes == [0, INVALID_TIMESTAMP, UNKNOWN_TOPIC_ID]


def test_a_batch_that_is_validated_in_a_thread_keeps_its_order(topic: str, proxy: ProxyProcess) -> None:
    heavy = batch([Rec(now_ms(), value=os.urandom(400)) for _ in range(2000)], LZ4)
    large = batch([*(Rec(now_ms(), value=os.urandom(400)) for _ in range(2000)), Rec(now_ms() * 1000)], LZ4)
    assert min(len(heavy), len(large)) > 600_000  # large enough for a thread; see sluicegate.proxy.scheduling.scheduler
    with RawClient(leader_of(proxy, topic)) as client:
        asked = [
            client.send(PRODUCE, 9, produce_body(9, [topic_data(topic, (0, r))]))
            for r in (large, good_batch_now(), heavy, bad_batch_now())
        ]
        codes = []
        for correlation_id in asked:
            response = client.response_to(correlation_id, PRODUCE, 9, PRODUCE_RESPONSE)
            assert isinstance(response, dict)
            codes.append(response["responses"][0]["partition_responses"][0]["error_code"])

    assert codes == [INVALID_TIMESTAMP, 0, 0, INVALID_TIMESTAMP]
