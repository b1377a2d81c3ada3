"""Several workers are scraped as one proxy, and its metrics match the responses that clients received."""

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from sluicegate.proxy.demo.sample_stream import SampleStream
from sluicegate.proxy.sandbox.mock_cluster import MockCluster
from tests.broker.eventually import eventually
from tests.broker.proxy_process import ProxyProcess

_GATHERED_BYTES = 256 << 20


@pytest.fixture(scope="module")
def proxy_and_responses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ProxyProcess, Counter[str | None]]]:
    """Yield a proxy with two workers, and the number of records by the error that clients received (None: stored)."""
    with ExitStack() as stack:
        cluster = MockCluster(3)
        settings = {
            "upstream": {"bootstrap": cluster.bootstrap, "topic_settings": False},
            "defaults": {"message.timestamp.before.max.ms": "1d", "message.timestamp.after.max.ms": "1h"},
            "topics": [{"match": "orders.*", "cleanup.policy": "compact"}],
            "limits": {"max_buffered_bytes": _GATHERED_BYTES},
            "workers": 2,
        }
        process = ProxyProcess(tmp_path_factory.mktemp("proxy"), "", settings)
        stack.callback(process.stop)
        process.start()
        outcomes: Counter[str | None] = Counter()
        stream = SampleStream(process.bootstrap, lambda _client_id, error: outcomes.update([error]))
        stream.start()
        eventually(lambda: len(outcomes) > 2 and outcomes[None] > 100, what="all kinds of outcomes")
        stream.stop()
        yield process, outcomes


def metric_samples(process: ProxyProcess, name: str) -> dict[str, float]:
    """Return the values of a metric by their labels (as text)."""
    lines = (line for line in process.get("/metrics")[1].splitlines() if line.startswith((name + " ", name + "{")))
    return {line.rpartition(" ")[0].removeprefix(name): float(line.rpartition(" ")[2]) for line in lines}


def test_counts_match_the_clients_responses(proxy_and_responses: tuple[ProxyProcess, Counter[str | None]]) -> None:
    process, outcomes = proxy_and_responses

    batches = metric_samples(process, "sluicegate_validated_batches_total")
    records = metric_samples(process, "sluicegate_validated_records_total")

    assert records[""] == outcomes.total()
    assert batches['{outcome="accepted"}'] > 0
    assert (batches['{outcome="rejected"}'] > 0) == (outcomes.total() > outcomes[None])
    assert batches['{outcome="unknown"}'] == batches['{outcome="resend"}'] == 0


def test_each_produce_request_is_counted_on_one_path_and_timed(
    proxy_and_responses: tuple[ProxyProcess, Counter[str | None]],
) -> None:
    process, _ = proxy_and_responses

    by_path = metric_samples(process, "sluicegate_requests_total")
    produced = sum(count for labels, count in by_path.items() if 'api="Produce"' in labels)

    assert produced == process.metric("sluicegate_produce_requests_total")
    timed = metric_samples(process, "sluicegate_request_upstream_seconds_count")['{api="Produce"}']
    assert 0 < timed <= produced


def test_gauges_cover_both_workers(proxy_and_responses: tuple[ProxyProcess, Counter[str | None]]) -> None:
    process, _ = proxy_and_responses

    assert process.metric("sluicegate_workers") == 2
    budget = metric_samples(process, "sluicegate_buffered_bytes_limit")
    assert budget['{share="small_requests"}'] == _GATHERED_BYTES // 4
    eventually(lambda: process.metric("sluicegate_connections_by_stage") == 0, what="all clients have gone")
    assert process.metric("sluicegate_config_generation") == 1
    assert process.metric("sluicegate_cpu_seconds_total") > 0
