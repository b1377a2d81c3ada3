"""A proxy that inherits its listening sockets is replaced without rejecting a connection."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest

from tests.broker.background import Background
from tests.broker.eventually import eventually
from tests.broker.proxy_process import ProxyProcess
from tests.integration.test_faults import PARTITIONS, NumberedRecords, values_in_topic
from tests.integration.topics import UNVALIDATED, create_topic

pytestmark = pytest.mark.long

_RESTARTS = 2


class ReconnectingClient:
    """A client that connects repeatedly to each address in turn; `rejected`: the addresses that did not accept."""

    def __init__(self, sockets: list[socket.socket]) -> None:
        self.times = 0
        self.rejected: list[OSError] = []
        self._addresses = [each.getsockname() for each in sockets]
        self._background = Background(self._run)

    def __enter__(self) -> Self:
        self._background.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._background.stop()

    def _run(self) -> None:
        while self._background.wait_and_continue(0.01):
            try:
                socket.create_connection(self._addresses[self.times % len(self._addresses)], 60).close()
            except OSError as error:
                self.rejected.append(error)
            self.times += 1


@pytest.fixture(params=[1, 2])
def proxy(request: pytest.FixtureRequest, kafka_bootstrap: str, tmp_path: Path) -> Iterator[ProxyProcess]:
    proxy = ProxyProcess(tmp_path, kafka_bootstrap, {"workers": request.param})
    ports = [int(proxy.bootstrap.rpartition(":")[2]), *(proxy.broker_port(node_id) for node_id in (0, 1))]
    proxy.sockets = [socket.create_server(("127.0.0.1", port), backlog=1024) for port in ports]
    try:
        yield proxy.start()
    finally:
        proxy.stop()
        for each in proxy.sockets:
            each.close()


def test_a_restart_rejects_no_connection_and_loses_nothing(kafka_bootstrap: str, proxy: ProxyProcess) -> None:
    topic = create_topic(kafka_bootstrap, UNVALIDATED, PARTITIONS)

    with ReconnectingClient(proxy.sockets) as knocking, NumberedRecords(proxy.bootstrap, topic) as stream:
        for _ in range(_RESTARTS):
            stream.wait_until_acknowledged(500)
            proxy.terminate()
            assert proxy.process is not None and proxy.process.wait(60) == 0
            times = knocking.times
            proxy.start()
            eventually(lambda before=times: knocking.times > before + 20, what="more connections")
        stream.wait_until_acknowledged(500)

    assert knocking.rejected == []
    numbers = values_in_topic(kafka_bootstrap, topic)
    assert sorted(numbers) == sorted(stream.acknowledged)
    assert proxy.log().count("sockets were handed over") == 1 + _RESTARTS
