"""After a rejection among many requests in flight, an idempotent or transactional producer has the same state as at a
broker.

Each producer sends the same to a broker that has the limits and through the proxy. A rejection by a rule (for a missing
key) is compared with the broker's rejection with the same code, on a compacted topic. librdkafka, aiokafka and Java 3.9
use the first transaction protocol, Java 4.3 uses the second (KIP-890).
"""

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.broker.proxy_process import ProxyProcess
from tests.integration.stateful_producers import (
    BY_KEY,
    BY_TIME,
    IDEMPOTENT,
    RECORDS,
    TRANSACTIONAL,
    Drive,
    Lines,
    java_producer,
    produce_with_aiokafka,
    produce_with_librdkafka,
)
from tests.integration.topics import DEFAULTS, UNVALIDATED, VALIDATED, create_topic
from tests.oracle.kafka_java import KAFKA_NEW, KAFKA_OLD

pytestmark = pytest.mark.long

REJECTED = RECORDS // 2
GOES_ON = [
    pytest.param(java_producer(KAFKA_NEW), id="java 4.3, transactions v2"),
    pytest.param(java_producer(KAFKA_OLD), id="java 3.9, transactions v1"),
    pytest.param(produce_with_librdkafka, id="librdkafka, transactions v1"),
]


@pytest.fixture(scope="module")
def proxy(kafka_bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyProcess]:
    """Yield a proxy with the broker's bounds, and a rule equivalent to a compacted topic."""
    keyed = {"match": f"{BY_KEY}-*", "rules": [{"name": "keyed", "key": {"required": True}}]}
    settings = {"defaults": DEFAULTS, "topics": [keyed]}
    process = ProxyProcess(tmp_path_factory.mktemp("proxy"), kafka_bootstrap, settings)
    try:
        yield process.start()
    finally:
        process.stop()


def committed_records(bootstrap: str, topic: str) -> list[str]:
    """Return the records that a read_committed consumer reads, up to the end."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"{topic}-readers",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    values: list[str] = []
    while (message := consumer.poll(60)) is not None and message.error() is None:
        values.append(message.value().decode())
    consumer.close()
    return values


def run_directly_and_through_proxy(
    drive: Drive, mode: str, bad: str, bootstrap: str, proxy: ProxyProcess
) -> tuple[str, Lines, Lines]:
    """Run a producer directly and through the proxy. Return the proxy's topic and both confirmed results."""
    limits = VALIDATED if bad == BY_TIME else UNVALIDATED | {"cleanup.policy": "compact"}
    validated = create_topic(bootstrap, limits, partitions=1)
    unvalidated = create_topic(bootstrap, UNVALIDATED, partitions=1, prefix=bad)
    direct, through = drive(bootstrap, validated, mode, bad), drive(proxy.bootstrap, unvalidated, mode, bad)
    assert committed_records(bootstrap, validated) == reported_as_stored(direct)
    assert committed_records(proxy.bootstrap, unvalidated) == reported_as_stored(through)
    return unvalidated, direct, through


def reported_as_stored(lines: Lines) -> list[str]:
    """Return the records that the lines report as stored: acknowledged, and not in an aborted transaction."""
    ended = transaction_outcomes(lines)
    return [what for what, outcome in lines if outcome == "ok" and ended.get(what[0], "committed") == "committed"]


def transaction_outcomes(lines: Lines) -> dict[str, str]:
    return {what.removeprefix("transaction-"): outcome for what, outcome in lines if what.startswith("transaction-")}


@pytest.mark.parametrize("bad", [BY_TIME, BY_KEY])
@pytest.mark.parametrize("drive", GOES_ON)
def test_an_idempotent_producer_continues_after_a_rejection(
    drive: Drive, bad: str, kafka_bootstrap: str, proxy: ProxyProcess
) -> None:
    topic, direct, through = run_directly_and_through_proxy(drive, IDEMPOTENT, bad, kafka_bootstrap, proxy)

    assert through == direct
    assert [what for what, outcome in through if outcome != "ok"] == [f"a{REJECTED}"]
    assert committed_records(proxy.bootstrap, topic) == [f"a{i}" for i in range(RECORDS) if i != REJECTED]


@pytest.mark.parametrize("bad", [BY_TIME, BY_KEY])
@pytest.mark.parametrize("drive", GOES_ON)
def test_a_transaction_is_aborted_and_a_later_one_commits(
    drive: Drive, bad: str, kafka_bootstrap: str, proxy: ProxyProcess
) -> None:
    _, direct, through = run_directly_and_through_proxy(drive, TRANSACTIONAL, bad, kafka_bootstrap, proxy)

    for lines in (direct, through):
        ended = transaction_outcomes(lines)
        assert (ended["a"], ended["c"], ended["d"]) == ("aborted", "aborted", "committed")
        if (
            drive is not produce_with_librdkafka
        ):  # at a broker, too, the next transaction may fail with 45; the one after it does not
            assert ended["b"] == "committed"


@pytest.mark.parametrize("bad", [BY_TIME, BY_KEY])
@pytest.mark.parametrize("mode", [IDEMPOTENT, TRANSACTIONAL])
def test_aiokafka_continues_after_a_rejection_as_it_does_at_a_broker(
    mode: str, bad: str, kafka_bootstrap: str, proxy: ProxyProcess
) -> None:
    """aiokafka 0.14 does not reset its sequence after a rejection, so the following batches are rejected too."""
    _, direct, through = run_directly_and_through_proxy(produce_with_aiokafka, mode, bad, kafka_bootstrap, proxy)

    assert through == direct
    assert dict(through)[f"a{REJECTED}"] != "ok"
