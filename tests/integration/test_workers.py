"""Several workers appear as one proxy: shared ports, summed metrics, a restarted worker, one drain for all."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker.eventually import eventually
from tests.broker.ports import free_ports
from tests.broker.proxy_process import COMMAND, ProxyProcess
from tests.integration.test_produce import bad_batch_now, good_batch_now, leader_of
from tests.integration.topics import DEFAULTS, UNVALIDATED, create_topic
from tests.wire.raw_client import RawClient, topic_data

WORKERS = 3
CONNECTIONS = 40


def running_proxy(kafka_bootstrap: str, folder: Path) -> Iterator[ProxyProcess]:
    process = ProxyProcess(folder, kafka_bootstrap, {"workers": WORKERS, "defaults": DEFAULTS}).start()
    yield process
    process.stop()


@pytest.fixture(scope="module")
def proxy(kafka_bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyProcess]:
    """Yield a proxy for the tests that leave it running."""
    yield from running_proxy(kafka_bootstrap, tmp_path_factory.mktemp("proxy"))


@pytest.fixture
def own_proxy(kafka_bootstrap: str, tmp_path: Path) -> Iterator[ProxyProcess]:
    """Yield a proxy for a test that stops it."""
    yield from running_proxy(kafka_bootstrap, tmp_path)


def workers_of(proxy: ProxyProcess) -> list[int]:
    """Return the process ids of the proxy's workers."""
    assert proxy.process is not None
    return [worker for child in children_of(proxy.process.pid) for worker in children_of(child)]


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def connections_of(pid: int) -> int:
    """Return the number of sockets of a process."""
    folder = Path(f"/proc/{pid}/fd")
    return sum(_target(link).startswith("socket:") for link in folder.iterdir())


def _target(descriptor: Path) -> str:
    """Return the target of a descriptor; empty if it was closed after it was listed."""
    try:
        return str(descriptor.readlink())
    except FileNotFoundError:
        return ""


def test_workers_share_the_connections_and_their_counters_are_summed(kafka_bootstrap: str, proxy: ProxyProcess) -> None:
    topic = create_topic(kafka_bootstrap, UNVALIDATED)
    pids = workers_of(proxy)
    idle = [connections_of(pid) for pid in pids]
    leader = leader_of(proxy, topic)
    before = proxy.metric("sluicegate_connections_total")
    before_requests = proxy.metric("sluicegate_produce_requests_total")
    before_rejections = proxy.metric("sluicegate_rejected_batches_total")

    clients = [RawClient(leader) for _ in range(CONNECTIONS)]
    codes = [
        client.produce(9, [topic_data(topic, (0, batch))])["responses"][0]["partition_responses"][0]["error_code"]
        for client in clients
        for batch in (good_batch_now(), bad_batch_now())
    ]
    busy = [connections_of(pid) for pid in pids]

    assert codes == [0, 32] * CONNECTIONS
    assert len(pids) == WORKERS
    assert all(now > then for now, then in zip(busy, idle, strict=True)), "a worker got no connection"
    assert proxy.metric("sluicegate_workers") == WORKERS
    assert proxy.metric("sluicegate_connections_total") - before == CONNECTIONS
    assert proxy.metric("sluicegate_produce_requests_total") - before_requests == 2 * CONNECTIONS
    assert proxy.metric("sluicegate_rejected_batches_total") - before_rejections == CONNECTIONS
    eventually(lambda: len(proxy.violations_of(topic)) == CONNECTIONS, what="a complete event for each rejection")
    for client in clients:
        client.socket.close()


def test_a_dead_worker_is_replaced_and_counted(kafka_bootstrap: str, proxy: ProxyProcess) -> None:
    topic = create_topic(kafka_bootstrap, UNVALIDATED)
    leader = leader_of(proxy, topic)
    before = proxy.metric("sluicegate_produce_requests_total")
    restarts = proxy.metric("sluicegate_worker_restarts_total")
    with RawClient(leader) as client:
        client.produce(9, [topic_data(topic, (0, good_batch_now()))])
    assert proxy.metric("sluicegate_produce_requests_total") == before + 1
    victim, *others = workers_of(proxy)

    os.kill(victim, signal.SIGKILL)

    eventually(
        lambda: proxy.metric("sluicegate_worker_restarts_total") == restarts + 1, what="the count of the restart"
    )
    eventually(lambda: proxy.metric("sluicegate_workers") == WORKERS, what="all workers")
    assert set(others) < set(workers_of(proxy))
    assert proxy.get("/readyz")[0] == 200
    assert proxy.metric("sluicegate_produce_requests_total") == before + 1, "counts of the dead worker are kept"
    proxy.wait_for_line('"exit_code": -9')
    for _ in range(CONNECTIONS):
        with RawClient(leader) as client:
            assert isinstance(client.api_versions(), dict)


def test_one_signal_drains_all_workers(kafka_bootstrap: str, own_proxy: ProxyProcess) -> None:
    proxy = own_proxy
    topic = create_topic(kafka_bootstrap, UNVALIDATED)
    clients = [RawClient(leader_of(proxy, topic)) for _ in range(10)]
    for client in clients:
        client.produce(9, [topic_data(topic, (0, good_batch_now()))])
    pids = workers_of(proxy)

    proxy.terminate()

    assert proxy.process is not None
    assert proxy.process.wait(20) == 0
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    assert all(client.socket.recv(1) == b"" for client in clients)
    assert proxy.log().count('"event": "stopped"') == WORKERS + 1
    for client in clients:
        client.socket.close()


def test_workers_end_with_a_supervisor_that_is_killed(own_proxy: ProxyProcess) -> None:
    pids = workers_of(own_proxy)

    own_proxy.kill()

    eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), what="the end of all workers")


def test_a_port_in_use_is_reported_once_and_no_process_remains(proxy: ProxyProcess, tmp_path: Path) -> None:
    other = tmp_path / "other.yaml"
    other.write_text(
        (proxy.folder / "sluicegate.yaml").read_text().replace(proxy.admin[7:], f"127.0.0.1:{free_ports(1)}")
    )

    rejected = subprocess.run(
        [COMMAND, "run", "--config", str(other)], capture_output=True, text=True, timeout=30, check=False
    )

    assert rejected.returncode == 1
    assert f"cannot listen on {proxy.bootstrap}: Address already in use" in rejected.stderr
