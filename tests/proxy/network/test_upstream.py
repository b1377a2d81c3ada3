"""When the proxy connects to brokers, any address results in a connection or a readable error, and a hanging one delays
no other."""

import asyncio
import errno
import socket
from collections.abc import Coroutine, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import Any, cast

import pytest
import uvloop

from sluicegate.config.values.address import HostPort
from sluicegate.proxy.network.native_sockets import native_sockets
from sluicegate.proxy.network.upstream import Dialler, connect_socket
from sluicegate.proxy.session.connection import Connection
from sluicegate.proxy.session.outlets import UpstreamUnreachable
from tests.broker.ports import free_ports

IMPOSSIBLE = [
    HostPort("a..b", 9092),
    HostPort("a" * 70, 9092),
    HostPort("a" * 70 + ".example", 9092),
    HostPort("x." * 15_000, 9092),
    HostPort("\ud800", 9092),
    HostPort("a\0b", 9092),
    HostPort("", 9092),
    HostPort(".", 9092),
    HostPort("127.0.0.1", 0),
    HostPort("127.0.0.1", -1),
    HostPort("127.0.0.1", 65536),
    HostPort("127.0.0.1", 2**31 - 1),
]


_PATIENCE = 60.0


@contextmanager
def silent_listener(host: str = "127.0.0.1", port: int = 0) -> Iterator[HostPort]:
    """Listen like a broker that accepts connections and does nothing else."""
    with socket.create_server((host, port)) as listening:
        yield HostPort(host, listening.getsockname()[1])


@contextmanager
def silent_broker(host: str = "127.0.0.2", port: int = 0) -> Iterator[HostPort]:
    """Listen with a full backlog: the system silently drops further connections."""
    with ExitStack() as stack, socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(0)
        for _ in range(4):
            one_more = stack.enter_context(socket.socket())
            one_more.setblocking(False)
            one_more.connect_ex(listening.getsockname())
        yield HostPort(host, listening.getsockname()[1])


class ClosingProtocol(asyncio.Protocol):
    """Closes each connection immediately."""

    def __init__(self) -> None:
        self.left = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self.left.set()


async def sockets_left_open(doing: Coroutine[Any, Any, None]) -> set[str]:
    """Return the sockets that are open afterwards but were not before."""
    before = sockets_by_name()
    await doing
    return sockets_by_name() - before


def sockets_by_name() -> set[str]:
    """Return this process's sockets by their system names."""
    found = set()
    for each in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # the descriptor of the listing itself
            found.add(str(each.readlink()))
    return {each for each in found if each.startswith("socket")}


async def connect_natively(addresses: tuple[HostPort, ...], patience: float = 2) -> None:
    """Connect with native sockets if they are available."""
    nobody = ClosingProtocol()
    dialler = Dialler(None, patience, native_sockets(asyncio.get_running_loop()))
    await dialler.connect(addresses, cast(Connection, nobody))
    await nobody.left.wait()


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
@pytest.mark.parametrize("address", IMPOSSIBLE, ids=lambda address: str(ascii(str(address)[:20])))
def test_invalid_address_is_reported_and_next_address_is_tried(address: HostPort, run: object) -> None:
    nobody = HostPort("127.0.0.1", free_ports(1))

    with pytest.raises(UpstreamUnreachable) as raised:
        run(connect_natively((address, nobody)))

    reasons = str(raised.value).split("; ")
    assert len(reasons) == 2  # the proxy tried the next address
    assert len(str(raised.value)) < 600
    assert str(raised.value).isprintable()


# Without native sockets, uvloop leaves the given socket to the garbage collector.
@pytest.mark.filterwarnings("ignore:Exception ignored in. <socket")
@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_a_silent_broker_times_out(run: object) -> None:
    with silent_broker() as silent, silent_listener() as sound:
        began = monotonic()
        left = run(sockets_left_open(connect_natively((silent, silent, sound), _PATIENCE)))

    assert monotonic() - began < _PATIENCE / 2
    assert left == set()


async def test_the_next_address_of_a_name_is_tried_while_the_first_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    with silent_listener() as sound, silent_broker("127.0.0.2", sound.port):
        where = [(socket.AF_INET, socket.SOCK_STREAM, 0, "", (host, sound.port)) for host in ("127.0.0.2", "127.0.0.1")]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: where)

        async with asyncio.timeout(_PATIENCE / 2):
            reached = await connect_socket("kafka.example", sound.port)

        with reached:
            assert reached.getpeername()[0] == "127.0.0.1"


@pytest.mark.parametrize(
    ("second", "reason"),
    [
        ("127.0.0.2", rf"^\[Errno {errno.ECONNREFUSED}\] Connection refused$"),
        ("255.255.255.255", rf"^Multiple exceptions: .*Errno {errno.ECONNREFUSED}.*, .*Errno"),
    ],
)
async def test_connect_error_reports_each_distinct_address_failure_once(
    second: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    nobody = free_ports(1)
    where = [(socket.AF_INET, socket.SOCK_STREAM, 0, "", (host, nobody)) for host in ("127.0.0.1", second)]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: where)

    with pytest.raises(OSError, match=reason):
        await connect_socket("kafka.example", nobody)
