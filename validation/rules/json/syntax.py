"""Defines the rule that a key or value must be a single JSON value."""

import json
from array import array
from typing import Any, Literal

from sluicegate.validation.rules.json.count import weighted_sum
from sluicegate.validation.rules.json.plan import is_ordinary_json
from sluicegate.validation.rules.json.text import WELL_FORMED, fault_in, words_for
from sluicegate.validation.rules.native.questions import BytesQuestion, OrdinaryQuestions, native_check_about
from sluicegate.validation.rules.rule import INLINE_STEPS, RuledRecord, Side
from sluicegate.validation.rules.simple_rule import SimpleRule

DEFAULT_MAX_DEPTH = 128
MOST_DEPTH = 500  # well below the limit of Python's own reader, which finds duplicate keys
# Native reading takes at most 5 ns per byte. Python's reader takes longest for JSON that consists of empty objects.
_BYTES_OF_STEP = 20
_STEPS_OF_ANY_BYTE = 4
# JSON is accepted without counting its steps if its size allows at most this many.
_FEW = 1_000
_OF_ITEM, _OF_CONTAINER, _OF_KEY = array("d", (4, 0, 0)), 15.0, 5.0


DuplicateKeys = Literal["allow", "reject"]
"""Readers treat duplicate keys in objects differently: they use the first, the last or none."""


class JsonSyntax(SimpleRule):
    """A rule that requires strict JSON in UTF-8, without trailing bytes.

    It may be nested at most `max_depth` levels (1 to MOST_DEPTH). A null key or value passes. Reading takes less than a
    nanosecond per byte. It takes ten if duplicate keys are rejected, because objects must then be built.
    """

    def __init__(
        self,
        side: Side,
        duplicate_keys: DuplicateKeys = "allow",
        max_depth: int = DEFAULT_MAX_DEPTH,
    ) -> None:
        self.parts = side.part
        self._side = side
        self._name = side.value
        self._read = side.bytes_of
        self._max_depth = max_depth
        self._rejects_duplicates = self.is_costly = duplicate_keys == "reject"

    def ordinary(self) -> OrdinaryQuestions | None:
        """Return the whole rule, unless duplicate keys are rejected."""
        if self._rejects_duplicates:
            return None
        return native_check_about(self._side, BytesQuestion(json_depth=self._max_depth))

    def fault(self, record: RuledRecord) -> str | None:
        text = self._read(record)
        if text is None:
            return None
        record.budget.spend(_steps_to_make(text) if self._rejects_duplicates else len(text) // _BYTES_OF_STEP)
        if not is_ordinary_json(text, self._max_depth):
            fault = fault_in(text, self._max_depth)
            if fault != WELL_FORMED:
                return f"the {self._name} is {words_for(fault)}"
        if self._rejects_duplicates and has_duplicate_keys(text):
            return f"the {self._name} is JSON with a duplicate key in an object; write each key once"
        return None


def _steps_to_make(text: bytes) -> int:
    """Return the steps of Python's reader, which makes a call per object and number."""
    most = len(text) * _STEPS_OF_ANY_BYTE
    if most <= _FEW or len(text) > INLINE_STEPS * _BYTES_OF_STEP:
        return most
    return int(weighted_sum(text, _OF_ITEM, _OF_CONTAINER, _OF_KEY)) + len(text) // _BYTES_OF_STEP


class _Twice(Exception):
    """Raised if an object contains a key twice."""


def has_duplicate_keys(text: bytes) -> bool:
    """Return whether any object in the JSON contains a key twice, even if it is escaped differently."""
    try:
        # Numbers stay strings, because Python rejects very long ones.
        json.loads(text.decode(), object_pairs_hook=_each_once, parse_int=str, parse_float=str)
    except _Twice:
        return True
    return False


def _each_once(pairs: list[tuple[str, Any]]) -> None:
    if len(pairs) > 1 and len({key for key, _ in pairs}) < len(pairs):
        raise _Twice
