"""Interfaces between a session and its sockets, timers and event loop.

The proxy implements them with asyncio (`sluicegate.proxy.network`), and the tests implement them with recorders.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


class UpstreamUnreachable(Exception):
    """No address accepted a connection. The message gives the reason for each address."""


class Transport(Protocol):
    """A connection's output: the part of an asyncio Transport that sessions use."""

    def write(self, data: bytes | bytearray | memoryview, /) -> None:
        """Send bytes."""

    def writelines(self, list_of_data: Sequence[bytes | bytearray | memoryview], /) -> None:
        """Send several buffers in order."""

    def write_eof(self) -> None:
        """Send the buffered output, then end the output."""

    def get_write_buffer_size(self) -> int:
        """Return the number of bytes that the system has not accepted."""

    def pause_reading(self) -> None:
        """Stop delivery until `resume_reading` is called. Bytes in transit may still arrive."""

    def resume_reading(self) -> None:
        """Resume delivery."""

    def is_closing(self) -> bool:
        """Return whether the connection is closed or closing."""

    def close(self) -> None:
        """Send the buffered output, then close."""

    def abort(self) -> None:
        """Close immediately."""


def discard_output(_data: bytes | bytearray | memoryview) -> None:
    """Discard output, because the connection is closed."""


def is_gone() -> bool:
    """Return True, because the connection is closed."""
    return True


@dataclass(frozen=True, slots=True)
class PeerInfo:
    """The addresses of both ends as host:port, and a client's TLS details. `names` contains its certificate's names."""

    peer: str
    local_address: str
    is_tls: bool = False
    server_name: str | None = None
    principal: str | None = None
    names: tuple[str, ...] = ()


DescribePeer = Callable[[Any], PeerInfo]
"""Prepares a transport's socket and describes its peer."""


class Timer(Protocol):
    """A scheduled call."""

    def cancel(self) -> object:
        """Cancel the call."""


@dataclass(frozen=True, slots=True)
class LoopCalls:
    """Functions of the event loop.

    `call_soon` runs a function in a later iteration, and `call_later` after a number of seconds. `later` runs it in a
    fair order among client addresses (`Pacer`).
    """

    call_soon: Callable[..., Any]
    call_later: Callable[[float, Callable[[], None]], Timer]
    later: Callable[[Callable[[], None], str], None]


class CompletionFuture(Protocol):
    """A future without a result."""

    def add_done_callback(self, done: Callable[[Any], None], /) -> Any:
        """Call `done` when the future is done."""
