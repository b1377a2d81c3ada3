"""Describes one hostile input: the bytes, the number of connections, the kind of broker, and the expected end."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

MIB = 1 << 20
RULES_PROCESS_BYTES = (256 + 64) * MIB
"""The memory that a rules process may use: limits.rule_memory_bytes, and its libraries."""


class ExpectedEnd(Enum):
    """How each sender's connection must end before its time is up."""

    RESPONDED_OR_CLOSED = "responded to or closed"
    RESPONDED = "responded to"
    CLOSED = "closed"
    STAYS = "open until the sender leaves"
    GONE = "closed by the proxy, unnoticed by a client that does not read"


@dataclass(frozen=True)
class CaseSize:
    """The size of a case: `amount` is passed to `sends`; senders stay at most `seconds`."""

    amount: int = 1
    connections: int = 1
    seconds: float = 8


Sends = Callable[[int, int], Iterable[bytes]]
"""Returns the pieces that a connection sends, given an amount and its number. Each piece gets a response."""


@dataclass(frozen=True)
class Case:
    """`short` runs in `make test`; `thorough`, a size that has caused harm before, in `make bounds`.

    `long`: its short form takes ten seconds, and a shorter case resembles it; it runs in `make test-long`.
    `held`: bytes that the proxy has to buffer at once; by default all bytes of the senders.
    `beside`: bytes that a separate process with its own limit may use in addition.
    `reads`: whether senders read their responses. `responses_each`: the number of responses to a piece.
    `alone`: needs a fresh proxy, for its memory. `pause_seconds`: between the pieces of a connection;
    `stagger_seconds`: between the first pieces of two connections. `log_bytes`: how much the log may grow.
    """

    name: str
    pieces_to_send: Sends
    short: CaseSize = CaseSize()
    thorough: CaseSize | None = None
    ends: ExpectedEnd = ExpectedEnd.RESPONDED_OR_CLOSED
    held: int | None = None
    beside: int = 0
    reads: bool = True
    responses_each: int = 1
    broker: str = "sound"
    config: dict[str, Any] = field(default_factory=dict)
    tls: bool = False
    alone: bool = False
    only_thorough: bool = False
    long: bool = False
    pause_seconds: float = 0.0
    stagger_seconds: float = 0.0
    log_bytes: int = MIB

    def extent(self, thorough: bool) -> CaseSize:
        return self.thorough if thorough and self.thorough is not None else self.short


def send_one_piece(make: Callable[[int], bytes]) -> Sends:
    """Return a function by which each connection sends the same single piece."""
    made: dict[int, bytes] = {}

    def pieces_to_send(amount: int, _number: int) -> Iterable[bytes]:
        if amount not in made:
            made[amount] = make(amount)
        return [made[amount]]

    return pieces_to_send
