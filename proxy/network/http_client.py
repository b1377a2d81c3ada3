"""A socket that takes so long and brings so much, and no more, whatever its peer does with the time.

A timeout of the system begins anew with each byte, so a peer that drips would have a reader wait for ever, and what is
read in between (status, headers, chunk sizes, trailers) is counted nowhere else.
"""

import io
import socket
import ssl
from collections.abc import Iterator
from http.client import BadStatusLine, HTTPException, IncompleteRead, RemoteDisconnected
from time import monotonic
from typing import IO, TYPE_CHECKING

from sluicegate.proxy.network.tls.contexts import words_of

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


class TooLarge(HTTPException):
    """More was sent than may be."""


class Bounds:
    """What a look-up may still take, whatever it asks on the way: until `end` (s, monotonic), and so many bytes."""

    def __init__(self, end: float, most_bytes: int) -> None:
        self.end = end
        self.most_bytes = most_bytes
        self.bytes_left = most_bytes

    def seconds_left(self) -> float:
        """Raises TimeoutError where there are none."""
        left = self.end - monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def check(self, size: int) -> None:
        """Before so much is read. Raises TooLarge."""
        if size > self.bytes_left:
            raise TooLarge(f"an answer of more than {self.most_bytes} bytes")

    def read(self, size: int) -> None:
        """So much came. Raises TooLarge."""
        self.check(size)
        self.bytes_left -= size


class BoundedSocket:
    """What http.client needs of a socket. `bounds` are those of the look-up that it is used for."""

    def __init__(self, connected: socket.socket, bounds: Bounds) -> None:
        self._socket = connected
        self.bounds = bounds

    def sendall(self, data: bytes) -> None:
        """Raises TimeoutError."""
        self._socket.settimeout(self.bounds.seconds_left())
        self._socket.sendall(data)

    def makefile(self, _mode: str) -> IO[bytes]:
        """What comes, for one answer."""
        return io.BufferedReader(_Incoming(self._socket, self.bounds))

    def close(self) -> None:
        """The system's socket goes with the last file that was made of it."""
        self._socket.close()


class _Incoming(io.RawIOBase):
    def __init__(self, connected: socket.socket, bounds: Bounds) -> None:
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


def connected(host: str, port: int, bounds: Bounds) -> socket.socket:
    """A connection to the first of a host's addresses that takes one. Raises OSError."""
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


def _addresses(host: str, port: int) -> Iterator[tuple[int, tuple[str, int]]]:
    try:
        found = socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM)
    except UnicodeError:  # of a name with an empty part, or too long a one
        raise OSError(f"{host[:100]} is no host name") from None
    for family, _kind, _protocol, _name, address in found:
        yield family, address  # type: ignore[misc]  # TCP's have a host and a port


# What OpenSSL says where nobody vouches for a certificate that is trusted here.
_UNKNOWN_ISSUER = frozenset({18, 19, 20, 21})


def why_failed(error: Exception, seconds: float) -> str:
    """What went wrong, where `seconds` were given."""
    if isinstance(error, TooLarge):
        return f"it sends {error}"
    if isinstance(error, TimeoutError):
        return f"no answer within {seconds:g} s"
    return _of_tls(error) if isinstance(error, ssl.SSLError) else _of_connection(error)


def _of_connection(error: Exception) -> str:
    for kind, words in _WORDS:
        if isinstance(error, kind):
            return words
    if isinstance(error, socket.gaierror):
        return f"its host name is not found ({error.strerror})"
    if isinstance(error, OSError):
        return error.strerror or str(error) or type(error).__name__
    return f"it answers what is not HTTP ({type(error).__name__})"


_WORDS = (
    (RemoteDisconnected, "it closed the connection without an answer"),
    (ConnectionResetError, "it closed the connection without an answer"),
    (BrokenPipeError, "it closed the connection without an answer"),
    (IncompleteRead, "it closed the connection in the middle of an answer"),
    (BadStatusLine, "it does not speak HTTP, or only HTTPS: look at its url"),
)


def _of_tls(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError) and error.verify_code in _UNKNOWN_ISSUER:
        return f"{words_of(error)}; name its CA in tls.ca_file"
    if error.reason == "WRONG_VERSION_NUMBER":
        return "it does not speak TLS: its url should begin with http:, or lead to another port"
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return "it closed the connection within TLS; does it want another certificate of ours (tls.certificate_file)?"
    return words_of(error)
