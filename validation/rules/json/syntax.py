"""A rule: the key or the value is one JSON text."""

import json
from array import array
from typing import Any, Literal

from sluicegate.validation.rules.json.count import weighed
from sluicegate.validation.rules.json.plan import is_ordinary_json
from sluicegate.validation.rules.json.text import WELL_FORMED, fault_in, words_for
from sluicegate.validation.rules.native.questions import BytesQuestion, OrdinaryQuestions, about
from sluicegate.validation.rules.rule import CONSTANT_STEPS, INLINE_STEPS, RuledRecord, Side

DEFAULT_MAX_DEPTH = 128
MOST_DEPTH = 500  # what Python's own reader, which looks for duplicate keys, follows with room to spare
# Read natively, a byte takes 5 ns at most. No text is more work to make than one of empty objects.
_BYTES_OF_STEP = 20
_STEPS_OF_ANY_BYTE = 4
# A text of at most so many steps, by its size, is not looked at.
_FEW = 1_000
_OF_ITEM, _OF_CONTAINER, _OF_KEY = array("d", (4, 0, 0)), 15.0, 5.0


DuplicateKeys = Literal["allow", "reject"]
"""Of objects with two keys alike readers take the first, the last or none."""


class JsonSyntax:
    """Strict JSON in UTF-8, nothing behind it, nested at most `max_depth` deep (1 to MOST_DEPTH).

    A null key or value is none and passes. Reading takes less than a nanosecond a byte; where duplicate keys are
    rejected, ten, and objects are made.
    """

    is_slow = False

    def __init__(
        self,
        side: Side,
        duplicate_keys: DuplicateKeys = "allow",
        max_depth: int = DEFAULT_MAX_DEPTH,
    ) -> None:
        self.needs = side.part
        self._side = side
        self._name = side.value
        self._read = side.bytes_of
        self._max_depth = max_depth
        self._rejects_duplicates = self.is_costly = duplicate_keys == "reject"

    def ordinary(self) -> OrdinaryQuestions | None:
        """All of it, but for duplicate keys."""
        if self._rejects_duplicates:
            return None
        return about(self._side, BytesQuestion(json_depth=self._max_depth))

    def steps(self, record: RuledRecord) -> int:
        """Few for each byte; where duplicate keys are rejected, those of making objects, counted if need be."""
        size = max(0, self._side.size_of(record))
        if not self._rejects_duplicates:
            return CONSTANT_STEPS + size // _BYTES_OF_STEP
        text = self._read(record)
        if text is None or size * _STEPS_OF_ANY_BYTE <= _FEW or size > INLINE_STEPS * _BYTES_OF_STEP:
            return CONSTANT_STEPS + size * _STEPS_OF_ANY_BYTE
        return CONSTANT_STEPS + _steps_to_make(text)

    def complaint(self, record: RuledRecord) -> str | None:
        text = self._read(record)
        if text is None:
            return None
        if not is_ordinary_json(text, self._max_depth):
            fault = fault_in(text, self._max_depth)
            if fault != WELL_FORMED:
                return f"the {self._name} is {words_for(fault)}"
        if self._rejects_duplicates and has_duplicate_keys(text):
            return f"the {self._name} is JSON with an object that has the same key twice; write each key once"
        return None

    def explanation(self, _record: RuledRecord) -> str | None:
        """Its complaint is all of it."""
        return None


def _steps_to_make(text: bytes) -> int:
    """Of Python's own reader, with a call for each object and each number."""
    return int(weighed(text, _OF_ITEM, _OF_CONTAINER, _OF_KEY)) + len(text) // _BYTES_OF_STEP


class _Twice(Exception):
    """A key stands twice in an object."""


def has_duplicate_keys(text: bytes) -> bool:
    """Whether any object of a JSON text has a key twice, however it is escaped."""
    try:
        # Numbers stay text: Python does not read very long ones.
        json.loads(text.decode(), object_pairs_hook=_each_once, parse_int=str, parse_float=str)
    except _Twice:
        return True
    return False


def _each_once(pairs: list[tuple[str, Any]]) -> None:
    if len(pairs) > 1 and len({key for key, _ in pairs}) < len(pairs):
        raise _Twice
