"""The relay causes each fault on command, between one client and an echo server."""

import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from tests.broker.eventually import eventually
from tests.broker.ports import free_ports
from tests.faults.frame_ends import FrameEnds
from tests.faults.relay import DirectedFault, Direction, FaultyRelay, RelayFaultKind

FRAME = (1000).to_bytes(4, "big") + bytes(range(250)) * 4
_SECONDS = 60


@dataclass
class EchoServer:
    """An echo server for one connection. `arrived`: the received bytes. `ended`: whether the connection has ended."""

    port: int
    arrived: bytearray = field(default_factory=bytearray)
    ended: bool = False

    def serve(self, listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(_SECONDS)
            try:
                while data := connection.recv(65536):
                    self.arrived += data
                    connection.sendall(data)
            except OSError:
                pass
            self.ended = True


@pytest.fixture
def server() -> Iterator[EchoServer]:
    echo = EchoServer(free_ports(1))
    with socket.create_server(("127.0.0.1", echo.port)) as listener:
        thread = threading.Thread(target=echo.serve, args=(listener,), daemon=True)
        thread.start()
        yield echo
        socket.create_connection(("127.0.0.1", echo.port)).close()  # if no client connected
        thread.join(_SECONDS)


@pytest.fixture
def relay(server: EchoServer) -> Iterator[FaultyRelay]:
    with FaultyRelay("127.0.0.2", [server.port], seed=7) as made:
        yield made


@pytest.fixture
def client(server: EchoServer, relay: FaultyRelay) -> Iterator[socket.socket]:
    """Yield a connected client that has received a first response."""
    with socket.create_connection(("127.0.0.2", server.port), _SECONDS) as connection:
        connection.sendall(FRAME)
        assert receive(connection, len(FRAME)) == FRAME
        server.arrived.clear()
        yield connection


def receive(connection: socket.socket, size: int) -> bytes:
    """Return `size` bytes, or fewer if the connection ends."""
    data = b""
    while len(data) < size and (part := connection.recv(size - len(data))):
        data += part
    return data


@pytest.mark.parametrize("kind", [RelayFaultKind.DELAY, RelayFaultKind.SPLIT])
def test_delayed_or_split_bytes_arrive_complete(
    kind: RelayFaultKind, client: socket.socket, relay: FaultyRelay
) -> None:
    relay.begin(DirectedFault(kind, Direction.BOTH))

    client.sendall(FRAME)

    assert receive(client, len(FRAME)) == FRAME
    assert relay.hits >= 2


def test_stalled_bytes_arrive_after_the_relay_heals(
    client: socket.socket, relay: FaultyRelay, server: EchoServer
) -> None:
    relay.begin(DirectedFault(RelayFaultKind.STALL, Direction.THERE))
    client.sendall(FRAME)
    eventually(lambda: relay.hits == 1, _SECONDS)
    assert not server.arrived

    relay.heal()

    assert receive(client, len(FRAME)) == FRAME


def test_a_cut_ends_the_connection_within_a_frame(
    client: socket.socket, relay: FaultyRelay, server: EchoServer
) -> None:
    relay.begin(DirectedFault(RelayFaultKind.CUT, Direction.THERE))

    client.sendall(FRAME)

    eventually(lambda: server.ended, _SECONDS)
    assert 0 < len(server.arrived) < len(FRAME)
    assert FRAME.startswith(server.arrived)


def test_a_reset_by_the_relay_reaches_both_sides(client: socket.socket, relay: FaultyRelay, server: EchoServer) -> None:
    relay.begin(DirectedFault(RelayFaultKind.RESET, Direction.BACK))

    with pytest.raises(ConnectionResetError):  # either this call or the read raises the error
        client.sendall(FRAME)
        while client.recv(65536):
            continue
    eventually(lambda: server.ended, _SECONDS)


def test_the_relay_closes_one_direction_and_leaves_the_other_open(
    client: socket.socket, relay: FaultyRelay, server: EchoServer
) -> None:
    relay.begin(DirectedFault(RelayFaultKind.HALF_CLOSE, Direction.THERE))

    client.sendall(FRAME)

    eventually(lambda: server.ended, _SECONDS)
    assert not server.arrived
    assert client.recv(1) == b"", "the server's own close is forwarded, not a reset"


def test_after_one_end_closed_the_other_is_reset_when_the_relay_heals(
    client: socket.socket, relay: FaultyRelay, server: EchoServer
) -> None:
    relay.begin(DirectedFault(RelayFaultKind.HALF_OPEN, Direction.THERE))
    client.sendall(FRAME)
    eventually(lambda: server.ended, _SECONDS)
    client.sendall(FRAME)
    client.settimeout(0.1)
    with pytest.raises(TimeoutError):
        client.recv(1)

    relay.heal()

    client.settimeout(_SECONDS)
    with pytest.raises(ConnectionResetError):
        client.recv(1)


def test_dropped_bytes_never_arrive_and_their_connection_is_reset(
    client: socket.socket, relay: FaultyRelay, server: EchoServer
) -> None:
    relay.begin(DirectedFault(RelayFaultKind.BLACKHOLE, Direction.BOTH))
    client.sendall(FRAME)
    eventually(lambda: relay.hits == 1, _SECONDS)

    relay.heal()

    with pytest.raises(ConnectionResetError):
        client.recv(1)
    eventually(lambda: server.ended, _SECONDS)
    assert not server.arrived


def test_ends_of_frames_are_found_in_arbitrary_pieces() -> None:
    stream = FRAME + (0).to_bytes(4, "big") + FRAME

    for size in (1, 3, 1000, len(stream)):
        ends, counted = set(), FrameEnds()
        for at in range(0, len(stream), size):
            ends |= {at + end for end in counted.frame_ends_in(stream[at : at + size])}
        assert ends == {len(FRAME), len(FRAME) + 4, len(stream)}
