"""Where a listener leads."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sluicegate.config.address import HostPort


@dataclass(frozen=True, slots=True)
class Route:
    """`label` for people, `addresses` to try in turn."""

    label: str
    addresses: Sequence[HostPort]


class InTurn:
    """Addresses of which one is as good as another. Each client begins with another one, as clients do by themselves: a
    broker that takes connections and says nothing does not have all of them.
    """

    def __init__(self, addresses: Sequence[HostPort]) -> None:
        self._addresses = deque(addresses)

    def for_the_next(self) -> tuple[HostPort, ...]:
        """In the order in which they are to be tried."""
        order = tuple(self._addresses)
        self._addresses.rotate(-1)
        return order


NOWHERE = Route("?", ())

RouteFor = Callable[[str | None], Route]
"""Says where a listener leads, given the host name that a TLS client asked for."""
