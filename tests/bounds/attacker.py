"""Runs the hostile senders of a case in a separate process.

On `{"case": NAME, "thorough": false, "port": ...}` the process prepares the bytes and reports their number; on `go` it
sends them and reports the outcome.
"""

import asyncio
import gc
import ssl
import struct
import time
from contextlib import suppress
from dataclasses import dataclass, field
from io import RawIOBase
from typing import Any, cast

import uvloop

from tests.bounds.case import Case, CaseSize, ExpectedEnd
from tests.bounds.cases import CASES
from tests.bounds.other_address import connect_from_other_address
from tests.bounds.side_process import fork_for_each, report

_PIECE_BYTES = 1 << 20
_NICENESS = 5


@dataclass
class Sender:
    """The state of one connection."""

    sent: int = 0
    responses: int = 0
    wanted: int = 0
    whole: bool = False
    closed: bool = False
    in_time: bool = True
    heard: asyncio.Event = field(default_factory=asyncio.Event)
    """Set by each response, and when the connection ends."""

    def ends_as_expected(self, ends: ExpectedEnd) -> bool:
        responded = self.whole and self.responses >= self.wanted
        match ends:
            case ExpectedEnd.RESPONDED:
                return responded
            case ExpectedEnd.CLOSED:
                return self.closed
            case ExpectedEnd.RESPONDED_OR_CLOSED:
                return responded or self.closed
        return True


class Attack:
    def __init__(self, case: Case, extent: CaseSize, settings: dict[str, Any]) -> None:
        self._case = case
        self._extent = extent
        self._settings = settings
        self._tls = ssl.create_default_context(cafile=settings["ca_file"]) if settings.get("ca_file") else None
        self._pieces = [list(case.pieces_to_send(extent.amount, number)) for number in range(extent.connections)]
        self.senders = [Sender(wanted=len(pieces) * case.responses_each) for pieces in self._pieces]
        self.bytes = sum(len(piece) for pieces in self._pieces for piece in pieces)

    async def run(self, seconds: float) -> None:
        self._until = asyncio.get_running_loop().time() + seconds
        plays = zip(self.senders, self._pieces, strict=True)
        await asyncio.gather(*(self._play(i, sender, pieces) for i, (sender, pieces) in enumerate(plays)))

    async def _play(self, number: int, sender: Sender, pieces: list[bytes]) -> None:
        name = "localhost" if self._tls is not None else None
        await asyncio.sleep(number * self._case.stagger_seconds)
        try:
            async with asyncio.timeout_at(self._until):
                raw = await connect_from_other_address((self._settings["host"], self._settings["port"]))
                reader, writer = await asyncio.open_connection(sock=raw, ssl=self._tls, server_hostname=name)
        except (OSError, TimeoutError):
            sender.closed = True
            return
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout_at(self._until):
                    await self._talk(sender, reader, writer, pieces)
        finally:
            sender.in_time = sender.ends_as_expected(self._case.ends)
            writer.transport.abort()

    async def _talk(
        self, sender: Sender, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, pieces: list[bytes]
    ) -> None:
        listening = asyncio.create_task(self._listen(sender, reader, writer))
        try:
            await self._send(sender, writer, pieces)
            if self._case.ends in (ExpectedEnd.STAYS, ExpectedEnd.GONE):
                await asyncio.sleep(max(0.0, self._until - asyncio.get_running_loop().time()))
            while not (sender.closed or sender.ends_as_expected(self._case.ends)):
                await sender.heard.wait()
                sender.heard.clear()
        finally:
            listening.cancel()

    async def _send(self, sender: Sender, writer: asyncio.StreamWriter, pieces: list[bytes]) -> None:
        try:
            for piece in pieces:
                for at in range(0, len(piece), _PIECE_BYTES):
                    part = piece[at : at + _PIECE_BYTES]
                    writer.write(part)
                    await writer.drain()
                    sender.sent += len(part)
                if self._case.pause_seconds:
                    await asyncio.sleep(self._case.pause_seconds)
            sender.whole = True
        except (OSError, RuntimeError):  # uvloop raises RuntimeError for a transport that was closed in the meantime
            sender.closed = True

    async def _listen(self, sender: Sender, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._case.reads:
            cast("asyncio.Transport", writer.transport).pause_reading()
            raw = writer.get_extra_info("socket")
            while not sender.closed:  # without reading, only TCP_INFO shows that the connection ended
                await asyncio.sleep(0.1)
                sender.closed = _is_reset(raw)
            sender.heard.set()
            return
        try:
            while True:
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                left = size
                while left > 0:
                    part = await reader.read(min(left, _PIECE_BYTES))
                    if not part:
                        raise asyncio.IncompleteReadError(b"", left)
                    left -= len(part)
                sender.responses += 1
                sender.heard.set()
        except (OSError, asyncio.IncompleteReadError):
            sender.closed = True
            sender.heard.set()


def _is_reset(raw: Any) -> bool:
    """Return whether TCP_INFO reports a connection that is closed or that the peer has closed."""
    try:
        state = raw.getsockopt(6, 11, 1)[0]
    except OSError:
        return True
    return state not in (1, 4, 5)  # ESTABLISHED and FIN_WAIT: this side has to close the connection


def send(settings: dict[str, Any], commands: RawIOBase) -> None:
    """Run the senders of one case. The process is forked for them, with all modules imported."""
    case = CASES[settings["case"]]
    extent = case.extent(settings["thorough"])
    attack = Attack(case, extent, settings)
    gc.freeze()
    report(bytes=attack.bytes, connections=extent.connections)
    commands.readline()
    begun = time.monotonic()
    uvloop.run(attack.run(settings.get("seconds") or extent.seconds))
    senders = attack.senders
    report(
        seconds=time.monotonic() - begun,
        sent=sum(sender.sent for sender in senders),
        responses=sum(sender.responses for sender in senders),
        closed=sum(sender.closed for sender in senders),
        unended=sum(not sender.in_time for sender in senders),
    )


if __name__ == "__main__":
    fork_for_each(send, _NICENESS)
