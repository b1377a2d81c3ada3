"""Runs servers at a registry's address, which read requests and respond as a test configures."""

import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

Answering = Callable[[socket.socket, bytes], bool | None]
"""Responds to the head of a request, and returns whether the connection stays open."""


def http_response(status: str, body: bytes = b"", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


class StandIn:
    """A server that listens within a `with` block. `heads`: the heads of all requests."""

    def __init__(self, answering: Answering, tls: ssl.SSLContext | None = None) -> None:
        self.answering = answering
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self.over = threading.Event()
        self.heads: list[bytes] = []

    @property
    def port(self) -> int:
        port: int = self._listener.getsockname()[1]
        return port

    @property
    def url(self) -> str:
        return f"http{'' if self._tls is None else 's'}://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.over.set()
        for each in (self._listener, *self._open):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def drip_bytes(self, connection: socket.socket, data: bytes) -> None:
        """Send single bytes with pauses until the test ends."""
        for byte in data:
            connection.sendall(bytes([byte]))
            if self.over.wait(0.02):
                return

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        self._open.append(client)
        with suppress(OSError):
            if self._tls is not None:
                client = self._tls.wrap_socket(client, server_side=True)
                self._open.append(client)
            while head := _head_of(client):
                self.heads.append(head)
                if not self.answering(client, head):
                    break
        with suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)
        client.close()


def _head_of(client: socket.socket) -> bytes:
    head = bytearray()
    while not head.endswith(b"\r\n\r\n"):
        byte = client.recv(1)
        if not byte:
            return b""
        head += byte
    return bytes(head)
