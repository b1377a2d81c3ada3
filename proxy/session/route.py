"""Where a listener leads."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sluicegate.config.address import HostPort


@dataclass(frozen=True, slots=True)
class Route:
    """`label` for people, `addresses` to try in turn."""

    label: str
    addresses: Sequence[HostPort]


NOWHERE = Route("?", ())

RouteFor = Callable[[str | None], Route]
"""Says where a listener leads, given the host name that a TLS client asked for."""
