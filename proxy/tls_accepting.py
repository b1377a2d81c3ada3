"""Accepts TLS clients: the handshake first, then the connection is its session's.

Done by hand instead of by the event loop's own TLS servers, because those tell nobody why a handshake failed.
"""

import asyncio
import socket
from collections.abc import Callable
from typing import Any

from proxy.session_log import SessionLog
from proxy.tls import TlsContext, words_of

_HANDSHAKE_SECONDS = 30.0
# As when no more files can be opened: look again a little later.
_AFTER_FAILURE_SECONDS = 1.0


class TlsAcceptor:
    """Takes connections from a listening socket until `close`; `new_protocol` makes what gets each one."""

    def __init__(
        self,
        listener: socket.socket,
        label: str,
        tls: TlsContext,
        new_protocol: Callable[[], asyncio.BaseProtocol],
        log: SessionLog,
    ) -> None:
        self._listener = listener
        self._label = label
        self._tls = tls
        self._new_protocol = new_protocol
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._handshakes: set[asyncio.Task[None]] = set()
        self._accepting = self._loop.create_task(self._accept())

    def close(self) -> None:
        """Take no more connections; handshakes under way are given up."""
        self._accepting.cancel()
        for handshake in self._handshakes:
            handshake.cancel()
        self._listener.close()

    async def _accept(self) -> None:
        while True:
            try:
                connection, peer = await self._loop.sock_accept(self._listener)
            except OSError as error:
                self._log.cannot_accept(self._label, error.strerror or str(error))
                await asyncio.sleep(_AFTER_FAILURE_SECONDS)
                continue
            handshake = self._loop.create_task(self._shake_hands(connection, peer))
            self._handshakes.add(handshake)
            handshake.add_done_callback(self._handshakes.discard)

    async def _shake_hands(self, connection: socket.socket, peer: Any) -> None:
        try:
            await self._loop.connect_accepted_socket(
                self._new_protocol, connection, ssl=self._tls.current(), ssl_handshake_timeout=_HANDSHAKE_SECONDS
            )
        except (OSError, EOFError) as error:
            self._log.handshake_failed(f"{peer[0]}:{peer[1]}", self._label, words_of(error))
            connection.close()
