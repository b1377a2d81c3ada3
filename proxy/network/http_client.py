"""The HTTP client of the proxy and the pipeline. It limits a whole request's time and bytes, and explains failures.

The system's socket timeout restarts with each byte, so a peer that sends one byte at a time could delay a reader
forever. And http.client does not limit the total size of status line, headers, chunk sizes and trailers.
"""

import io
import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from http.client import (
    BadStatusLine,
    HTTPConnection,
    HTTPException,
    HTTPResponse,
    HTTPSConnection,
    IncompleteRead,
    RemoteDisconnected,
)
from time import monotonic
from typing import IO, TYPE_CHECKING
from urllib.parse import urlsplit

from sluicegate.proxy.network.tls.contexts import tls_failure_message

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


class HttpResponseTooLarge(HTTPException):
    """The peer sent more bytes than the limit allows."""


class LookUpLimits:
    """The limits of one lookup, which may make several requests.

    `end` is the monotonic time (s) by which the lookup must be complete, and `most_bytes` is the maximum number of
    bytes read.
    """

    def __init__(self, end: float, most_bytes: int) -> None:
        self.end = end
        self.most_bytes = most_bytes
        self.bytes_left = most_bytes

    def seconds_left(self) -> float:
        """Return the number of seconds until `end`. Raises TimeoutError if `end` has passed."""
        left = self.end - monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def check(self, size: int) -> None:
        """Check that `size` more bytes may be read. Raises HttpResponseTooLarge."""
        if size > self.bytes_left:
            raise HttpResponseTooLarge(f"a response of more than {self.most_bytes} bytes")

    def read(self, size: int) -> None:
        """Count `size` bytes as read. Raises HttpResponseTooLarge."""
        self.check(size)
        self.bytes_left -= size


class BoundedSocket:
    """The methods of a socket that http.client calls. `bounds` are the limits of the current lookup."""

    def __init__(self, connected: socket.socket, bounds: LookUpLimits) -> None:
        self._socket = connected
        self.bounds = bounds

    def sendall(self, data: bytes) -> None:
        """Send all of `data`. Raises TimeoutError."""
        self._socket.settimeout(self.bounds.seconds_left())
        self._socket.sendall(data)

    def makefile(self, _mode: str) -> IO[bytes]:
        """Return a reader for one response."""
        return io.BufferedReader(_Incoming(self._socket, self.bounds))

    def close(self) -> None:
        """Close the socket. The system closes it with the last file that was made from it."""
        self._socket.close()


class _Incoming(io.RawIOBase):
    def __init__(self, connected: socket.socket, bounds: LookUpLimits) -> None:
        self._socket = connected
        self._file = connected.makefile("rb", buffering=0)
        self._bounds = bounds

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        self._socket.settimeout(self._bounds.seconds_left())
        count = self._file.readinto(buffer) or 0
        self._bounds.read(count)
        return count

    def close(self) -> None:
        self._file.close()
        super().close()


@contextmanager
def response_to(
    method: str,
    url: str,
    bounds: LookUpLimits,
    headers: Mapping[str, str],
    body: bytes | None = None,
    tls: ssl.SSLContext | None = None,
) -> Iterator[HTTPResponse]:
    """Send a request over a new connection and return the response.

    `tls` is required for https. Redirects are not followed. Raises OSError and HTTPException.
    """
    parts = urlsplit(url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    with closing(open_connection(url, bounds, tls)) as connection:
        connection.request(method, target, body, headers)
        with connection.getresponse() as response:
            yield response


def _connect(host: str, port: int, bounds: LookUpLimits) -> socket.socket:
    """Connect to the first address of `host` that accepts a connection. Raises OSError."""
    failure: OSError | None = None
    for family, address in _addresses(host, port):
        made = socket.socket(family, socket.SOCK_STREAM)
        try:
            made.settimeout(bounds.seconds_left())
            made.connect(address)
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            made.close()
            failure = failure or error
        else:
            return made
    raise failure or OSError("no address")


def open_connection(url: str, bounds: LookUpLimits, tls: ssl.SSLContext | None) -> HTTPConnection:
    """Connect to the server of a URL. `tls` is required for https. Raises OSError."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or (443 if tls is not None else 80)
    made = _connect(host, port, bounds)
    if tls is None:
        connection = HTTPConnection(host, port)
    else:
        try:
            made.settimeout(bounds.seconds_left())
            made = tls.wrap_socket(made, server_hostname=host)
        except BaseException:
            made.close()
            raise
        connection = HTTPSConnection(host, port, context=tls)
    connection.sock = BoundedSocket(made, bounds)
    return connection


def _addresses(host: str, port: int) -> Iterator[tuple[int, tuple[str, int]]]:
    try:
        found = socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM)
    except UnicodeError:  # a label of the host name is empty or too long
        raise OSError(f"{host[:100]} is not a host name") from None
    for family, _kind, _protocol, _name, address in found:
        yield family, address  # type: ignore[misc]  # TCP addresses have a host and a port


# OpenSSL's codes for a certificate whose issuer is not trusted.
_UNKNOWN_ISSUER = frozenset({18, 19, 20, 21})


def http_failure_message(error: Exception, seconds: float, ca_key: str = "tls.ca_file") -> str:
    """Return why a request failed, as a message for operators that quotes nothing from the peer.

    `seconds` is the timeout that applied. `ca_key` is the configuration key of the trusted CAs.
    """
    if isinstance(error, HttpResponseTooLarge):
        return f"the server sent {error}"
    if isinstance(error, TimeoutError):
        return f"no response within {seconds:g} s"
    return _of_tls(error, ca_key) if isinstance(error, ssl.SSLError) else _of_connection(error)


def _of_connection(error: Exception) -> str:
    for kind, words in _WORDS:
        if isinstance(error, kind):
            return words
    if isinstance(error, socket.gaierror):
        return f"the host name cannot be resolved ({error.strerror})"
    if isinstance(error, OSError):
        return error.strerror or str(error) or type(error).__name__
    return f"the response is not HTTP ({type(error).__name__})"


_WORDS = (
    (RemoteDisconnected, "the server closed the connection without a response"),
    (ConnectionResetError, "the server closed the connection without a response"),
    (BrokenPipeError, "the server closed the connection without a response"),
    (IncompleteRead, "the server closed the connection in the middle of a response"),
    (BadStatusLine, "the server does not use HTTP, or accepts only HTTPS: check the url"),
)


def _of_tls(error: ssl.SSLError, ca_key: str) -> str:
    if isinstance(error, ssl.SSLCertVerificationError) and error.verify_code in _UNKNOWN_ISSUER:
        return f"{tls_failure_message(error)}; name its CA in {ca_key}"
    if error.reason == "WRONG_VERSION_NUMBER":
        return "the server does not use TLS: write http: in the url, or another port"
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return "the server closed the TLS connection: it may require another client certificate (tls.certificate_file)"
    return tls_failure_message(error)
