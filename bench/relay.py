"""Forwards bytes on uvloop, the least that a Python proxy can do, with which the cost of validation is compared.

Run: python -m bench.relay LISTEN_PORT UPSTREAM_PORT [CERTIFICATE KEY AUTHORITY] (both on 127.0.0.1). With the three
files, the relay uses TLS on both sides.
"""

import asyncio
import socket
import ssl
import sys
from typing import cast

import uvloop

_HOST = "127.0.0.1"
_READ = memoryview(bytearray(256 * 1024))  # shared by all connections, because each read is handled before the next one


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
    def __init__(self, upstream: int, tls: ssl.SSLContext | None) -> None:
        super().__init__()
        self._upstream = upstream
        self._tls = tls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._connecting = asyncio.get_running_loop().create_task(self._connect())

    async def _connect(self) -> None:
        broker = _Side()
        await asyncio.get_running_loop().create_connection(lambda: broker, _HOST, self._upstream, ssl=self._tls)
        self.other, broker.other = broker, self
        if self.early:
            broker.transport.write(self.early)


async def _serve(listen: int, upstream: int, server_tls: ssl.SSLContext | None, tls: ssl.SSLContext | None) -> None:
    server = await asyncio.get_running_loop().create_server(
        lambda: _Client(upstream, tls), _HOST, listen, backlog=1024, ssl=server_tls
    )
    await server.serve_forever()


def _contexts(files: list[str]) -> tuple[ssl.SSLContext | None, ssl.SSLContext | None]:
    """Return the TLS contexts for clients and for the broker; None for both without files."""
    if not files:
        return None, None
    certificate, key, authority = files
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate, key)
    return server, ssl.create_default_context(cafile=authority)


if __name__ == "__main__":
    uvloop.run(_serve(int(sys.argv[1]), int(sys.argv[2]), *_contexts(sys.argv[3:])))
