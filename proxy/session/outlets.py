"""What a session has done for it outside: sockets, timers, the loop's next turns. No session knows who does it.

In a proxy that is asyncio (`sluicegate.proxy.network`), in a test whatever writes down what it is told.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


class UpstreamUnreachable(Exception):
    """No address took a connection; the text names each with its reason."""


class Transport(Protocol):
    """Where a connection's bytes go: of what asyncio calls a Transport, as much as is used."""

    def write(self, data: bytes | bytearray | memoryview, /) -> None:
        """Send bytes."""

    def writelines(self, list_of_data: Sequence[bytes | bytearray | memoryview], /) -> None:
        """Send several buffers, in their order."""

    def write_eof(self) -> None:
        """Send what is buffered, then tell the peer that no more will come."""

    def get_write_buffer_size(self) -> int:
        """Bytes that were written and that the system has not taken."""

    def pause_reading(self) -> None:
        """Deliver nothing until `resume_reading`; what is under way may still come."""

    def resume_reading(self) -> None:
        """Deliver again."""

    def is_closing(self) -> bool:
        """Whether it has been closed, or is being."""

    def close(self) -> None:
        """Send what is buffered, then close."""

    def abort(self) -> None:
        """Close at once."""


def nowhere(_data: bytes | bytearray | memoryview) -> None:
    """Writes to a connection that is not there."""


def is_gone() -> bool:
    """Of a connection that is not there."""
    return True


@dataclass(frozen=True, slots=True)
class PeerInfo:
    """Who is at the other end: both ends as host:port; of a TLS client what its handshake has told, `names` those
    in its certificate.
    """

    peer: str
    local_address: str
    is_tls: bool = False
    server_name: str | None = None
    principal: str | None = None
    names: tuple[str, ...] = ()


DescribePeer = Callable[[Any], PeerInfo]
"""Makes a socket ready, and tells who it leads to. Given the transport."""


class Timer(Protocol):
    """Something that is to be done later."""

    def cancel(self) -> object:
        """It is not."""


@dataclass(frozen=True, slots=True)
class LoopCalls:
    """What an event loop does: `call_soon` behind what is going on now, `call_later` after some seconds, and `later` in
    the turn of an address among all that wait (`Pacer`).
    """

    call_soon: Callable[..., Any]
    call_later: Callable[[float, Callable[[], None]], Timer]
    later: Callable[[Callable[[], None], str], None]


class Reached(Protocol):
    """Something that is asked for elsewhere, of which only its end matters: a future."""

    def add_done_callback(self, done: Callable[[Any], None], /) -> Any:
        """Call this when it is over."""
