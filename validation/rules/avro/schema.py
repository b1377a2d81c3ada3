"""Checks content against an Avro schema."""

import json
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Final

from sluicegate.validation.rules.avro.datum import MAX_DEPTH, Fault, read_whole
from sluicegate.validation.rules.avro.plan import plan_of
from sluicegate.validation.rules.native.questions import AvroQuestion, BytesQuestion
from sluicegate.validation.rules.schemas.content import SchemaUnusable

_WHAT: Final = {
    Fault.ENDS_EARLY: "the data ends within it",
    Fault.TOO_DEEP: f"it is nested more than {MAX_DEPTH} levels deep",
    Fault.BAD_VARINT: "a number in it is longer than ten bytes",
    Fault.NO_BOOLEAN: "a boolean is one byte, 0 or 1",
    Fault.NO_INT: "an int has 32 bits",
    Fault.BAD_LENGTH: "its length is negative",
    Fault.NOT_UTF8: "a string in it is not UTF-8",
    Fault.NO_SYMBOL: "the enum has no such symbol",
    Fault.NO_BRANCH: "the union has no such branch",
    Fault.BAD_COUNT: "it counts more items than the data can hold",
    Fault.BLOCK_SIZE: "a block of it is not as long as it says",
}
_WHY_OFTEN = "was it written with this schema?"


def words_for(fault: int, name: str, position: int, size: int) -> str:
    """Return the text for a fault at `position` in `size` bytes; `name`: the name of the type in the schema."""
    if fault == Fault.LEFT_OVER:
        return f"is not Avro of its schema: {size - position} bytes follow {name}; {_WHY_OFTEN}"
    return f"is not Avro of its schema: {name} cannot be read at byte {position}: {_WHAT[Fault(fault)]}; {_WHY_OFTEN}"


# Limits for the native check: the event loop reads at most 64 KiB of a record, which then takes about a millisecond.
_MOST_FIXED_VALUES, _MOST_VALUES_OF_BYTE = 10_000, 3


class AvroContent:
    """Bytes are exactly one datum of a schema, in binary encoding. Logical types are not checked."""

    is_slow = False

    def __init__(self, schema: Any, elsewhere: Mapping[str, Any]) -> None:
        plan = plan_of(schema, elsewhere)
        self._numbers = plan.numbers
        self._root = plan.root
        self._names = plan.names
        self._cost = plan.cost
        self._record_name: str | None = schema.get("name") if isinstance(schema, dict) else None

    def record_name(self, _data: bytes) -> str | None:
        return self._record_name

    def ordinary(self, behind: int) -> BytesQuestion | None:
        """Return the whole check, unless few bytes may be many values."""
        if self._cost.fixed_values > _MOST_FIXED_VALUES or self._cost.values_of_byte > _MOST_VALUES_OF_BYTE:
            return None
        return BytesQuestion(schemas=(AvroQuestion(self._numbers, self._root, behind),))

    def steps(self, data: bytes) -> int:
        """Return an upper bound of the steps that `fault` takes, including values without bytes."""
        return self._cost.steps(data)

    def fault(self, data: bytes) -> str | None:
        read = read_whole(self._numbers, self._root, data)
        if read is None:
            return None
        return words_for(read.why, self._names[read.type_at], read.position, len(data))

    def explanation(self, _data: bytes) -> str | None:
        """Return None: there are no more details."""
        return None


def avro_content(text: str, references: Sequence[str] = ()) -> AvroContent:
    """Compile a schema. `references`: schemas of the types that it refers to, each after its own references.

    Raises SchemaUnusable.
    """
    parse = _parse_schema()
    named: dict[str, Any] = {}
    try:
        for reference in references:
            parse(json.loads(reference), named_schemas=named)
        schema = parse(json.loads(text), named_schemas=named, expand=False)
    except RecursionError:
        raise SchemaUnusable("it is nested too deep") from None
    except Exception as error:  # fastavro's own exceptions, and KeyError, TypeError ... for invalid schemas
        raise SchemaUnusable(f"it is no Avro schema: {type(error).__name__}: {str(error)[:300]}") from error
    return AvroContent(schema, named)


def _parse_schema() -> Any:
    try:
        return import_module("fastavro.schema").parse_schema
    except ImportError:
        raise SchemaUnusable("Avro needs fastavro: pip install 'sluicegate[rules]'") from None
