"""Real consumers read batches that `framing` rejects or accepts, directly from a broker and through the proxy."""

import os
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.broker.eventually import eventually
from tests.broker.proxy_process import ProxyProcess
from tests.framing.cases import AMBIGUOUS, HIDDEN, HONEST, UNREADABLE
from tests.framing.consumers import CONSUMERS, LAST, ConsumerResult
from tests.integration.topics import UNVALIDATED, create_topic
from tests.wire.batches import Rec, batch
from tests.wire.raw_client import RawClient, topic_data

ALL = {**AMBIGUOUS, **UNREADABLE, **HONEST}
HONESTLY = ((0, "first"), (1, "second"), (2, LAST))
# One case for each defect and codec; long runs use all cases.
SHORT = (
    *("a record within a record, gzip", "a record within a record, zstd", "a length -2, xerial", "a length +5, lz4"),
    *("a length of too many bytes, none", "a length of too many bytes, zstd"),
    *("an empty raw block, lz4", "an empty raw block for the end mark, lz4", "a value size of -2, none"),
    *("an offset of too many bits, none", "a key size of too many bits, zstd", "offset deltas 0 and 5, none"),
    *("trailing bytes, lz4", "a wrong content checksum, lz4", "a wrong content size, lz4"),
    *("garbage after it, gzip", "a bare magic after it, zstd"),
    *("two bytes after it, xerial", "two members, gzip", "two frames, zstd", "two records, lz4", "two records, none"),
)
CASES = tuple(ALL) if os.environ.get("SLUICEGATE_THOROUGH") else SHORT
# librdkafka reads only the first gzip member.
_HALF_READ = {("librdkafka", "two members, gzip")}
# These clients continue after a second frame, or after bytes that they parse as a record.
_READ_BY = {
    "a record within a record, gzip": {"librdkafka", "franz"},
    "a record within a record, zstd": {"librdkafka", "franz"},
    "an empty raw block, lz4": {"librdkafka"},
}


@pytest.fixture(scope="module")
def proxies(kafka_bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, ProxyProcess]]:
    made = {}
    for framing in ("safe", "strict"):
        settings = {"defaults": {"framing": framing}} if framing != "safe" else {}
        made[framing] = ProxyProcess(tmp_path_factory.mktemp(framing), kafka_bootstrap, settings)
    try:
        yield {framing: proxy.start() for framing, proxy in made.items()}
    finally:
        for proxy in made.values():
            proxy.stop()


@pytest.fixture(scope="module")
def topics(kafka_bootstrap: str) -> dict[str, str]:
    """Return topics by case. Each contains the batch, stored directly in a broker, followed by a correct record."""
    made = {case: create_topic(kafka_bootstrap, UNVALIDATED, 1) for case in CASES}
    with RawClient(kafka_bootstrap) as client:
        for case, topic in made.items():
            assert produce_batch(client, topic, ALL[case](now_ms()))["error_code"] == 0, case
            assert produce_batch(client, topic, batch([Rec(now_ms(), value=LAST.encode())]))["base_offset"] == 2, case
    return made


@pytest.fixture(scope="module")
def read(kafka_bootstrap: str, topics: dict[str, str]) -> dict[str, dict[str, ConsumerResult]]:
    """Return the results by consumer and case."""
    found = {name: consume(kafka_bootstrap, [*topics.values()]) for name, consume in CONSUMERS.items()}
    return {name: {case: its[topic] for case, topic in topics.items()} for name, its in found.items()}


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def produce_batch(client: RawClient, topic: str, data: bytes) -> Any:
    answer = client.produce(9, [topic_data(topic, (0, data))])
    assert isinstance(answer, dict), answer
    return answer["responses"][0]["partition_responses"][0]


@pytest.mark.long
@pytest.mark.parametrize("case", [case for case in CASES if case in AMBIGUOUS])
def test_at_least_one_consumer_reads_an_ambiguous_batch_differently(
    case: str, read: dict[str, dict[str, ConsumerResult]]
) -> None:
    otherwise = {name for name, its in read.items() if its[case].records != HONESTLY}

    if case != "an empty raw block at the end, lz4":  # has no effect at the end
        assert otherwise, {name: its[case] for name, its in read.items()}
    for name in _READ_BY.get(case, set()) & read.keys():
        assert HIDDEN.decode() in [value for _, value in read[name][case].records], read[name][case]


@pytest.mark.long
@pytest.mark.parametrize("case", [case for case in CASES if case in UNREADABLE])
def test_java_reads_batches_that_stop_another_consumer(case: str, read: dict[str, dict[str, ConsumerResult]]) -> None:
    assert read["Java"][case].records == HONESTLY
    assert any(its[case].error for its in read.values()), {name: its[case] for name, its in read.items()}


@pytest.mark.long
@pytest.mark.parametrize("case", [case for case in CASES if case in HONEST])
def test_every_consumer_reads_accepted_batches(case: str, read: dict[str, dict[str, ConsumerResult]]) -> None:
    for name, its in read.items():
        if (name, case) not in _HALF_READ:
            assert its[case].records == HONESTLY, (name, its[case])


@pytest.mark.parametrize("framing", ["safe", "strict"])
def test_the_proxy_rejects_batches_that_consumers_read_differently(
    framing: str, kafka_bootstrap: str, proxies: dict[str, ProxyProcess]
) -> None:
    topic = create_topic(kafka_bootstrap, UNVALIDATED, 1)
    rejected = {**AMBIGUOUS, **UNREADABLE} if framing == "strict" else AMBIGUOUS
    with RawClient(proxies[framing].bootstrap) as bootstrap:
        node = bootstrap.metadata(topic)["brokers"][0]
    with RawClient(f"{node['host']}:{node['port']}") as client:
        for case in rejected:
            answer = produce_batch(client, topic, ALL[case](now_ms()))
            assert answer["error_code"] == 87, case
            assert "framing: safe" in answer["error_message"], case
        stored = [case for case in ALL if case not in rejected]
        for number, case in enumerate(stored):
            answer = produce_batch(client, topic, ALL[case](now_ms()))
            assert (answer["error_code"], answer["base_offset"]) == (0, 2 * number), case


def test_forwarded_unreadable_batches_are_reported_and_counted(
    kafka_bootstrap: str, proxies: dict[str, ProxyProcess]
) -> None:
    topic = create_topic(kafka_bootstrap, UNVALIDATED, 1)
    proxy = proxies["safe"]
    with RawClient(proxy.bootstrap) as bootstrap:
        node = bootstrap.metadata(topic)["brokers"][0]
    with RawClient(f"{node['host']}:{node['port']}") as client:
        for case in UNREADABLE:
            assert produce_batch(client, topic, UNREADABLE[case](now_ms()))["error_code"] == 0

    proxy.wait_for_line("unreadable batch forwarded")
    shown = f'sluicegate_unreadable_batches_total{{topic="{topic}"}} {len(UNREADABLE)}'
    eventually(lambda: shown in proxy.get("/metrics")[1], what=shown)
    labels = f'client_id="raw",mode="observe",outcome="accepted",rule="unreadable_framing",topic="{topic}"'
    assert f"sluicegate_violations_total{{{labels}}} {len(UNREADABLE)}" in proxy.get("/metrics")[1]
