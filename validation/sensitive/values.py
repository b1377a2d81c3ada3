"""How the values of a topic are masked (`Values`), and JSON values without a schema."""

from collections.abc import Callable, Set
from dataclasses import dataclass
from typing import Protocol

from sluicegate.validation.rules.rule import RuledRecord
from sluicegate.validation.sensitive.edits import Nodes
from sluicegate.validation.sensitive.json_fields import edits_of_json

_FRAMED_FROM = 5  # a zero byte and a schema's id (int32) before the JSON text


@dataclass(frozen=True, slots=True)
class MaskedValue:
    """A value that replaces the original. `names`: the policies that changed it."""

    data: bytes
    names: Set[str]


class Values(Protocol):
    """Masks the values of a topic. Thread-safe. `is_slow`: it may wait for a registry."""

    @property
    def is_slow(self) -> bool:
        """Whether it never runs on the event loop."""

    def masked(self, record: RuledRecord, worked: Callable[[int], None]) -> MaskedValue | None:
        """Return the masked value; None if nothing changes. `worked` is called with the size of each part.

        Raises Unmaskable, Outage and SchemaError.
        """


class JsonValues:
    """JSON texts, alone or after a zero byte and a schema's id."""

    is_slow = False

    def __init__(self, root: Nodes) -> None:
        self._root = root

    def masked(self, record: RuledRecord, worked: Callable[[int], None]) -> MaskedValue | None:
        """Return the masked value; None if nothing changes. Raises Unmaskable."""
        value = record.value
        if value is None:
            return None
        prefix = value[:_FRAMED_FROM] if value[:1] == b"\0" else b""
        text = value[len(prefix) :]
        edits = edits_of_json(text, self._root, worked)
        return MaskedValue(prefix + edits.applied(text), edits.names) if edits.count else None
