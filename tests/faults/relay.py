"""Runs a faulty relay that delays, splits, cuts, half closes, half opens, resets or drops the bytes of connections.

Its faults start and stop on command, for existing and for new connections, at any point in their traffic.
"""

import asyncio
import socket
import struct
import threading
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from random import Random
from types import TracebackType
from typing import Self

from tests.faults.frame_ends import FrameEnds

_CHUNK = 65536
_SINGLE_BYTES = 200
_LONGEST_DELAY_SECONDS = 0.15


class RelayFaultKind(Enum):
    """A relay's fault."""

    DELAY = "delay"
    SPLIT = "single bytes"
    STALL = "standstill"
    CUT = "cut in a frame"
    HALF_CLOSE = "one direction closed"
    HALF_OPEN = "one end closed, the other not notified"
    RESET = "reset"
    BLACKHOLE = "blackhole"


class Direction(Enum):
    """The affected direction: to the server, to the client, or both."""

    THERE = "there"
    BACK = "back"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class DirectedFault:
    """A fault of a relay with its direction."""

    kind: RelayFaultKind
    way: Direction


class _Over(Exception):
    """The connection ends."""


class _Link:
    """A client's connection and the connection to its server."""

    def __init__(self, client: socket.socket) -> None:
        self.client = client
        self.server = socket.socket()
        self.owes_bytes = False
        """Whether bytes were dropped, so that neither connection may be used any longer."""
        self.task: asyncio.Task[None] | None = None
        for end in (self.client, self.server):
            end.setblocking(False)
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def will_be_reset(self) -> None:
        for end in (self.client, self.server):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def reset(self) -> None:
        self.will_be_reset()
        if self.task is not None:
            self.task.cancel()

    def close(self) -> None:
        self.client.close()
        self.server.close()


class FaultyRelay:
    """Listens at `host` on each of `ports` and forwards to the same port of 127.0.0.1. `seed`: of its choices."""

    def __init__(self, host: str, ports: list[int], seed: int) -> None:
        self._host = host
        self._ports = ports
        self._chance = Random(seed)
        self._links: set[_Link] = set()
        self._trouble: DirectedFault | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)
        self.hits = 0
        """The number of connections and pieces that a fault affected."""

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(60)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()

    def begin(self, trouble: DirectedFault) -> None:
        self._loop.call_soon_threadsafe(self._begin, trouble)

    def heal(self) -> None:
        """Forward everything again; connections that lost bytes or one end are reset."""
        self._loop.call_soon_threadsafe(self._heal)

    # -- in the relay's thread -------------------------------------------------------------------------------------

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._ended, self._healed = asyncio.Event(), asyncio.Event()
        self._healed.set()
        listeners = [socket.create_server((self._host, port), backlog=256) for port in self._ports]
        accepting = [asyncio.create_task(self._accept(listener)) for listener in listeners]
        self._ready.set()
        await self._ended.wait()
        for task in accepting:
            task.cancel()
        for link in list(self._links):
            link.reset()
        await asyncio.gather(*accepting, *(link.task for link in self._links if link.task), return_exceptions=True)
        for listener in listeners:
            listener.close()

    def _begin(self, trouble: DirectedFault) -> None:
        self._trouble = trouble
        self._healed.clear()
        if trouble.kind is RelayFaultKind.RESET:
            for link in list(self._links):
                if self._chance.random() < 0.5:
                    self.hits += 1
                    link.reset()

    def _heal(self) -> None:
        self._trouble = None
        self._healed.set()
        for link in list(self._links):
            if link.owes_bytes:
                link.reset()

    async def _accept(self, listener: socket.socket) -> None:
        listener.setblocking(False)
        port = listener.getsockname()[1]
        while True:
            client, _ = await self._loop.sock_accept(listener)
            link = _Link(client)
            self._links.add(link)
            link.task = asyncio.create_task(self._lead(link, port))

    async def _lead(self, link: _Link, port: int) -> None:
        try:
            await self._before_connecting(link)
            await self._loop.sock_connect(link.server, ("127.0.0.1", port))
            async with asyncio.TaskGroup() as both:
                both.create_task(self._pump(link, link.client, link.server, Direction.THERE))
                both.create_task(self._pump(link, link.server, link.client, Direction.BACK))
        except* OSError:
            link.will_be_reset()  # one end was reset, so the other end will be too
        except* _Over:
            pass
        finally:
            link.close()
            self._links.discard(link)

    async def _before_connecting(self, link: _Link) -> None:
        match self._trouble:
            case DirectedFault(RelayFaultKind.DELAY):
                self.hits += 1
                await self._a_while()
            case DirectedFault(RelayFaultKind.STALL):
                self.hits += 1
                await self._healed.wait()
            case DirectedFault(RelayFaultKind.BLACKHOLE | RelayFaultKind.HALF_OPEN):
                self.hits += 1
                link.owes_bytes = True
                await self._healed.wait()
                self._reset_here(link)
            case DirectedFault(RelayFaultKind.RESET) if self._chance.random() < 0.5:
                self.hits += 1
                self._reset_here(link)

    async def _pump(self, link: _Link, source: socket.socket, sink: socket.socket, way: Direction) -> None:
        frames = FrameEnds()
        while data := await self._loop.sock_recv(source, _CHUNK):
            ends = frames.frame_ends_in(data)
            if self._trouble is None or self._trouble.way not in (way, Direction.BOTH):
                await self._loop.sock_sendall(sink, data)
                continue
            self.hits += 1
            match self._trouble.kind:
                case RelayFaultKind.DELAY:
                    await self._a_while()
                    await self._loop.sock_sendall(sink, data)
                case RelayFaultKind.SPLIT:
                    await self._split(sink, data)
                case RelayFaultKind.STALL:
                    await self._healed.wait()
                    await self._loop.sock_sendall(sink, data)
                case RelayFaultKind.CUT:
                    await self._loop.sock_sendall(sink, data[: self._within_a_frame(data, ends)])
                    raise _Over
                case RelayFaultKind.RESET:
                    await self._loop.sock_sendall(sink, data[: self._chance.randrange(len(data) + 1)])
                    self._reset_here(link)
                case RelayFaultKind.HALF_CLOSE:
                    break
                case RelayFaultKind.HALF_OPEN:
                    link.owes_bytes = True
                    with suppress(OSError):
                        sink.shutdown(socket.SHUT_RDWR)
                    await self._swallow(source)
                case RelayFaultKind.BLACKHOLE:
                    link.owes_bytes = True
        if link.owes_bytes:
            await self._healed.wait()
            self._reset_here(link)
        with suppress(OSError):
            sink.shutdown(socket.SHUT_WR)
        await self._swallow(source)

    async def _split(self, sink: socket.socket, data: bytes) -> None:
        for at in range(min(_SINGLE_BYTES, len(data))):
            await self._loop.sock_sendall(sink, data[at : at + 1])
            await asyncio.sleep(0)
        await self._loop.sock_sendall(sink, data[_SINGLE_BYTES:])

    async def _swallow(self, source: socket.socket) -> None:
        while await self._loop.sock_recv(source, _CHUNK):
            continue

    async def _a_while(self) -> None:
        await asyncio.sleep(self._chance.random() * _LONGEST_DELAY_SECONDS)

    def _within_a_frame(self, data: bytes, ends: set[int]) -> int:
        """Return how many bytes to forward so that the last frame is incomplete."""
        places = [at for at in range(1, min(len(data), 4096)) if at not in ends]
        return self._chance.choice(places) if places else 0

    def _reset_here(self, link: _Link) -> None:
        link.will_be_reset()
        raise _Over
