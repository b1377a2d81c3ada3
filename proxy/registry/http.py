"""GET and POST of JSON at a schema registry: one connection that is kept, bounded in time and size."""

import json
import socket
import ssl
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

from sluicegate.config.password import Password, PasswordUnreadable
from sluicegate.proxy.network.tls import words_of

MAX_ANSWER_BYTES = 10 << 20
_REQUEST_SECONDS = 10.0
_PIECE_BYTES = 64 << 10
_ACCEPT = "application/vnd.schemaregistry.v1+json, application/json"
_CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"


class RegistryFailed(Exception):
    """A registry cannot be reached, refuses the login, or answers what cannot be used; the text says which."""


@dataclass(frozen=True, slots=True)
class Login:
    """HTTP basic authentication. The password's file is read at each request."""

    username: str
    password: Password


@dataclass(frozen=True, slots=True)
class Answer:
    """A status and what came with it, as JSON; None where that was none."""

    status: int
    body: Any


class RegistryHttp:
    """Asks one registry. For one thread at a time. `tls` makes the context of an https `url`."""

    def __init__(self, url: str, login: Login | None = None, tls: Callable[[], ssl.SSLContext] | None = None) -> None:
        parts = urlsplit(url)
        self._host = parts.hostname or ""
        self._port = parts.port
        self._path = parts.path.rstrip("/")
        self._is_https = parts.scheme == "https"
        self._login = login
        self._tls = tls or ssl.create_default_context
        self._kept: HTTPConnection | None = None

    def get(self, path: str) -> Answer:
        """Raises RegistryFailed."""
        return self._ask("GET", path, None)

    def post(self, path: str, body: Any) -> Answer:
        """Raises RegistryFailed."""
        return self._ask("POST", path, json.dumps(body).encode())

    def close(self) -> None:
        """Give the kept connection up."""
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    def _ask(self, method: str, path: str, body: bytes | None) -> Answer:
        end = monotonic() + _REQUEST_SECONDS
        was_kept = self._kept is not None
        try:
            return self._once(method, path, body, end)
        except (OSError, HTTPException) as error:
            self.close()
            # A kept connection may have been closed meanwhile, which says nothing of the registry.
            if not was_kept or isinstance(error, TimeoutError):
                raise RegistryFailed(_reason(error)) from error
        try:
            return self._once(method, path, body, end)
        except (OSError, HTTPException) as error:
            self.close()
            raise RegistryFailed(_reason(error)) from error

    def _once(self, method: str, path: str, body: bytes | None, end: float) -> Answer:
        connection = self._connected(end)
        connection.request(method, self._path + path, body, self._headers(body))
        assert connection.sock is not None
        connection.sock.settimeout(_left(end))
        response = connection.getresponse()
        content = _read(connection.sock, response, end)
        if response.will_close:
            self.close()
        else:
            self._kept = connection
        return self._judged(response.status, content)

    def _connected(self, end: float) -> HTTPConnection:
        connection = self._kept
        if connection is None:
            seconds = _left(end)
            if self._is_https:
                connection = HTTPSConnection(self._host, self._port, timeout=seconds, context=self._tls())
            else:
                connection = HTTPConnection(self._host, self._port, timeout=seconds)
            connection.connect()
            self._kept = connection
        return connection

    def _headers(self, body: bytes | None) -> dict[str, str]:
        headers = {"Accept": _ACCEPT}
        if body is not None:
            headers["Content-Type"] = _CONTENT_TYPE
        if self._login is not None:
            try:
                password = self._login.password.get()
            except PasswordUnreadable as error:
                raise RegistryFailed(str(error)) from error
            token = b64encode(f"{self._login.username}:{password}".encode()).decode()
            headers["Authorization"] = f"Basic {token}"
        return headers

    def _judged(self, status: int, content: bytes) -> Answer:
        if status in (401, 403):
            raise RegistryFailed(f"it refuses the login (HTTP {status})")
        if 300 <= status < 400:
            raise RegistryFailed(f"it redirects elsewhere (HTTP {status}), which is not followed")
        if status >= 500:
            raise RegistryFailed(f"it fails (HTTP {status})")
        try:
            return Answer(status, json.loads(content))
        except (ValueError, RecursionError):
            if status == 200:
                raise RegistryFailed("it answers what is not JSON: is the URL that of its Confluent API?") from None
            return Answer(status, None)


def _read(connection: socket.socket, response: HTTPResponse, end: float) -> bytes:
    """The whole body; a slow one ends at `end`, however it drips."""
    content = bytearray()
    while True:
        connection.settimeout(_left(end))
        piece = response.read1(_PIECE_BYTES)
        if not piece:
            return bytes(content)
        content += piece
        if len(content) > MAX_ANSWER_BYTES:
            raise HTTPException(f"an answer of more than {MAX_ANSWER_BYTES} bytes")


def _left(end: float) -> float:
    left = end - monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {_REQUEST_SECONDS:.0f} s"
    if isinstance(error, ssl.SSLError):
        return words_of(error)
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return str(error)[:200] or type(error).__name__
