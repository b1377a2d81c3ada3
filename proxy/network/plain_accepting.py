"""Accept clients without TLS, PROXY protocol and accept filter: their sessions begin at once."""

import asyncio
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

from sluicegate.proxy.network.listeners import BACKLOG, Acceptor
from sluicegate.proxy.network.native_sockets import as_protocol
from sluicegate.proxy.network.spare_descriptor import SpareDescriptor
from sluicegate.proxy.reporting.logs.session_log import SessionLog
from sluicegate.proxy.session.connection import Connection

if TYPE_CHECKING:
    from sluicegate.proxy.network.plain_socket import PlainSockets

# Connections accepted before the event loop handles other events.
_MOST_AT_ONCE = 16


async def accept_plain(
    listener: socket.socket,
    label: str,
    sockets: "PlainSockets | None",
    new_connection: Callable[[], Connection],
    log: SessionLog,
) -> Acceptor:
    """Accept connections of a listening socket: natively if there are native sockets, otherwise by the event loop."""
    if sockets is not None:
        return PlainAcceptor(listener, label, sockets, new_connection, log)
    loop = asyncio.get_running_loop()
    return await loop.create_server(lambda: as_protocol(new_connection()), sock=listener, backlog=BACKLOG)


class PlainAcceptor:
    """Accepts connections of a listening socket until `close`."""

    def __init__(
        self,
        listener: socket.socket,
        label: str,
        sockets: "PlainSockets",
        new_connection: Callable[[], Connection],
        log: SessionLog,
    ) -> None:
        self._listener = listener
        self._label = label
        self._sockets = sockets
        self._new_connection = new_connection
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._spare = SpareDescriptor()
        self._resume_timer: asyncio.TimerHandle | None = None
        self._listen()

    def close(self) -> None:
        """Stop accepting."""
        if self._resume_timer is not None:
            self._resume_timer.cancel()
        self._loop.remove_reader(self._listener)
        self._listener.close()
        self._spare.close()

    def _listen(self) -> None:
        self._resume_timer = None
        self._loop.add_reader(self._listener, self._accept_some)

    def _accept_some(self) -> None:
        for _ in range(_MOST_AT_ONCE):
            try:
                accepted, _ = self._listener.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:  # the next connection may succeed, whatever failed
                self._cannot_accept(error)
                return
            accepted.setblocking(False)
            self._sockets.attach(accepted, as_protocol(self._new_connection()))

    def _cannot_accept(self, error: OSError) -> None:
        seconds = self._spare.handle_accept_error(self._listener, error)
        self._log.accept_failed(self._label, error.strerror or str(error))
        self._loop.remove_reader(self._listener)
        self._resume_timer = self._loop.call_later(seconds, self._listen)
