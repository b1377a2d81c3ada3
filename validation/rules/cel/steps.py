"""Computes the steps of an expression for one record from the sizes of its variables, without reading them."""

from typing import Final

from sluicegate.validation.rules.cel.cost import CostUnknown, nanoseconds
from sluicegate.validation.rules.cel.runtime import CompiledExpression, ValueReader
from sluicegate.validation.rules.cel.variables import CLIENT_FIELDS
from sluicegate.validation.rules.json.count import JsonCount
from sluicegate.validation.rules.json.plan import HAS_NATIVE
from sluicegate.validation.rules.rule import INLINE_STEPS, UNBOUNDED, RuledRecord
from sluicegate.validation.rules.schemas.wire_format import data_after_id, has_schema_id

STEP: Final = 100  # ns
EVALUATION: Final = 60_000  # the overhead of the runtime and Python
_TEXT: Final = 3_000  # for a key, or for a header's name or value
_TEXT_BYTES: Final = 4  # the additional bytes counted per string
# The cost per byte of JSON, which is parsed and converted to the runtime's values. Empty lists cost the most per byte.
_BYTE: Final = 8 if HAS_NATIVE else 400
_CONTAINER, _KEY, _ITEM = 1500, 1300, 400
_DENSEST = _CONTAINER // 2
DENSEST_BYTE: Final = _DENSEST + _BYTE
"""The maximum time per byte of JSON (ns)."""
_MOST_EXTENTS = 1000
_ZERO = 12_000  # for a string with a zero byte
_ZERO_ESCAPED = rb"\u0000"


class ExpressionSteps:
    """The steps of one expression. A record is read only if contents of its size may be costly."""

    def __init__(self, compiled: CompiledExpression, values: ValueReader | None = None) -> None:
        """Create the computation. `values` reads the value; None means that the value is JSON."""
        self._values = values
        self._tree = compiled.tree
        self._names = compiled.names
        self._programs = compiled.programs
        self._by_size: dict[tuple[int, int], int] = {}
        self._by_extent: dict[tuple[int, ...], int] = {}

    def steps_for(self, record: RuledRecord) -> int:
        """Return an upper bound of the steps for this record."""
        value = record.value if "value" in self._names or "message" in self._names else None
        size = 0 if value is None else len(value)
        others, texts = self._beside_value(record)
        if self._values is not None and value is not None:
            return self._of_schema(self._values.estimate_reading(value), others, texts)
        if value is None or _ZERO_ESCAPED not in value:
            bits = size.bit_length(), others.bit_length()
            most = self._by_size.get(bits)
            if most is None:
                most = self._by_size[bits] = self._for_any(1 << bits[0], 1 << bits[1])
            if most <= INLINE_STEPS:
                return most
        if value is None:
            return self._reckon(0, 0, 0, others, texts)
        if size * _BYTE > INLINE_STEPS * STEP:
            return self._for_any(size, others)
        text = data_after_id(value) if has_schema_id(value) else value
        count = JsonCount(text)
        widths = [count.items(depth) for depth in range(count.levels)]
        items, zeros = sum(widths), text.count(_ZERO_ESCAPED)
        reading = size * _BYTE + count.containers * _CONTAINER + count.keys * _KEY + items * _ITEM + zeros * _ZERO
        if zeros > 0:
            reading += (items + count.keys) * _ITEM
        return self._reckon(size, max(widths), reading, others, texts)

    def _of_schema(self, extent: tuple[int, int, int], others: int, texts: int) -> int:
        """Return the steps for a schema's value. Computes nothing if every record of about these sizes is cheap."""
        bits = tuple(map(int.bit_length, (*extent, others, texts)))
        most = self._by_extent.get(bits)
        if most is None:
            if len(self._by_extent) >= _MOST_EXTENTS:
                self._by_extent.clear()
            items, size, reading, most_others, most_texts = (1 << each for each in bits)
            most = self._by_extent[bits] = self._reckon(size, items, reading, most_others, most_texts)
        if most <= INLINE_STEPS:
            return most
        items, size, reading = extent
        return self._reckon(size, items, reading, others, texts)

    def _for_any(self, size: int, others: int) -> int:
        """Return the maximum steps for any record with a value of at most `size` bytes, and `others` other bytes."""
        return self._reckon(size, size // 2 + 1, size * DENSEST_BYTE, others, others)

    def _reckon(self, value_size: int, value_items: int, reading: int, others: int, texts: int) -> int:
        extents = {
            "value": (value_items, value_size + 1),
            "message": (value_items, value_size + 1),
            "key": (0, others + 1),
            "headers": (texts, others + 1),
            "client": (len(CLIENT_FIELDS), others + 1),
            "topic": (0, others + 1),
        }
        reading += texts * _TEXT + others * _BYTE
        try:
            evaluating = nanoseconds(self._tree, extents, self._programs)
        except CostUnknown:
            return UNBOUNDED
        return min(UNBOUNDED, (EVALUATION + reading + evaluating) // STEP + 1)

    def _beside_value(self, record: RuledRecord) -> tuple[int, int]:
        """Return the size (bytes) of the expression's variables other than the value, and their number of strings.

        A header counts four additional bytes. A string with a zero byte counts as three strings, but never as more
        strings than there are bytes.
        """
        size = texts = 0
        if "key" in self._names and record.key is not None:
            size += len(record.key) + _TEXT_BYTES
            texts += _texts_in(record.key)
        if "headers" in self._names:
            for name, value in record.headers:
                size += len(name) + len(value or b"") + _TEXT_BYTES
                texts += _texts_in(name) + (0 if value is None else _texts_in(value))
        if "client" in self._names:
            for attribute in CLIENT_FIELDS.values():
                text = (getattr(record.client, attribute) or "").encode(errors="replace")
                size += len(text) + _TEXT_BYTES
                texts += _texts_in(text)
        return size + len(record.topic), texts


def _texts_in(data: bytes) -> int:
    return 3 if b"\0" in data else 1
