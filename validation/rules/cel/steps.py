"""The steps of an expression for one record, reckoned from the sizes of what it names before any of it is read."""

from typing import Final

from sluicegate.validation.rules.cel.cost import CostUnknown, nanoseconds
from sluicegate.validation.rules.cel.runtime import Compiled
from sluicegate.validation.rules.cel.values import CLIENT_FIELDS
from sluicegate.validation.rules.json.count import JsonCount
from sluicegate.validation.rules.json.plan import HAS_NATIVE
from sluicegate.validation.rules.rule import INLINE_STEPS, UNBOUNDED, RuledRecord
from sluicegate.validation.rules.schemas.wire_format import behind_id, has_schema_id

_STEP = 100  # ns
_EVALUATION: Final = 60_000  # of nothing: what the runtime and Python do around it
_TEXT: Final = 3_000  # a key, or the name or the value of a header
_TEXT_BYTES: Final = 4  # what one counts as beside its bytes
# JSON, which is read and then made values of the runtime. Lists of nothing are the most for each byte.
_BYTE: Final = 8 if HAS_NATIVE else 400
_CONTAINER, _KEY, _ITEM = 1500, 1300, 400
_DENSEST = _CONTAINER // 2
_ZERO = 12_000  # a text with a zero byte
_ZERO_ESCAPED = rb"\u0000"


class ExpressionSteps:
    """Reckons the steps of one expression. Records of a size for which any content is cheap are not looked into."""

    def __init__(self, compiled: Compiled) -> None:
        self._tree = compiled.tree
        self._names = compiled.names
        self._programs = compiled.programs
        self._by_size: dict[tuple[int, int], int] = {}

    def of(self, record: RuledRecord) -> int:
        """Return the steps of this record at most."""
        value = record.value if "value" in self._names else None
        size = 0 if value is None else len(value)
        others, texts = self._beside_value(record)
        if value is None or _ZERO_ESCAPED not in value:
            bits = size.bit_length(), others.bit_length()
            most = self._by_size.get(bits)
            if most is None:
                most = self._by_size[bits] = self._for_any(1 << bits[0], 1 << bits[1])
            if most <= INLINE_STEPS:
                return most
        if value is None:
            return self._reckon(0, 0, 0, others, texts)
        if size * _BYTE > INLINE_STEPS * _STEP:
            return self._for_any(size, others)
        text = behind_id(value) if has_schema_id(value) else value
        count = JsonCount(text)
        widths = [count.items(depth) for depth in range(count.levels)]
        items, zeros = sum(widths), text.count(_ZERO_ESCAPED)
        reading = size * _BYTE + count.containers * _CONTAINER + count.keys * _KEY + items * _ITEM + zeros * _ZERO
        if zeros > 0:
            reading += (items + count.keys) * _ITEM
        return self._reckon(size, max(widths), reading, others, texts)

    def _for_any(self, size: int, others: int) -> int:
        """Return the most steps of any record whose value has `size` bytes, and all else `others`, or fewer."""
        return self._reckon(size, size // 2 + 1, size * (_DENSEST + _BYTE), others, others)

    def _reckon(self, value_size: int, value_items: int, reading: int, others: int, texts: int) -> int:
        extents = {
            "value": (value_items, value_size + 1),
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
        return min(UNBOUNDED, (_EVALUATION + reading + evaluating) // _STEP + 1)

    def _beside_value(self, record: RuledRecord) -> tuple[int, int]:
        """Return the bytes of what the expression names beside the value, and how many texts those are.

        A header counts as four bytes more than it has, and a text with a zero byte as three: never more texts than
        bytes.
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
