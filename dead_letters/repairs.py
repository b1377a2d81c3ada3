"""Repairs change the record of a letter before it is validated: a JSON patch, another schema id, a Python function."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from sluicegate.dead_letters.letter import Headers, Letter


@dataclass(frozen=True, slots=True)
class LetterContent:
    """What a repair may change of a record. `timestamp` is in ms, or None if the letter does not have it.

    `topic` is the original topic and cannot be changed.
    """

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp: int | None


class RepairFailed(Exception):
    """Raised if a repair cannot be applied to a record. The text has no contents of the record."""


class LetterRepair(Protocol):
    """A change of records. It must return the same for the same record."""

    @property
    def name(self) -> str:
        """Return the name for people."""

    @property
    def identity(self) -> str:
        """Return a text that is the same only for the same repair. It is a part of a plan's digest."""

    def apply(self, content: LetterContent) -> LetterContent | None:
        """Return the changed record; None if the repair leaves this record out. Raises RepairFailed."""


def repaired(letter: Letter, repairs: Sequence[LetterRepair]) -> Letter | None:
    """Return the letter after all repairs; None if one leaves it out. Raises RepairFailed."""
    record = letter.record
    before = LetterContent(letter.topic, record.key, record.value, letter.headers, letter.timestamp)
    content = before
    for repair in repairs:
        changed = repair.apply(content)
        if changed is None:
            return None
        content = changed
    if content == before:
        return letter
    if content.topic != before.topic:
        raise RepairFailed("a repair cannot change the topic")
    record = record._replace(key=content.key, value=content.value)
    return letter._replace(record=record, headers=content.headers, timestamp=content.timestamp)
