"""Defines how a topic's values are masked (`Values`), and masks JSON values without a schema."""

from collections.abc import Callable, Set
from dataclasses import dataclass
from typing import Protocol

from sluicegate.validation.rules.rule import RuledRecord
from sluicegate.validation.sensitive.edits import Nodes
from sluicegate.validation.sensitive.json_fields import mask_json
from sluicegate.validation.sensitive.writing import ValueWriter

_FRAMED_FROM = 5  # a zero byte and a schema id (int32) before the JSON


@dataclass(frozen=True, slots=True)
class MaskedValue:
    """A value that replaces the original. `names` contains the policies that changed it."""

    data: bytes
    names: Set[str]


class Values(Protocol):
    """A masker of a topic's values. Thread-safe. `is_slow` is whether it may wait for a registry."""

    @property
    def is_slow(self) -> bool:
        """Return whether the work must never run on the event loop."""

    def masked(self, record: RuledRecord, worked: Callable[[int], None], most_bytes: int) -> MaskedValue | None:
        """Return the masked value, or None if nothing changes. `worked` is called with the cost (ns) of each part.

        `most_bytes` limits a masked value that is longer than the original. Raises Unmaskable, Outage, SchemaError,
        OverLimit and the errors of `worked`.
        """


class JsonValues:
    """JSON values, on their own or after a zero byte and a schema id."""

    is_slow = False

    def __init__(self, root: Nodes) -> None:
        self._root = root

    def masked(self, record: RuledRecord, worked: Callable[[int], None], most_bytes: int) -> MaskedValue | None:
        """Return the masked value, or None if nothing changes.

        Raises Unmaskable, OverLimit and the errors of `worked`.
        """
        value = record.value
        if value is None:
            return None
        writer = ValueWriter(value, most_bytes, worked)
        mask_json(value, _FRAMED_FROM if value[:1] == b"\0" else 0, self._root, writer, worked)
        data = writer.written()
        return None if data is None else MaskedValue(data, writer.names)
