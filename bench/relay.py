"""The least a Python proxy can do: bytes in, bytes out, on uvloop. What checking costs is measured against this.

Run: python -m bench.relay LISTEN_PORT UPSTREAM_PORT (both on 127.0.0.1).
"""

import asyncio
import socket
import sys
from typing import cast

import uvloop

_HOST = "127.0.0.1"
_READ = memoryview(bytearray(256 * 1024))  # one for all connections: it is used up before the next read


class _Side(asyncio.BufferedProtocol):
    transport: asyncio.Transport
    other: "_Side | None" = None

    def __init__(self) -> None:
        self.early = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def get_buffer(self, sizehint: int) -> memoryview:
        return _READ

    def buffer_updated(self, nbytes: int) -> None:
        if self.other is None:
            self.early += bytes(_READ[:nbytes])
        else:
            self.other.transport.write(bytes(_READ[:nbytes]))

    def pause_writing(self) -> None:
        if self.other is not None:
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        if self.other is not None:
            self.other.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        if self.other is not None:
            self.other.transport.close()


class _Client(_Side):
    def __init__(self, upstream: int) -> None:
        super().__init__()
        self._upstream = upstream

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._connecting = asyncio.get_running_loop().create_task(self._connect())

    async def _connect(self) -> None:
        broker = _Side()
        await asyncio.get_running_loop().create_connection(lambda: broker, _HOST, self._upstream)
        self.other, broker.other = broker, self
        if self.early:
            broker.transport.write(self.early)


async def _serve(listen: int, upstream: int) -> None:
    server = await asyncio.get_running_loop().create_server(lambda: _Client(upstream), _HOST, listen, backlog=1024)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(_serve(int(sys.argv[1]), int(sys.argv[2])))
