"""Runs two proxies with one name behind a load balancer, and clients that write through them all the time."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.broker.proxy_process import ProxyProcess
from tests.faults.load import PARTITIONS, IdempotentLoad, LoadClient, RejectedLoad, TransactionalLoad, wait_for_progress
from tests.faults.reader import read_stored_numbers
from tests.integration.balancer import Balancer
from tests.integration.topics import DEFAULTS, UNVALIDATED, create_topic

_NAME = "127.0.0.1"
_ADDRESSES = ("127.0.0.2", "127.0.0.3")
_BROKERS = 2  # the number of broker ports of a proxy in front of one broker
_SEED = 20261124


@contextmanager
def two_proxies(bootstrap: str, folder: Path, settings: dict[str, Any] | None = None) -> Iterator[list[ProxyProcess]]:
    """Two proxies with the same file except for the address; both advertise the shared name. None is started."""
    first = ProxyProcess(folder, bootstrap)
    port, broker_port_base = first.bootstrap.rpartition(":")[2], first.broker_port(0)
    found = []
    for address in _ADDRESSES:
        own = folder / address
        own.mkdir()
        proxy = ProxyProcess(own, bootstrap, {"defaults": DEFAULTS, **(settings or {})})
        proxy.config["listen"] = {
            "bootstrap": f"{address}:{port}",
            "broker_port_base": broker_port_base,
            "advertised_host": _NAME,
        }
        found.append(proxy)
    try:
        yield found
    finally:
        for proxy in found:
            proxy.stop()


class ClientsOfTwo:
    """Idempotent, transactional and rejected producers of one name, which the balancer leads to both proxies."""

    def __init__(self, bootstrap: str, proxies: Sequence[ProxyProcess]) -> None:
        self._bootstrap = bootstrap
        port = int(proxies[0].config["listen"]["bootstrap"].rpartition(":")[2])
        reached_by = {"bootstrap.servers": f"{_NAME}:{port}"}
        self._topics = [create_topic(bootstrap, UNVALIDATED, PARTITIONS) for _ in range(3)]
        self._idempotent = IdempotentLoad(reached_by, self._topics[0], _SEED)
        self._transactional = TransactionalLoad(reached_by, self._topics[1], _SEED)
        self._rejected = RejectedLoad(reached_by, self._topics[2], _SEED)
        self._loads: list[LoadClient] = [self._idempotent, self._transactional, self._rejected]
        self._balancer = Balancer(
            _NAME, [port, *(proxies[0].broker_port(node) for node in range(_BROKERS))], _ADDRESSES
        )

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Write until the end of the block, and complete what is pending. Raises AssertionError if one fails."""
        with self._balancer, ExitStack() as at_work:
            for load in self._loads:
                at_work.enter_context(load)
            self.progress()
            yield
            self.progress()
            for load in self._loads:
                load.stop()

    def progress(self) -> None:
        """Wait until each client has completed a new operation."""
        wait_for_progress(self._loads)

    def check_nothing_is_lost(self) -> None:
        """Check that the brokers have exactly the acknowledged records, each once and in order."""
        assert self._balancer.turned_away == 0
        assert all(self._balancer.led.values())
        assert self._idempotent.acknowledged == read_stored_numbers(self._bootstrap, self._topics[0])
        assert self._transactional.committed == read_stored_numbers(self._bootstrap, self._topics[1])
        assert read_stored_numbers(self._bootstrap, self._topics[2]) == {
            partition: [] for partition in range(PARTITIONS)
        }
        assert self._rejected.rejected > 0


def replace(proxy: ProxyProcess) -> None:
    """Drain a proxy and start it again, with its command and its environment as they are now."""
    proxy.terminate()
    assert proxy.process is not None
    assert proxy.process.wait(60) == 0
    proxy.start()
