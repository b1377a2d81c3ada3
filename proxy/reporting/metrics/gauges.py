"""What there is at one moment, which is not counted but looked at: connections, what they wait for, memory."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, fields


@dataclass(slots=True)
class Standing:
    """Of one process. `connections` by stage, `holds` by side and reason, `upstream` by broker and state (all three as
    a look that is taken about once a second saw them); bytes held and their budget by share.
    """

    connections: Counter[str] = field(default_factory=Counter)
    holds: Counter[tuple[str, str]] = field(default_factory=Counter)
    upstream: Counter[tuple[str, str]] = field(default_factory=Counter)
    held_bytes: Counter[str] = field(default_factory=Counter)
    budget_bytes: Counter[str] = field(default_factory=Counter)
    resident_bytes: int = 0


def standing_of_all(several: Iterable[Standing]) -> Standing:
    """Of several processes together."""
    total = Standing()
    for standing in several:
        for each in fields(Standing):
            setattr(total, each.name, getattr(total, each.name) + getattr(standing, each.name))
    return total
