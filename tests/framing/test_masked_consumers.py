"""Real consumers read masked values from a topic with sensitive fields, even if validation exempts the producer."""

import json
import time
from collections.abc import Iterator

import pytest

from tests.broker.proxy_process import ProxyProcess
from tests.framing.consumers import CONSUMERS, LAST
from tests.framing.test_consumers import produce_batch
from tests.integration.topics import UNVALIDATED, create_topic
from tests.validation.sensitive.test_stored_bytes import REJECTED, UNREAD, UNUSED
from tests.wire.batches import CODECS, Rec, batch
from tests.wire.raw_client import RawClient

SECRET = "me@example.com"
SENSITIVE = [{"name": "mail", "action": "mask", "fields": ["mail"]}]
_MANY = 3000  # records in a batch that is decompressed, rewritten and compressed in several pieces


@pytest.fixture(scope="module")
def proxy(kafka_bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyProcess]:
    settings = {
        "topics": [
            {"match": "masked-*", "sensitive": SENSITIVE},
            {"match": "marked-*", "mode": "mark", "message.timestamp.after.max.ms": "1h"},
        ],
        "exempt": [{"client_id": "raw", "topics": ["masked-*"]}],
    }
    made = ProxyProcess(tmp_path_factory.mktemp("masked"), kafka_bootstrap, settings)
    try:
        yield made.start()
    finally:
        made.stop()


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def address_of_leader(proxy: ProxyProcess, topic: str) -> str:
    with RawClient(proxy.bootstrap) as bootstrap:
        node = bootstrap.metadata(topic)["brokers"][0]
    return f"{node['host']}:{node['port']}"


def json_value(number: int, mail: str) -> str:
    return json.dumps({"mail": mail, "n": number, "more": "x" * (number % 50)})


@pytest.mark.long
def test_every_consumer_reads_masked_batches_of_each_codec(kafka_bootstrap: str, proxy: ProxyProcess) -> None:
    topics = {codec: create_topic(kafka_bootstrap, UNVALIDATED, 1, prefix="masked") for codec in CODECS}
    for codec, topic in topics.items():
        with RawClient(address_of_leader(proxy, topic)) as client:
            for count in (2, _MANY):
                records = [Rec(now_ms(), b"k", json_value(n, SECRET).encode()) for n in range(count)]
                assert produce_batch(client, topic, batch(records, CODECS[codec]))["error_code"] == 0, codec
        with RawClient(kafka_bootstrap) as direct:
            assert produce_batch(direct, topic, batch([Rec(now_ms(), value=LAST.encode())]))["error_code"] == 0

    expected = [*(json_value(n, "***") for n in range(2)), *(json_value(n, "***") for n in range(_MANY)), LAST]
    for name, consume in CONSUMERS.items():
        read = consume(kafka_bootstrap, [*topics.values()])
        for codec, topic in topics.items():
            found = read[topic]
            assert (found.error, [text for _, text in found.records]) == (None, expected), (name, codec)


@pytest.mark.long
def test_consumers_of_masked_batches_read_only_validated_records(kafka_bootstrap: str, proxy: ProxyProcess) -> None:
    topic = create_topic(kafka_bootstrap, UNVALIDATED, 1, prefix="masked")
    with RawClient(address_of_leader(proxy, topic)) as client:
        for case, make in REJECTED.items():
            assert produce_batch(client, topic, make(now_ms()))["error_code"] == 87, case
        assert produce_batch(client, topic, batch([Rec(now_ms(), value=LAST.encode())]))["error_code"] == 87, "no JSON"
        for case, make in UNREAD.items():
            assert produce_batch(client, topic, make(now_ms()))["error_code"] == 0, case
    count = 2 * len(UNREAD)
    with RawClient(kafka_bootstrap) as direct:
        assert produce_batch(direct, topic, batch([Rec(now_ms(), value=LAST.encode())]))["base_offset"] == count

    expected = (*((offset, "{}") for offset in range(count)), (count, LAST))
    for name, consume in CONSUMERS.items():
        found = consume(kafka_bootstrap, [topic])[topic]
        assert (found.error, found.records) == (None, expected), name


@pytest.mark.long
def test_a_broker_stores_fields_that_no_producer_uses(kafka_bootstrap: str) -> None:
    """The broker corrects only the bit for LogAppendTime, because the topic has CreateTime."""
    topic = create_topic(kafka_bootstrap, UNVALIDATED, 1)
    with RawClient(kafka_bootstrap) as client:
        for case, make in UNUSED.items():
            if not case.startswith("bit 3 "):
                data = make(now_ms())
                assert produce_batch(client, topic, data)["error_code"] == 0, case
                assert client.log_of(topic, 0)[-len(data) :][17:] == data[17:], case


@pytest.mark.long
def test_every_consumer_reads_marked_batches_of_each_codec(kafka_bootstrap: str, proxy: ProxyProcess) -> None:
    topics = {codec: create_topic(kafka_bootstrap, UNVALIDATED, 1, prefix="marked") for codec in CODECS}
    for codec, topic in topics.items():
        records = [Rec(now_ms() + 10**9 * (n % 2), b"k", str(n).encode()) for n in range(_MANY)]
        with RawClient(address_of_leader(proxy, topic)) as client:
            assert produce_batch(client, topic, batch(records, CODECS[codec]))["error_code"] == 0, codec
        with RawClient(kafka_bootstrap) as direct:
            assert produce_batch(direct, topic, batch([Rec(now_ms(), value=LAST.encode())]))["base_offset"] == _MANY

    for name, consume in CONSUMERS.items():
        read = consume(kafka_bootstrap, [*topics.values()])
        for codec, topic in topics.items():
            assert [text for _, text in read[topic].records] == [*map(str, range(_MANY)), LAST], (name, codec)
