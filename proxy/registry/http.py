"""GET and POST of JSON at a schema registry: one connection that is kept, bounded in time and size.

Nothing that a registry sends stands in what is told of it, so that no answer puts words into a log line.
"""

import json
import ssl
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection, IncompleteRead
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

from sluicegate.config.values.password import Password, PasswordUnreadable
from sluicegate.proxy.network.http_client import BoundedSocket, Bounds, TooLarge, connect, http_failure_message

# Kafka's own bound of a record is 1 MiB, and a registry keeps its schemas in records; JSON in JSON may take twice that.
MAX_RESPONSE_BYTES = 4 << 20
# Making so many objects takes some 20 ms, in which nobody else has the interpreter.
_MOST_ITEMS = 200_000
_BETWEEN_ITEMS = (b",", b"[", b"{")
_PIECE_BYTES = 64 << 10
_LOOK_UP_SECONDS = 10.0
_ACCEPT = "application/vnd.schemaregistry.v1+json, application/json"
_CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"


class RegistryFailed(Exception):
    """A registry cannot be reached, rejects the login, or answers what cannot be used; the text says which.

    `wait_seconds`: how long it has asked to be left alone; 0: nothing said.
    """

    def __init__(self, words: str, wait_seconds: float = 0) -> None:
        super().__init__(words)
        self.wait_seconds = wait_seconds


class ResponseTooLarge(RegistryFailed):
    """One answer of it is more than is read; others need not be."""


def failed(error: Exception, seconds: float) -> RegistryFailed:
    """What went wrong, where `seconds` were given; nothing that the other side has sent."""
    made = ResponseTooLarge if isinstance(error, TooLarge) else RegistryFailed
    return made(http_failure_message(error, seconds))


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

    def __init__(
        self,
        url: str,
        login: Login | None = None,
        tls: Callable[[], ssl.SSLContext] | None = None,
        look_up_seconds: float = _LOOK_UP_SECONDS,
    ) -> None:
        parts = urlsplit(url)
        self._host = parts.hostname or ""
        self._is_https = parts.scheme == "https"
        self._port = parts.port or (443 if self._is_https else 80)
        self._path = parts.path.rstrip("/")
        self._login = login
        self._tls = tls or ssl.create_default_context
        self._seconds = look_up_seconds
        self._bounds = Bounds(0, 0)
        self._kept: HTTPConnection | None = None
        self.begin()

    def begin(self) -> None:
        """A look-up begins: all that it asks must be answered within ten seconds and 4 MiB together."""
        self._bounds = Bounds(monotonic() + self._seconds, MAX_RESPONSE_BYTES)

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
        was_kept = self._kept is not None
        try:
            return self._once(method, path, body)
        except (OSError, HTTPException) as error:
            self.close()
            # A kept connection may have been closed meanwhile, which says nothing of the registry.
            if not was_kept or isinstance(error, TimeoutError | TooLarge):
                raise failed(error, self._seconds) from error
        try:
            return self._once(method, path, body)
        except (OSError, HTTPException) as error:
            self.close()
            raise failed(error, self._seconds) from error

    def _once(self, method: str, path: str, body: bytes | None) -> Answer:
        connection = self._connected()
        connection.request(method, self._path + path, body, self._headers(body))
        with connection.getresponse() as response:  # one that is not closed is in the next one's way
            content = _read(response, self._bounds)
        if response.will_close:
            self.close()
        return self._validated(response, content)

    def _connected(self) -> HTTPConnection:
        connection = self._kept
        if connection is not None and isinstance(connection.sock, BoundedSocket):
            connection.sock.bounds = self._bounds
            return connection
        made = connect(self._host, self._port, self._bounds)
        try:
            if self._is_https:
                context = self._tls()
                connection = HTTPSConnection(self._host, self._port, context=context)
                made.settimeout(self._bounds.seconds_left())
                made = context.wrap_socket(made, server_hostname=self._host)
            else:
                connection = HTTPConnection(self._host, self._port)
        except BaseException:
            made.close()
            raise
        connection.sock = BoundedSocket(made, self._bounds)
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

    def _validated(self, response: HTTPResponse, content: bytes) -> Answer:
        status = response.status
        if status == 401:
            wrong = "rejects the login" if self._login is not None else "wants a login"
            raise RegistryFailed(f"it {wrong} (HTTP 401): look at its username and password_file")
        if status == 403:
            raise RegistryFailed("it does not let this login read (HTTP 403): give its user the right to")
        if 300 <= status < 400:
            raise RegistryFailed(f"it redirects elsewhere (HTTP {status}), which is not followed: mend its url")
        if status == 429:
            raise RegistryFailed("it wants to be asked less (HTTP 429)", _wait_of(response))
        if status >= 500:
            raise RegistryFailed(f"it fails (HTTP {status})", _wait_of(response))
        try:
            return Answer(status, json.loads(content))
        except (ValueError, RecursionError):
            if status == 200:
                raise RegistryFailed("its response is not JSON: is the url that of its Confluent API?") from None
            return Answer(status, None)


def _read(response: HTTPResponse, bounds: Bounds) -> bytes:
    """The whole body. Raises TooLarge as soon as it is known to be."""
    if response.length is not None:
        bounds.check(response.length)
    content = bytearray()
    items = 0
    while piece := response.read1(_PIECE_BYTES):
        items += sum(map(piece.count, _BETWEEN_ITEMS))
        if items > _MOST_ITEMS:
            raise TooLarge(f"a response of more than {_MOST_ITEMS} parts")
        content += piece
    if response.length:
        raise IncompleteRead(b"")
    return bytes(content)


def _wait_of(response: HTTPResponse) -> float:
    """How long it wants to be left alone (seconds); a date instead counts as nothing said."""
    said = response.headers.get("Retry-After", "").strip()
    return float(said) if said.isascii() and said.isdigit() and len(said) < 10 else 0
