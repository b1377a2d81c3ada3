"""Sends GET and POST requests for JSON to a schema registry, over one persistent connection.

Time and size are limited. Failure messages quote nothing that a registry has sent, so no response can inject text into
a log line.
"""

import json
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse, IncompleteRead
from time import monotonic
from typing import Any, Final
from urllib.parse import urlsplit

from sluicegate.proxy.network.http_client import (
    BoundedSocket,
    HttpResponseTooLarge,
    LookUpLimits,
    http_failure_message,
    open_connection,
)
from sluicegate.proxy.registry.login import LoginMissing, OutgoingRequest, RegistryLogin

# A registry stores schemas in Kafka records of at most 1 MiB by default. JSON inside JSON may take twice that.
MAX_RESPONSE_BYTES = 4 << 20
# Parsing this many objects blocks the interpreter for about 20 ms.
_MOST_ITEMS = 200_000
_BETWEEN_ITEMS = (b",", b"[", b"{")
_CHUNK_BYTES = 64 << 10
_LOOK_UP_SECONDS = 10.0
_ACCEPT = "application/vnd.schemaregistry.v1+json, application/json"
_OF_JSON: Final = {"Content-Type": "application/vnd.schemaregistry.v1+json"}


class RegistryFailed(Exception):
    """A registry is unreachable, rejects the login, or sends an unusable response. The message explains which.

    `retry_after_seconds` is the response's Retry-After, or 0 without one.
    """

    def __init__(self, message: str, retry_after_seconds: float = 0) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class ResponseTooLarge(RegistryFailed):
    """A response exceeds the size limit."""


def as_registry_failed(error: Exception, seconds: float) -> RegistryFailed:
    """Convert `error` to RegistryFailed, quoting nothing from the registry. `seconds` is the timeout that applied."""
    made = ResponseTooLarge if isinstance(error, HttpResponseTooLarge) else RegistryFailed
    return made(http_failure_message(error, seconds))


@dataclass(frozen=True, slots=True)
class JsonResponse:
    """A response's status and parsed body. `body` is None if it is not JSON."""

    status: int
    body: Any


@dataclass(frozen=True, slots=True)
class TextResponse:
    """A response's status and text. `text` is None if the body is not UTF-8."""

    status: int
    text: str | None


class RegistryHttp:
    """One registry's HTTP client, which only one thread may use at a time.

    `tls` returns the context for an https `url`.
    """

    def __init__(
        self,
        url: str,
        login: RegistryLogin | None = None,
        tls: Callable[[], ssl.SSLContext] | None = None,
        look_up_seconds: float = _LOOK_UP_SECONDS,
    ) -> None:
        self._kept: HTTPConnection | None = None
        parts = urlsplit(url)
        self._url = url
        self._host = parts.netloc.removesuffix(":443" if parts.scheme == "https" else ":80")
        self._is_https = parts.scheme == "https"
        self._path = parts.path.rstrip("/")
        self._login = login
        self._tls = tls or ssl.create_default_context
        self._seconds = look_up_seconds
        self._bounds = LookUpLimits(0, 0)
        self.begin()

    def __del__(self) -> None:
        """Close the connection of a registry that a reload replaced."""
        self.close()

    def begin(self) -> None:
        """Start a lookup. All its requests together may take ten seconds and 4 MiB."""
        self._bounds = LookUpLimits(monotonic() + self._seconds, MAX_RESPONSE_BYTES)

    def get(self, path: str) -> JsonResponse:
        """Send a GET request. Raises RegistryFailed."""
        return _parsed(self._ask("GET", path, b"", {}))

    def get_text(self, path: str) -> TextResponse:
        """Send a GET request for text that may not be JSON. Raises RegistryFailed."""
        return self._ask("GET", path, b"", {})

    def post(self, path: str, body: Any, headers: Mapping[str, str] = _OF_JSON) -> JsonResponse:
        """Send a POST request. Raises RegistryFailed."""
        return _parsed(self._ask("POST", path, json.dumps(body).encode(), headers))

    def close(self) -> None:
        """Close the persistent connection."""
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    def _ask(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> TextResponse:
        was_kept = self._kept is not None
        try:
            return self._once(method, path, body, headers)
        except (OSError, HTTPException) as error:
            self.close()
            # The registry may have closed an idle connection, which is not a failure.
            if not was_kept or isinstance(error, TimeoutError | HttpResponseTooLarge):
                raise as_registry_failed(error, self._seconds) from error
        try:
            return self._once(method, path, body, headers)
        except (OSError, HTTPException) as error:
            self.close()
            raise as_registry_failed(error, self._seconds) from error

    def _once(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> TextResponse:
        connection = self._connected()
        request = OutgoingRequest(method, self._host, self._path + path, {"Accept": _ACCEPT, **headers}, body)
        connection.request(method, request.path, body or None, self._headers(request))
        with connection.getresponse() as response:  # the response must be closed before the next request
            content = _read(response, self._bounds)
        if response.will_close:
            self.close()
        return self._validated(response, content)

    def _connected(self) -> HTTPConnection:
        connection = self._kept
        if connection is not None and isinstance(connection.sock, BoundedSocket):
            connection.sock.bounds = self._bounds
            return connection
        connection = open_connection(self._url, self._bounds, self._tls() if self._is_https else None)
        self._kept = connection
        return connection

    def _headers(self, request: OutgoingRequest) -> dict[str, str]:
        if self._login is None:
            return dict(request.headers)
        try:
            return {**request.headers, **self._login.headers(request, self._bounds.seconds_left())}
        except LoginMissing as error:
            raise RegistryFailed(str(error)) from error

    def _validated(self, response: HTTPResponse, content: bytes) -> TextResponse:
        status = response.status
        if status == 401:
            if self._login is None:
                raise RegistryFailed("the registry requires a login (HTTP 401): set username, token_file or oauth")
            self._login.on_rejection()
            raise RegistryFailed(f"the registry rejects the login (HTTP 401): check {self._login.keys}")
        if status == 403:
            raise RegistryFailed("the registry denies this login read access (HTTP 403): grant the user read access")
        if 300 <= status < 400:
            raise RegistryFailed(
                f"the registry redirects (HTTP {status}), and redirects are not followed: correct the url"
            )
        if status == 429:
            raise RegistryFailed("the registry limits the request rate (HTTP 429)", _retry_after(response))
        if status >= 500:
            raise RegistryFailed(f"the registry failed (HTTP {status})", _retry_after(response))
        try:
            return TextResponse(status, content.decode())
        except UnicodeDecodeError:
            return TextResponse(status, None)


def _parsed(response: TextResponse) -> JsonResponse:
    """Parse the body as JSON. Raises RegistryFailed if a successful response contains no JSON."""
    try:
        return JsonResponse(response.status, None if response.text is None else json.loads(response.text))
    except (ValueError, RecursionError):
        if response.status == 200:
            raise RegistryFailed("the response is not JSON: set url to the registry's Confluent API") from None
        return JsonResponse(response.status, None)


def _read(response: HTTPResponse, bounds: LookUpLimits) -> bytes:
    """Return the whole body. Raises HttpResponseTooLarge as soon as the limit is exceeded."""
    if response.length is not None:
        bounds.check(response.length)
    content = bytearray()
    items = 0
    while chunk := response.read1(_CHUNK_BYTES):
        items += sum(map(chunk.count, _BETWEEN_ITEMS))
        if items > _MOST_ITEMS:
            raise HttpResponseTooLarge(f"a response of more than {_MOST_ITEMS} parts")
        content += chunk
    if response.length:
        raise IncompleteRead(b"")
    return bytes(content)


def _retry_after(response: HTTPResponse) -> float:
    """Return the Retry-After in seconds, or 0 if it is missing or a date."""
    text = response.headers.get("Retry-After", "").strip()
    return float(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
