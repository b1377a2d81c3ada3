"""Events and metrics contain the outcome and the error that the client actually received from a broker."""

import time
from collections.abc import Iterator

import pytest

from tests.broker.eventually import eventually
from tests.broker.proxy_process import ProxyProcess
from tests.integration.test_modes import error_code_in, make_topic_known, metric_value
from tests.integration.topics import DEFAULTS, UNVALIDATED, create_topic
from tests.wire.batches import Rec, batch
from tests.wire.raw_client import PRODUCE, RawClient, produce_body, topic_data

NO_SUCH_PARTITION = 99
INVALID_TIMESTAMP, UNKNOWN_TOPIC_OR_PARTITION, CORRUPT_MESSAGE = 32, 3, 2


@pytest.fixture(scope="module")
def proxy(kafka_bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyProcess]:
    """Yield a proxy with observed topics; all other topics reject."""
    topics = [{"match": "observed-*", "mode": "observe"}]
    process = ProxyProcess(tmp_path_factory.mktemp("proxy"), kafka_bootstrap, {"defaults": DEFAULTS, "topics": topics})
    try:
        yield process.start()
    finally:
        process.stop()


def good_batch() -> bytes:
    return batch([Rec(time.time_ns() // 1_000_000)])


def bad_batch() -> bytes:
    return batch([Rec(time.time_ns())])


@pytest.mark.parametrize(
    ("partition", "code", "outcome", "error"),
    [
        (0, INVALID_TIMESTAMP, "rejected", "INVALID_TIMESTAMP"),
        (NO_SUCH_PARTITION, UNKNOWN_TOPIC_OR_PARTITION, "resend", "UNKNOWN_TOPIC_OR_PARTITION"),
    ],
)
def test_an_event_has_the_brokers_own_error_if_that_comes_first(
    kafka_bootstrap: str, proxy: ProxyProcess, partition: int, code: int, outcome: str, error: str
) -> None:
    topic = create_topic(kafka_bootstrap, UNVALIDATED)
    make_topic_known(proxy, topic)

    with RawClient(f"127.0.0.1:{proxy.broker_port(1)}") as client:
        assert error_code_in(client.produce(9, [topic_data(topic, (partition, bad_batch()))])) == code

    (event,) = proxy.wait_for_violations(topic, 1)
    assert (event["outcome"], event["client_error"], event["error"]) == (outcome, error, "INVALID_TIMESTAMP")
    assert metric_value(proxy, "sluicegate_topic_batches_total", topic=topic, outcome=outcome) == 1


def test_a_batch_that_a_policy_only_observes_has_the_brokers_outcome(kafka_bootstrap: str, proxy: ProxyProcess) -> None:
    topic = create_topic(kafka_bootstrap, UNVALIDATED, prefix="observed")
    make_topic_known(proxy, topic)
    now = time.time_ns() // 1_000_000

    with RawClient(f"127.0.0.1:{proxy.broker_port(1)}") as client:
        for data, code in ((bad_batch(), 0), (batch([Rec(now)], crc=7), CORRUPT_MESSAGE)):
            assert error_code_in(client.produce(9, [topic_data(topic, (0, data))])) == code

    stored, corrupt = proxy.wait_for_violations(topic, 2)
    assert (stored["mode"], stored["outcome"], stored["client_error"]) == ("observe", "accepted", "NONE")
    assert (corrupt["mode"], corrupt["outcome"], corrupt["client_error"]) == ("observe", "resend", "CORRUPT_MESSAGE")


@pytest.mark.parametrize("acks", [0, 1])
def test_batches_without_a_response_are_unknown_and_others_accepted_on_both_paths(
    kafka_bootstrap: str, proxy: ProxyProcess, acks: int
) -> None:
    topic = create_topic(kafka_bootstrap, UNVALIDATED)
    make_topic_known(proxy, topic)
    outcome = "accepted" if acks else "unknown"

    with RawClient(f"127.0.0.1:{proxy.broker_port(1)}") as client:
        for _ in range(5):  # the first request is on the slow path
            if acks:
                assert error_code_in(client.produce(9, [topic_data(topic, (0, good_batch()))], acks)) == 0
            else:
                client.send(PRODUCE, 9, produce_body(9, [topic_data(topic, (0, good_batch()))], 0))

        def counted_batches() -> float:
            return metric_value(proxy, "sluicegate_topic_batches_total", topic=topic, outcome=outcome)

        eventually(lambda: counted_batches() == 5, what="five batches")
