"""POST of OTLP messages at a receiver, each bounded in time and size. For one thread.

Nothing that a receiver sends stands in what is told of it, so that no answer puts words into a log line.
"""

from contextlib import closing
from functools import cache
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from time import monotonic
from urllib.parse import urlsplit

from sluicegate.config.http_headers import headers_in
from sluicegate.config.otel import Otel
from sluicegate.config.password import PasswordUnreadable
from sluicegate.config.server_tls import ServerTls
from sluicegate.proxy.network.bounded_socket import BoundedSocket, Bounds, connected
from sluicegate.proxy.network.http_failures import why_failed
from sluicegate.proxy.network.tls import BadTlsFiles, context_for_server

METRICS, TRACES = "/v1/metrics", "/v1/traces"
_MOST_ANSWER_BYTES = 64 << 10
# What the specification has senders try again upon.
_LATER = frozenset({429, 502, 503, 504})
_PROTOBUF = "application/x-protobuf"
_OWN_HEADERS = {"content-type": _PROTOBUF, "user-agent": "sluicegate"}


class NotTaken(Exception):
    """The text says why. `later`: it may be taken when it is sent again, after `wait_seconds` if these are not 0."""

    def __init__(self, words: str, later: bool = False, wait_seconds: float = 0) -> None:
        super().__init__(words)
        self.later = later
        self.wait_seconds = wait_seconds


class Receiver:
    """Where `otel` says. A connection is made for each message: there is one in some seconds."""

    def __init__(self, keys: Otel) -> None:
        parts = urlsplit(keys.endpoint)
        self._host = parts.hostname or ""
        self._is_https = parts.scheme == "https"
        self._port = parts.port or (443 if self._is_https else 80)
        self._path = parts.path.rstrip("/")
        self._headers = keys.current_headers
        self._seconds = keys.timeout_seconds
        # Files are looked at when it is first connected to, and again at each connection.
        self._tls = cache(lambda: context_for_server("otel.tls", keys.tls or ServerTls()))

    def send(self, path: str, message: bytes, seconds: float | None = None) -> bytes:
        """The answer to a message that was taken; empty where it is none of OTLP's, which some receivers give.

        It is given `otel.timeout_seconds`, or `seconds` where that is less. Raises NotTaken.
        """
        given = self._seconds if seconds is None else min(seconds, self._seconds)
        bounds = Bounds(monotonic() + given, _MOST_ANSWER_BYTES)
        try:
            headers = self._all_headers()
            with closing(self._connected(bounds)) as connection:
                connection.request("POST", self._path + path, message, headers)
                with connection.getresponse() as response:
                    answer = response.read()
        except (PasswordUnreadable, BadTlsFiles) as error:
            raise NotTaken(str(error)) from error
        except (OSError, HTTPException) as error:
            raise NotTaken(why_failed(error, round(given, 1)), later=True) from error
        self._judge(response, path)
        return answer if response.headers.get_content_type() == _PROTOBUF else b""

    def _all_headers(self) -> dict[str, str]:
        text = self._headers.get()
        try:
            return {**(headers_in(text) if text else {}), **_OWN_HEADERS}
        except ValueError as error:
            raise PasswordUnreadable(self._headers.key, str(error)) from None

    def _connected(self, bounds: Bounds) -> HTTPConnection:
        made = connected(self._host, self._port, bounds)
        connection: HTTPConnection
        try:
            if self._is_https:
                self._tls().follow()
                context = self._tls().current()
                connection = HTTPSConnection(self._host, self._port, context=context)
                made.settimeout(bounds.seconds_left())
                made = context.wrap_socket(made, server_hostname=self._host)
            else:
                connection = HTTPConnection(self._host, self._port)
        except BaseException:
            made.close()
            raise
        connection.sock = BoundedSocket(made, bounds)
        return connection

    def _judge(self, response: HTTPResponse, path: str) -> None:
        status = response.status
        if status in _LATER:
            raise NotTaken(f"it wants to be asked later (HTTP {status})", True, _wait_of(response))
        if status in (401, 403):
            raise NotTaken(f"it does not let us in (HTTP {status}): look at otel.headers or otel.headers_file")
        if 300 <= status < 400 or status in (404, 405):
            raise NotTaken(f"it takes nothing at {path} (HTTP {status}): look at otel.endpoint")
        if not 200 <= status < 300:
            raise NotTaken(f"it does not take this (HTTP {status})")
        if response.headers.get_content_type() == "text/html":
            raise NotTaken("it answers with a web page: look at otel.endpoint")


def _wait_of(response: HTTPResponse) -> float:
    """How long it wants to be left alone (seconds); a date instead counts as nothing said."""
    said = response.headers.get("Retry-After", "").strip()
    return float(said) if said.isascii() and said.isdigit() and len(said) < 10 else 0
