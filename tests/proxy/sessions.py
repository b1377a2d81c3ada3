"""A session with recording outlets in place of sockets: bytes are handed in, what comes out is looked at."""

import asyncio
import time
from typing import Any

import pytest

import sluicegate.proxy.session.session
from sluicegate.config.address import HostPort
from sluicegate.config.loading import load
from sluicegate.config.yaml_source import Source
from sluicegate.proxy.answers.addressing import AddressBook
from sluicegate.proxy.answers.rewriting import AnswerRewriter
from sluicegate.proxy.network.connection import Connection
from sluicegate.proxy.network.pacing import LoopTurn
from sluicegate.proxy.process.context import ProxyContext
from sluicegate.proxy.process.server import Server
from sluicegate.proxy.session.lanes import HAS_FAST_LANE
from sluicegate.proxy.session.session import Route, Session

_LEAST = {
    "SLUICEGATE__UPSTREAM__BOOTSTRAP": "['127.0.0.1:9']",
    "SLUICEGATE__UPSTREAM__TOPIC_SETTINGS": "false",  # a script has no cluster
    "SLUICEGATE__LISTEN__BOOTSTRAP": "127.0.0.1:9",
}


class Outlet(asyncio.Transport):
    """A peer that takes everything at once, or nothing while `stuck`; more than 64 KiB fill it, as a socket."""

    def __init__(self, connection: Connection) -> None:
        super().__init__()
        self._connection = connection
        self._unsent: list[bytes | bytearray | memoryview] = []
        self.sent = bytearray()
        self.writes: list[int] = []
        self.stuck = False
        self.is_read = True
        self.closed = self.aborted = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.writes.append(len(data))
        if not self.stuck:
            self.sent += data
            return
        self._unsent.append(data)
        if self.get_write_buffer_size() > 65536 and not self._connection.is_full:
            self._connection.protocol.pause_writing()

    def writelines(self, list_of_data: Any) -> None:
        for data in list_of_data:
            self.write(data)

    def take_all(self) -> None:
        """The peer reads again."""
        self.stuck = False
        for data in self._unsent:
            self.sent += data
        self._unsent.clear()
        if self._connection.is_full:
            self._connection.protocol.resume_writing()

    def get_write_buffer_size(self) -> int:
        return sum(map(len, self._unsent))

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("192.0.2.1", 5) if name == "peername" else default

    def is_closing(self) -> bool:
        return self.closed or self.aborted

    def pause_reading(self) -> None:
        self.is_read = False

    def resume_reading(self) -> None:
        self.is_read = True

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None: ...

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        if not self.aborted:
            self.aborted = True
            self._connection.protocol.connection_lost(None)


class Script:
    """One session: `client` and `broker` are what its two peers see."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, has_fast_lane: bool = HAS_FAST_LANE, **environment: str
    ) -> None:
        async def connected(*_: object) -> None: ...

        monkeypatch.setattr(sluicegate.proxy.session.session, "connect", connected)
        server = Server(load(Source("test"), _LEAST | environment).config)
        self.context: ProxyContext = server._new_context()
        self.context.rewriter = AnswerRewriter(AddressBook({}, lambda _: HostPort("h", 1)), self.context.names)
        self.context.turn = LoopTurn(lambda _step: None, lambda: 0.0)  # a script takes no time
        if not has_fast_lane:
            self.context.ordinary = None
        self.session = Session(self.context, lambda _: Route("bootstrap", ()))
        self.client, self.broker = Outlet(self.session.client), Outlet(self.session.broker)
        self.session.client.connection_made(self.client)
        self._has_broker = False
        self._not_read = b""

    def from_client(self, data: bytes) -> None:
        """The client sends; what a paused connection does not read stays with the client."""
        data = _arrive(self.session.client, self.client, self._not_read + data)
        if not self._has_broker and not self.client.is_closing():
            self._has_broker = True
            self.session.broker.connection_made(self.broker)
            data = _arrive(self.session.client, self.client, data)
        self._not_read = data

    def from_broker(self, data: bytes) -> None:
        """The broker sends."""
        _arrive(self.session.broker, self.broker, data)


def _arrive(connection: Connection, outlet: Outlet, data: bytes) -> bytes:
    """Returns what was not read."""
    while data and outlet.is_read and not outlet.is_closing():
        view = connection.get_buffer(-1)
        count = min(len(view), len(data))
        view[:count] = data[:count]
        del view
        connection.buffer_updated(count)
        data = data[count:]
    return data


async def turns_of_the_loop(count: int = 3) -> None:
    """What was to be done next is done."""
    for _ in range(count):
        await asyncio.sleep(0)


def now_ms() -> int:
    """The time that a session judges by."""
    return int(time.time() * 1000)
