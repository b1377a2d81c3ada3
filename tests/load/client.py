"""One client of a crowd: a connection, and requests of which each answer is waited for or only counted."""

import asyncio
import ssl
import struct
import time
from dataclasses import dataclass, field
from typing import Any, Self

from tests.bounds.elsewhere import connected_from_elsewhere

_READ_BYTES = 1 << 20


@dataclass(slots=True)
class Told:
    """What became of a crowd: `seconds` are of requests whose answers were waited for, `came` of connecting."""

    answers: int = 0
    closed: int = 0
    failures: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    came: list[float] = field(default_factory=list)
    bytes: int = 0
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Where:
    """The address that a crowd comes to, and until when it stays (s, of the loop's clock). `trusting`: where that
    speaks TLS.
    """

    address: tuple[str, int]
    until: float
    trusting: ssl.SSLContext | None = None

    @property
    def left(self) -> float:
        """Seconds."""
        return self.until - asyncio.get_running_loop().time()


class Client:
    """Within `async with`. Leaves by itself, and without a word, as clients do that are ended."""

    def __init__(
        self, where: Where, told: Told, receive_bytes: int | None = None, trusting: ssl.SSLContext | None = None
    ) -> None:
        self._where = where
        self._trusting = trusting
        self._told = told
        self._receive_bytes = receive_bytes
        self.reader: asyncio.StreamReader
        self.writer: asyncio.StreamWriter

    async def __aenter__(self) -> Self:
        began = time.monotonic()
        raw = await connected_from_elsewhere(self._where.address, self._receive_bytes)
        name = None if self._trusting is None else "localhost"
        self.reader, self.writer = await asyncio.open_connection(sock=raw, ssl=self._trusting, server_hostname=name)
        self._told.came.append(time.monotonic() - began)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.transport.abort()

    async def ask(self, request: bytes) -> None:
        """Until the answer is there. Raises OSError or asyncio.IncompleteReadError where none comes."""
        began = time.monotonic()
        self.writer.write(request)
        await self.writer.drain()
        self._told.bytes += len(request)
        await self.answer()
        self._told.seconds.append(time.monotonic() - began)

    async def answer(self) -> None:
        """Read one."""
        (left,) = struct.unpack(">i", await self.reader.readexactly(4))
        while left > 0:
            part = await self.reader.read(min(left, _READ_BYTES))
            if not part:
                raise asyncio.IncompleteReadError(b"", left)
            left -= len(part)
        self._told.answers += 1

    async def until_closed(self) -> None:
        """By the other side; what comes before is thrown away."""
        try:
            while await self.reader.read(_READ_BYTES):
                pass
        except OSError:
            pass
        self._told.closed += 1


ENDS: tuple[Any, ...] = (OSError, asyncio.IncompleteReadError, ssl.SSLError, RuntimeError)
"""How a connection ends that somebody else ends; the last is uvloop's for a transport that was closed meanwhile."""
