"""Two proxies with one name are restarted in turn under load, unnoticed by clients."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.broker.proxy_process import ProxyProcess
from tests.faults.load import PARTITIONS, IdempotentLoad, Load, RejectedLoad, TransactionalLoad, wait_for_progress
from tests.faults.reader import stored
from tests.integration.balancer import Balancer
from tests.integration.topics import DEFAULTS, UNVALIDATED, create_topic

pytestmark = pytest.mark.long

_NAME = "127.0.0.1"
_ADDRESSES = ("127.0.0.2", "127.0.0.3")
_BROKERS = 2  # the number of broker ports of a proxy in front of one broker
_SEED = 20261124


@pytest.fixture
def proxies(kafka_bootstrap: str, tmp_path: Path) -> Iterator[list[ProxyProcess]]:
    """Two proxies with the same file except for the address; both advertise the shared name."""
    first = ProxyProcess(tmp_path, kafka_bootstrap)
    port, broker_port_base = first.bootstrap.rpartition(":")[2], first.broker_port(0)
    found = []
    for address in _ADDRESSES:
        folder = tmp_path / address
        folder.mkdir()
        proxy = ProxyProcess(folder, kafka_bootstrap, {"defaults": DEFAULTS})
        proxy.config["listen"] = {
            "bootstrap": f"{address}:{port}",
            "broker_port_base": broker_port_base,
            "advertised_host": _NAME,
        }
        found.append(proxy)
    try:
        for proxy in found:
            proxy.start()
        yield found
    finally:
        for proxy in found:
            proxy.stop()


@pytest.fixture
def balancer(proxies: list[ProxyProcess]) -> Iterator[Balancer]:
    ports = [int(proxies[0].config["listen"]["bootstrap"].rpartition(":")[2])]
    ports += [proxies[0].broker_port(node_id) for node_id in range(_BROKERS)]
    with Balancer(_NAME, ports, _ADDRESSES) as balancer:
        yield balancer


def test_a_rolling_restart_loses_nothing_and_stores_nothing_twice(
    kafka_bootstrap: str, proxies: list[ProxyProcess], balancer: Balancer
) -> None:
    reached_by = {"bootstrap.servers": f"{_NAME}:{proxies[0].config['listen']['bootstrap'].rpartition(':')[2]}"}
    topics = [create_topic(kafka_bootstrap, UNVALIDATED, PARTITIONS) for _ in range(3)]
    idempotent = IdempotentLoad(reached_by, topics[0], _SEED)
    transactional = TransactionalLoad(reached_by, topics[1], _SEED)
    rejected = RejectedLoad(reached_by, topics[2], _SEED)
    loads: list[Load] = [idempotent, transactional, rejected]

    with ExitStack() as at_work:
        for load in loads:
            at_work.enter_context(load)
        wait_for_progress(loads)
        for proxy in (*proxies, *proxies):
            proxy.terminate()
            assert proxy.process is not None
            assert proxy.process.wait(60) == 0
            wait_for_progress(loads)
            proxy.start()
        wait_for_progress(loads)
        for load in loads:
            load.stop()

    assert balancer.turned_away == 0
    assert all(balancer.led.values())
    assert idempotent.acknowledged == stored(kafka_bootstrap, topics[0])
    assert transactional.committed == stored(kafka_bootstrap, topics[1])
    assert stored(kafka_bootstrap, topics[2]) == {partition: [] for partition in range(PARTITIONS)}
    assert rejected.rejected > 0
