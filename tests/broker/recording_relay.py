"""Runs a relay in front of a broker or a proxy that records every byte in both directions."""

import socket
import threading
from contextlib import suppress
from types import TracebackType
from typing import NamedTuple, Self

_CHUNK = 65536


class RecordedConnection(NamedTuple):
    """The bytes of one connection so far."""

    by_client: bytearray
    to_client: bytearray


class RecordingRelay:
    """Listens at `host` on each of `ports` and forwards to the same port of 127.0.0.1."""

    def __init__(self, host: str, ports: list[int]) -> None:
        self._host = host
        self._ports = ports
        self._listeners: list[socket.socket] = []
        self._recorded: list[RecordedConnection] = []

    @property
    def sent_to_clients(self) -> list[bytes]:
        """Return the bytes sent to the client so far, for each connection."""
        return [bytes(record.to_client) for record in self._recorded]

    @property
    def sent_by_clients(self) -> list[bytes]:
        """Return the bytes sent by the client so far, for each connection."""
        return [bytes(record.by_client) for record in self._recorded]

    def __enter__(self) -> Self:
        for port in self._ports:
            listener = socket.create_server((self._host, port))
            self._listeners.append(listener)
            threading.Thread(target=self._accept, args=(listener, port), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for listener in self._listeners:
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()

    def _accept(self, listener: socket.socket, port: int) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            try:
                proxy = socket.create_connection(("127.0.0.1", port))
            except OSError:
                client.close()
                continue
            record = RecordedConnection(bytearray(), bytearray())
            self._recorded.append(record)
            for source, sink, kept in ((client, proxy, record.by_client), (proxy, client, record.to_client)):
                threading.Thread(target=_pump, args=(source, sink, kept), daemon=True).start()


def _pump(source: socket.socket, sink: socket.socket, kept: bytearray) -> None:
    try:
        while data := source.recv(_CHUNK):
            kept += data
            sink.sendall(data)
    except OSError:
        pass  # one side has closed the connection, which ends it
    finally:
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)  # close without shutdown does not wake the thread of the other direction
            end.close()
