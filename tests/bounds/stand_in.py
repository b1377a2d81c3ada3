"""A stand-in broker in a process of its own: `python -m tests.bounds.stand_in '{"node": 1, "port": 9092, ...}'`.

Modes: `sound`; `deaf` (never reads); `silent` (reads, never answers); `silent to N` (answers all but API N);
`lies: NAME` (stand_in_lies); `lies to N: NAME` (only there); `spills` (what nobody asked for); `rejects logins`;
`fetches N` (so many bytes of records in each answer to a Fetch).
"""

import asyncio
import ssl
import struct
import sys
from collections.abc import Mapping
from typing import Any, cast

import uvloop

from tests.bounds.side_process import say, settings_given, take_many_descriptors
from tests.bounds.stand_in_lies import LIES
from tests.bounds.stand_in_responses import StandInResponses

_MAX_FRAME_BYTES = 200_000_000
# A broker takes a request of each connection in turn; some at a time, so that this wait is not what is measured.
_FRAMES_A_TURN = 8


class Broker:
    def __init__(self, nodes: Mapping[int, tuple[str, int]]) -> None:
        self.answers = StandInResponses(nodes)
        self.opened = self.open = self.bytes = self.requests = 0
        self.per_key: dict[str, int] = {}

    def behave(self, mode: str) -> None:
        """From now on; connections that are there stay as they are."""
        self.mode = mode
        self.answers.logs_in = mode != "rejects logins"
        self.answers.fetched_bytes = int(mode.removeprefix("fetches ")) if mode.startswith("fetches ") else 0
        self._silent_to = int(mode.removeprefix("silent to ")) if mode.startswith("silent to ") else None
        to, _, lie = mode.partition(": ")
        self._lie = LIES[lie] if lie else None
        self._lies_to = int(to.removeprefix("lies to ")) if to.startswith("lies to ") else None

    def answer(self, frame: bytes) -> bytes | None:
        self.requests += 1
        if len(frame) < 8 or self.mode == "silent":
            return None
        key = struct.unpack_from(">h", frame)[0]
        self.per_key[str(key)] = self.per_key.get(str(key), 0) + 1
        if key == self._silent_to:
            return None
        sound = self.answers.answer(frame)
        if sound is None or self._lie is None or (self._lies_to is not None and key != self._lies_to):
            return sound
        return self._lie(sound, frame)

    def told(self) -> dict[str, Any]:
        names = ("opened", "open", "bytes", "requests", "per_key")
        return {name: getattr(self, name) for name in names}


class BrokerProtocol(asyncio.Protocol):
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._waiting = bytearray()
        self._transport: asyncio.Transport | None = None
        self._goes_on = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._broker.opened += 1
        self._broker.open += 1
        if self._broker.mode == "deaf":
            self._transport.pause_reading()
        if self._broker.mode == "spills":
            self._transport.write(struct.pack(">ii", 1000, 7) + bytes(996))

    def data_received(self, data: bytes) -> None:
        self._broker.bytes += len(data)
        if self._broker.mode == "silent":
            return
        self._waiting += data
        if not self._goes_on:
            self._take_some()

    def _take_some(self) -> None:
        waiting = self._waiting
        at = taken = 0
        while len(waiting) - at >= 4 and taken < _FRAMES_A_TURN:
            size = struct.unpack_from(">i", waiting, at)[0]
            if not 0 <= size <= _MAX_FRAME_BYTES:
                self._close()
                return
            if len(waiting) - at - 4 < size:
                break
            frame = bytes(waiting[at + 4 : at + 4 + size])
            at += 4 + size
            taken += 1
            if not self._write_response(frame):
                return
        del waiting[:at]
        self._others_first(taken == _FRAMES_A_TURN)

    def _others_first(self, goes_on: bool) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        if goes_on != self._goes_on:
            (self._transport.pause_reading if goes_on else self._transport.resume_reading)()
        self._goes_on = goes_on
        if goes_on:
            asyncio.get_running_loop().call_soon(self._take_some)

    def _write_response(self, frame: bytes) -> bool:
        try:
            answer = self._broker.answer(frame)
        except Exception:  # a request that no broker could read: it closes the connection
            self._close()
            return False
        if answer is not None and self._transport is not None:
            self._transport.write(answer)
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self._broker.open -= 1
        self._transport = None
        self._waiting.clear()

    def _close(self) -> None:
        if self._transport is not None:
            self._transport.close()


async def serve(settings: dict[str, Any]) -> None:
    take_many_descriptors()
    nodes = {int(node): (host, port) for node, (host, port) in settings["nodes"].items()}
    broker = Broker(nodes)
    broker.behave(settings["mode"])
    tls = None
    if settings.get("tls"):
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(settings["tls"]["certificate_file"], settings["tls"]["key_file"])
    loop = asyncio.get_running_loop()
    address = nodes[settings["node"]]
    await loop.create_server(lambda: BrokerProtocol(broker), *address, ssl=tls, backlog=8192)
    say()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        what, _, mode = line.decode().strip().partition(" ")
        if what == "behave":
            broker.behave(mode)
        say(**broker.told())


if __name__ == "__main__":
    uvloop.run(serve(settings_given()))
