"""A relay that does wrong: what passes is delayed, split, cut, half closed, left half open, reset or swallowed.

It begins and heals when it is told, for connections that are there and for new ones, whatever they are at.
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


class Wrong(Enum):
    """What a relay does to connections."""

    DELAY = "delay"
    SPLIT = "single bytes"
    STALL = "standstill"
    CUT = "cut in a frame"
    HALF_CLOSE = "one direction closed"
    HALF_OPEN = "one end gone, the other not told"
    RESET = "reset"
    BLACKHOLE = "blackhole"


class Way(Enum):
    """Which bytes are hit: those to the server, those to the client, or all."""

    THERE = "there"
    BACK = "back"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class Trouble:
    """What a relay does wrong at one time."""

    wrong: Wrong
    way: Way


class _Over(Exception):
    """A connection ends here."""


class _Link:
    """A client's connection, and the one to where it is led."""

    def __init__(self, client: socket.socket) -> None:
        self.client = client
        self.server = socket.socket()
        self.owes_bytes = False
        """Some were swallowed: no end of it may be used as if nothing had been."""
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
    """Listens at `host` on each of `ports` and passes on to 127.0.0.1, same port. Its chance is its own."""

    def __init__(self, host: str, ports: list[int], seed: int) -> None:
        self._host = host
        self._ports = ports
        self._chance = Random(seed)
        self._links: set[_Link] = set()
        self._trouble: Trouble | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)
        self.hits = 0
        """How often a connection, or what passed on it, was done wrong to."""

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(60)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()

    def begin(self, trouble: Trouble) -> None:
        self._loop.call_soon_threadsafe(self._begin, trouble)

    def heal(self) -> None:
        """Everything passes again; connections that lost bytes, or one of their ends, are reset."""
        self._loop.call_soon_threadsafe(self._heal)

    # -- in the relay's own thread ---------------------------------------------------------------------------------

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

    def _begin(self, trouble: Trouble) -> None:
        self._trouble = trouble
        self._healed.clear()
        if trouble.wrong is Wrong.RESET:
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
                both.create_task(self._pump(link, link.client, link.server, Way.THERE))
                both.create_task(self._pump(link, link.server, link.client, Way.BACK))
        except* OSError:
            link.will_be_reset()  # an end was: so is the other
        except* _Over:
            pass
        finally:
            link.close()
            self._links.discard(link)

    async def _before_connecting(self, link: _Link) -> None:
        match self._trouble:
            case Trouble(Wrong.DELAY):
                self.hits += 1
                await self._a_while()
            case Trouble(Wrong.STALL):
                self.hits += 1
                await self._healed.wait()
            case Trouble(Wrong.BLACKHOLE | Wrong.HALF_OPEN):
                self.hits += 1
                link.owes_bytes = True
                await self._healed.wait()
                self._reset_here(link)
            case Trouble(Wrong.RESET) if self._chance.random() < 0.5:
                self.hits += 1
                self._reset_here(link)

    async def _pump(self, link: _Link, source: socket.socket, sink: socket.socket, way: Way) -> None:
        frames = FrameEnds()
        while data := await self._loop.sock_recv(source, _CHUNK):
            ends = frames.ends_in(data)
            if self._trouble is None or self._trouble.way not in (way, Way.BOTH):
                await self._loop.sock_sendall(sink, data)
                continue
            self.hits += 1
            match self._trouble.wrong:
                case Wrong.DELAY:
                    await self._a_while()
                    await self._loop.sock_sendall(sink, data)
                case Wrong.SPLIT:
                    await self._split(sink, data)
                case Wrong.STALL:
                    await self._healed.wait()
                    await self._loop.sock_sendall(sink, data)
                case Wrong.CUT:
                    await self._loop.sock_sendall(sink, data[: self._within_a_frame(data, ends)])
                    raise _Over
                case Wrong.RESET:
                    await self._loop.sock_sendall(sink, data[: self._chance.randrange(len(data) + 1)])
                    self._reset_here(link)
                case Wrong.HALF_CLOSE:
                    break
                case Wrong.HALF_OPEN:
                    link.owes_bytes = True
                    with suppress(OSError):
                        sink.shutdown(socket.SHUT_RDWR)
                    await self._swallow(source)
                case Wrong.BLACKHOLE:
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
        """How much goes on, so that a frame is begun and not ended."""
        places = [at for at in range(1, min(len(data), 4096)) if at not in ends]
        return self._chance.choice(places) if places else 0

    def _reset_here(self, link: _Link) -> None:
        link.will_be_reset()
        raise _Over
