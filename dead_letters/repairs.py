"""Repairs change a letter's record before validation: a JSON Patch, another schema id, or a Python function."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from sluicegate.dead_letters.letter import Headers, Letter


@dataclass(frozen=True, slots=True)
class LetterContent:
    """The parts of a record that a repair may change. `timestamp` is in ms, or None if the letter lacks it.

    `topic` is the original topic and cannot be changed.
    """

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp: int | None


class RepairFailed(Exception):
    """Raised if a repair cannot be applied to a record. The message quotes no record contents."""


class LetterRepair(Protocol):
    """A change of records. It must be deterministic."""

    @property
    def name(self) -> str:
        """Return the name to display."""

    @property
    def identity(self) -> str:
        """Return a string that is unique to this repair and part of the plan's digest."""

    def apply(self, content: LetterContent) -> LetterContent | None:
        """Return the changed record, or None if the repair skips it. Raises RepairFailed."""


def repaired(letter: Letter, repairs: Sequence[LetterRepair]) -> Letter | None:
    """Apply all repairs and return the letter, or None if a repair skips it. Raises RepairFailed."""
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
