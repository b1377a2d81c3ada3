"""Clients that leave while the proxy does not read from them are disconnected after limits.frame_timeout_seconds, and
their memory and sockets are freed then. The proxy stops reading from a client when the broker owes it too many
responses.
"""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.bounds.frames import sized_request
from tests.broker.eventually import eventually
from tests.broker.proxy_process import ProxyProcess

_FRAME_SECONDS = 3
_MORE_THAN_IN_FLIGHT = 2_000  # limits.max_in_flight is 1,000, at which the proxy stops reading
_NOISE_SECONDS = 30
_METADATA = sized_request(3, 9, b"\2\7loaded\0\1\0\0\0")


@pytest.fixture
def silent_broker() -> Iterator[str]:
    """Run a broker that reads everything and never responds. Yield its address."""

    def hold_connection(client: socket.socket) -> None:
        with client, suppress(OSError):
            while client.recv(65536):
                continue

    def accept_one() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=hold_connection, args=(listener.accept()[0],), daemon=True).start()

    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=accept_one, daemon=True).start()
    yield f"127.0.0.1:{listener.getsockname()[1]}"
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


def sockets_of(pid: int) -> int:
    found = 0
    for place in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):  # the socket was closed in the meantime
            found += str(place.readlink()).startswith("socket:")
    return found


def test_a_client_that_leaves_while_it_is_paused_is_disconnected_after_frame_seconds(
    silent_broker: str, tmp_path: Path
) -> None:
    proxy = ProxyProcess(tmp_path, silent_broker, {"limits": {"frame_timeout_seconds": _FRAME_SECONDS}})
    try:
        proxy.start(ready=False)
        assert proxy.process is not None
        pid, before = proxy.process.pid, sockets_of(proxy.process.pid)
        host, _, port = proxy.bootstrap.rpartition(":")
        clients = [socket.create_connection((host, int(port))) for _ in range(5)]
        for client in clients:
            client.sendall(_METADATA * _MORE_THAN_IN_FLIGHT)
        proxy.wait_for_line("limits.frame_timeout_seconds")  # the proxy disconnects the first; it has paused all others
        for client in clients:
            client.close()
        left = time.monotonic()

        eventually(lambda: sockets_of(pid) <= before, what="all sockets closed")

        assert time.monotonic() - left < _FRAME_SECONDS + _NOISE_SECONDS
    finally:
        proxy.stop()
