"""One line of the table: what is sent, from how many connections, to which broker, and how it has to end."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

MIB = 1 << 20
RULES_PROCESS_BYTES = (256 + 64) * MIB
"""The bytes that a rules process may take: limits.rule_memory, and its libraries."""


class Ends(Enum):
    """How each sender's connection has to end, before its time is up."""

    ANSWERED_OR_CLOSED = "answered or closed"
    ANSWERED = "answered"
    CLOSED = "closed"
    STAYS = "stays as long as it likes"
    GONE = "let go by the proxy, which a client that reads nothing cannot see"


@dataclass(frozen=True)
class Extent:
    """How much: `amount` is what `sends` is called with, `seconds` how long senders stay at most."""

    amount: int = 1
    connections: int = 1
    seconds: float = 8


Sends = Callable[[int, int], Iterable[bytes]]
"""(amount, number of the connection) -> what the connection sends, piece by piece. An answer is due for each piece."""


@dataclass(frozen=True)
class Line:
    """`short` runs in `make test`, `thorough` (the size at which it was once seen to do harm) in `make bounds`.

    `held`: bytes that the proxy has to hold at once; where it is not given, all that the senders send.
    `beside`: bytes that a process of its own, with a limit of its own, may take beside that.
    `reads`: whether senders read what they are answered. `responses_each`: how many answers a piece asks for.
    `alone`: needs a proxy of its own, whose memory nobody has touched. `pause_seconds`: between a connection's pieces;
    `stagger_seconds`: between the first pieces of two connections. `log_bytes`: what the log may grow by.
    """

    name: str
    sends: Sends
    short: Extent = Extent()
    thorough: Extent | None = None
    ends: Ends = Ends.ANSWERED_OR_CLOSED
    held: int | None = None
    beside: int = 0
    reads: bool = True
    responses_each: int = 1
    broker: str = "sound"
    config: dict[str, Any] = field(default_factory=dict)
    tls: bool = False
    alone: bool = False
    only_thorough: bool = False
    pause_seconds: float = 0.0
    stagger_seconds: float = 0.0
    log_bytes: int = MIB

    def extent(self, thorough: bool) -> Extent:
        return self.thorough if thorough and self.thorough is not None else self.short


def once(make: Callable[[int], bytes]) -> Sends:
    """Each connection sends one piece, the same for all."""
    made: dict[int, bytes] = {}

    def sends(amount: int, _number: int) -> Iterable[bytes]:
        if amount not in made:
            made[amount] = make(amount)
        return [made[amount]]

    return sends
