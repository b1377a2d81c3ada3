"""The way in for TLS clients: the handshake first, then the connection is handed to its session.

Done by hand instead of by the event loop's own TLS servers, because those tell nobody why a handshake failed.
"""

import asyncio

from proxy.connection import Connection, peer_name
from proxy.session_log import SessionLog
from proxy.tls import TlsContext, words_of

_HANDSHAKE_SECONDS = 30.0


class TlsDoor(asyncio.Protocol):
    """Accepts one connection. `connection` reads nothing before it is told that the connection is made."""

    def __init__(self, tls: TlsContext, connection: Connection, listener: str, log: SessionLog) -> None:
        self._tls = tls
        self._connection = connection
        self._listener = listener
        self._log = log
        self._handshake: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._handshake = asyncio.get_running_loop().create_task(self._shake_hands(transport))

    async def _shake_hands(self, transport: asyncio.Transport) -> None:
        peer = peer_name(transport)
        try:
            secured = await asyncio.get_running_loop().start_tls(
                transport,
                self._connection,
                self._tls.current(),
                server_side=True,
                ssl_handshake_timeout=_HANDSHAKE_SECONDS,
            )
        except (OSError, EOFError, TimeoutError) as error:
            self._log.handshake_failed(peer, self._listener, words_of(error))
            transport.abort()
            return
        assert secured is not None
        self._connection.connection_made(secured)
