"""Runs a stand-in broker in a separate process: `python -m tests.bounds.stand_in '{"node": 1, "port": 9092, ...}'`.

Modes: `sound`; `deaf` (never reads); `silent` (reads, never responds); `silent to N` (no response to API N); `forged:
NAME` (see forged_responses.py); `forged to N: NAME` (only to API N); `spills` (unrequested bytes); `rejects logins`;
`fetches N` (N bytes of records in each Fetch response).
"""

import asyncio
import ssl
import struct
import sys
from collections.abc import Mapping
from typing import Any, cast

import uvloop

from tests.bounds.forged_responses import FORGED_RESPONSES
from tests.bounds.side_process import report, settings_from_arguments, take_many_descriptors
from tests.bounds.stand_in_responses import StandInResponses

_MAX_FRAME_BYTES = 200_000_000
# A broker processes requests from its connections in turn. Processing several at a time keeps this wait out of the
# measurement.
_FRAMES_A_TURN = 8


class Broker:
    def __init__(self, nodes: Mapping[int, tuple[str, int]]) -> None:
        self.responses = StandInResponses(nodes)
        self.opened = self.open = self.bytes = self.requests = 0
        self.per_key: dict[str, int] = {}

    def behave(self, mode: str) -> None:
        """Change the mode; existing connections keep their mode."""
        self.mode = mode
        self.responses.logs_in = mode != "rejects logins"
        self.responses.fetched_bytes = int(mode.removeprefix("fetches ")) if mode.startswith("fetches ") else 0
        self._silent_to = int(mode.removeprefix("silent to ")) if mode.startswith("silent to ") else None
        to, _, name = mode.partition(": ")
        self._forgery = FORGED_RESPONSES[name] if name else None
        self._forged_api = int(to.removeprefix("forged to ")) if to.startswith("forged to ") else None

    def response(self, frame: bytes) -> bytes | None:
        self.requests += 1
        if len(frame) < 8 or self.mode == "silent":
            return None
        key = struct.unpack_from(">h", frame)[0]
        self.per_key[str(key)] = self.per_key.get(str(key), 0) + 1
        if key == self._silent_to:
            return None
        sound = self.responses.response(frame)
        if sound is None or self._forgery is None or (self._forged_api is not None and key != self._forged_api):
            return sound
        return self._forgery(sound, frame)

    def counts(self) -> dict[str, Any]:
        names = ("opened", "open", "bytes", "requests", "per_key")
        return {name: getattr(self, name) for name in names}


class BrokerProtocol(asyncio.Protocol):
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._waiting = bytearray()
        self._transport: asyncio.Transport | None = None
        self._is_busy = False

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
        if not self._is_busy:
            self._process_frames()

    def _process_frames(self) -> None:
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
        self._yield_to_others(taken == _FRAMES_A_TURN)

    def _yield_to_others(self, is_busy: bool) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        if is_busy != self._is_busy:
            (self._transport.pause_reading if is_busy else self._transport.resume_reading)()
        self._is_busy = is_busy
        if is_busy:
            asyncio.get_running_loop().call_soon(self._process_frames)

    def _write_response(self, frame: bytes) -> bool:
        try:
            response = self._broker.response(frame)
        except Exception:  # brokers close the connection after a request that they cannot parse
            self._close()
            return False
        if response is not None and self._transport is not None:
            self._transport.write(response)
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
    report()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        what, _, mode = line.decode().strip().partition(" ")
        if what == "behave":
            broker.behave(mode)
        report(**broker.counts())


if __name__ == "__main__":
    uvloop.run(serve(settings_from_arguments()))
