"""Runs one client of a crowd, which is a connection with requests. It awaits each response or only counts responses."""

import asyncio
import ssl
import struct
import time
from dataclasses import dataclass, field
from typing import Any, Self

from tests.bounds.other_address import connect_from_other_address

_READ_BYTES = 1 << 20


@dataclass(slots=True)
class CrowdResult:
    """The outcome of a crowd. `seconds`: duration of each awaited request; `arrived`: duration of each connect (s).
    `waiting`: the time limit of each client that stays until its first response.
    """

    responses: int = 0
    closed: int = 0
    failures: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    arrived: list[float] = field(default_factory=list)
    bytes: int = 0
    remark: str = ""
    waiting: dict["asyncio.Task[Any] | None", asyncio.Timeout] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LoadTarget:
    """The address that a crowd connects to, and until when it stays (s, the loop's clock). `trusting`: for TLS."""

    address: tuple[str, int]
    until: float
    trusting: ssl.SSLContext | None = None

    @property
    def seconds_left(self) -> float:
        """Return the remaining time (s)."""
        return self.until - asyncio.get_running_loop().time()


class Client:
    """Connected within `async with`. It resets the connection at the end, like a client that is killed."""

    def __init__(
        self,
        where: LoadTarget,
        result: CrowdResult,
        receive_bytes: int | None = None,
        trusting: ssl.SSLContext | None = None,
    ) -> None:
        self._where = where
        self._trusting = trusting
        self._result = result
        self._receive_bytes = receive_bytes
        self.reader: asyncio.StreamReader
        self.writer: asyncio.StreamWriter

    async def __aenter__(self) -> Self:
        began = time.monotonic()
        raw = await connect_from_other_address(self._where.address, self._receive_bytes)
        name = None if self._trusting is None else "localhost"
        self.reader, self.writer = await asyncio.open_connection(sock=raw, ssl=self._trusting, server_hostname=name)
        self._result.arrived.append(time.monotonic() - began)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.transport.abort()

    async def ask(self, request: bytes) -> None:
        """Send a request and read its response. Raises OSError or asyncio.IncompleteReadError if there is none."""
        began = time.monotonic()
        self.writer.write(request)
        await self.writer.drain()
        self._result.bytes += len(request)
        await self.response()
        self._result.seconds.append(time.monotonic() - began)

    async def response(self) -> None:
        """Read one response."""
        (left,) = struct.unpack(">i", await self.reader.readexactly(4))
        while left > 0:
            part = await self.reader.read(min(left, _READ_BYTES))
            if not part:
                raise asyncio.IncompleteReadError(b"", left)
            left -= len(part)
        self._result.responses += 1
        limit = self._result.waiting.pop(asyncio.current_task(), None)
        if limit is not None:
            limit.reschedule(self._where.until)

    async def until_closed(self) -> None:
        """Wait until the peer closes the connection, and discard the bytes before that."""
        try:
            while await self.reader.read(_READ_BYTES):
                pass
        except OSError:
            pass
        self._result.closed += 1


ENDS: tuple[Any, ...] = (OSError, asyncio.IncompleteReadError, ssl.SSLError, RuntimeError)
"""Errors after the peer ended a connection. uvloop raises RuntimeError for a transport that was closed in between."""
