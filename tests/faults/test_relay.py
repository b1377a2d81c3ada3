"""The relay does what it is told to, no less: one client, and a server that sends everything back."""

import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from tests.broker.eventually import eventually
from tests.broker.ports import free_ports
from tests.faults.frame_ends import FrameEnds
from tests.faults.relay import FaultyRelay, Trouble, Way, Wrong

FRAME = (1000).to_bytes(4, "big") + bytes(range(250)) * 4
_SECONDS = 60


@dataclass
class Echo:
    """What a server has had of one connection, and whether that has ended."""

    port: int
    came: bytearray = field(default_factory=bytearray)
    ended: bool = False

    def serve(self, listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(_SECONDS)
            try:
                while data := connection.recv(65536):
                    self.came += data
                    connection.sendall(data)
            except OSError:
                pass
            self.ended = True


@pytest.fixture
def server() -> Iterator[Echo]:
    echo = Echo(free_ports(1))
    with socket.create_server(("127.0.0.1", echo.port)) as listener:
        thread = threading.Thread(target=echo.serve, args=(listener,), daemon=True)
        thread.start()
        yield echo
        socket.create_connection(("127.0.0.1", echo.port)).close()  # where nobody came
        thread.join(_SECONDS)


@pytest.fixture
def relay(server: Echo) -> Iterator[FaultyRelay]:
    with FaultyRelay("127.0.0.2", [server.port], seed=7) as made:
        yield made


@pytest.fixture
def client(server: Echo, relay: FaultyRelay) -> Iterator[socket.socket]:
    """Connected, and has had an answer."""
    with socket.create_connection(("127.0.0.2", server.port), _SECONDS) as connection:
        connection.sendall(FRAME)
        assert received(connection, len(FRAME)) == FRAME
        server.came.clear()
        yield connection


def received(connection: socket.socket, size: int) -> bytes:
    """So many bytes, or what came before the end."""
    data = b""
    while len(data) < size and (part := connection.recv(size - len(data))):
        data += part
    return data


@pytest.mark.parametrize("wrong", [Wrong.DELAY, Wrong.SPLIT])
def test_what_is_late_or_in_pieces_comes_whole(wrong: Wrong, client: socket.socket, relay: FaultyRelay) -> None:
    relay.begin(Trouble(wrong, Way.BOTH))

    client.sendall(FRAME)

    assert received(client, len(FRAME)) == FRAME
    assert relay.hits >= 2


def test_what_stands_still_comes_when_it_is_healed(client: socket.socket, relay: FaultyRelay, server: Echo) -> None:
    relay.begin(Trouble(Wrong.STALL, Way.THERE))
    client.sendall(FRAME)
    eventually(lambda: relay.hits == 1, _SECONDS)
    assert not server.came

    relay.heal()

    assert received(client, len(FRAME)) == FRAME


def test_a_cut_is_within_a_frame(client: socket.socket, relay: FaultyRelay, server: Echo) -> None:
    relay.begin(Trouble(Wrong.CUT, Way.THERE))

    client.sendall(FRAME)

    eventually(lambda: server.ended, _SECONDS)
    assert 0 < len(server.came) < len(FRAME)
    assert FRAME.startswith(server.came)


def test_a_reset_is_seen_by_both(client: socket.socket, relay: FaultyRelay, server: Echo) -> None:
    relay.begin(Trouble(Wrong.RESET, Way.BACK))

    with pytest.raises(ConnectionResetError):  # at once, or with the answer
        client.sendall(FRAME)
        while client.recv(65536):
            continue
    eventually(lambda: server.ended, _SECONDS)


def test_one_direction_is_closed_and_the_other_is_not(client: socket.socket, relay: FaultyRelay, server: Echo) -> None:
    relay.begin(Trouble(Wrong.HALF_CLOSE, Way.THERE))

    client.sendall(FRAME)

    eventually(lambda: server.ended, _SECONDS)
    assert not server.came
    assert client.recv(1) == b"", "the server's own end comes through, and is no reset"


def test_one_end_goes_and_the_other_hears_of_it_when_it_is_healed(
    client: socket.socket, relay: FaultyRelay, server: Echo
) -> None:
    relay.begin(Trouble(Wrong.HALF_OPEN, Way.THERE))
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


def test_what_is_swallowed_never_comes_and_its_connection_is_reset(
    client: socket.socket, relay: FaultyRelay, server: Echo
) -> None:
    relay.begin(Trouble(Wrong.BLACKHOLE, Way.BOTH))
    client.sendall(FRAME)
    eventually(lambda: relay.hits == 1, _SECONDS)

    relay.heal()

    with pytest.raises(ConnectionResetError):
        client.recv(1)
    eventually(lambda: server.ended, _SECONDS)
    assert not server.came


def test_frames_end_where_they_end_however_they_come() -> None:
    stream = FRAME + (0).to_bytes(4, "big") + FRAME

    for size in (1, 3, 1000, len(stream)):
        ends, counted = set(), FrameEnds()
        for at in range(0, len(stream), size):
            ends |= {at + end for end in counted.ends_in(stream[at : at + size])}
        assert ends == {len(FRAME), len(FRAME) + 4, len(stream)}
