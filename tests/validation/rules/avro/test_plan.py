"""The bound on an Avro schema's steps is never below the number of values, and is low for ordinary records."""

import json
import random
from array import array
from collections.abc import Sequence
from contextlib import suppress
from io import BytesIO
from random import Random
from time import thread_time
from typing import Any

import fastavro
import pytest
from fastavro.utils import generate_many

from sluicegate.protocol.records.scan import is_compiled
from sluicegate.validation.rules.avro import datum as avro_datum
from sluicegate.validation.rules.avro.plan import plan_of
from sluicegate.validation.rules.avro.schema import avro_content
from sluicegate.validation.rules.rule import INLINE_STEPS, UNBOUNDED, StepBudget
from tests.validation.rules.steps import steps_of

pytestmark = pytest.mark.skipif(not is_compiled(), reason="steps are those of compiled code")

_STEP_SECONDS, _SLACK_SECONDS = 100e-9, 1e-3
NULLS = {"type": "record", "name": "Nulls", "fields": [{"name": f"n{i}", "type": "null"} for i in range(5000)]}
ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"]},
        {"name": "nothing", "type": "null"},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "before", "type": ["null", "Order"]},
    ],
}


def doubling_schema(depth: int, last: Any = "null") -> dict[str, Any]:
    """Return a record schema that contains the next one twice, `depth` levels deep."""
    schema: dict[str, Any] = {"type": "record", "name": "R0", "fields": [{"name": "a", "type": last}]}
    for i in range(1, depth):
        fields = [{"name": "a", "type": schema}, {"name": "b", "type": f"R{i - 1}"}]
        schema = {"type": "record", "name": f"R{i}", "fields": fields}
    return schema


def steps_of_schema(schema: Any, data: bytes) -> int:
    return steps_of(avro_content(json.dumps(schema)).fault, data)


@pytest.mark.parametrize(
    ("schema", "data"),
    [
        (doubling_schema(28), b"\x00" * 5),
        (doubling_schema(32), b""),
        (["null", doubling_schema(28)], b"\x02"),
        ({"type": "map", "values": doubling_schema(30)}, b"\x02\x02a\x00"),
        (doubling_schema(28, {"type": "fixed", "name": "Nothing", "size": 0}), b""),
        ({"type": "array", "items": ["null", NULLS]}, b"\xc0\x84\x3d" + b"\x02" * 500_000 + b"\x00"),
    ],
)
def test_avro_values_without_bytes_add_to_the_cost(schema: Any, data: bytes) -> None:
    assert steps_of_schema(schema, data) > INLINE_STEPS


def test_infinitely_recursive_avro_record_has_unbounded_cost() -> None:
    schema = {"type": "record", "name": "A", "fields": [{"name": "a", "type": "A"}, {"name": "b", "type": "A"}]}

    assert steps_of_schema(schema, b"") == UNBOUNDED


def test_ordinary_avro_records_are_validated_inline_at_any_size() -> None:
    content = avro_content(json.dumps(ORDER))

    assert steps_of(content.fault, b"\0" * 100) < 500
    assert steps_of(content.fault, b"\0" * 700_000) <= INLINE_STEPS
    assert content.ordinary(0) is not None  # although one of its fields uses no bytes
    assert avro_content(json.dumps(doubling_schema(28))).ordinary(0) is None


def test_counting_avro_items_without_bytes_is_cheap() -> None:
    content = avro_content(json.dumps({"type": "array", "items": NULLS}))
    began = thread_time()

    for _ in range(10_000):
        assert content.fault(b"\x90\x4e\x00", StepBudget()) is None  # 5,000 items
    assert thread_time() - began < 1
    assert steps_of(content.fault, b"\x90\x4e\x00") < INLINE_STEPS / 10


class RandomSchema:
    """Random schemas in which records refer to earlier ones by name, and random data for them."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self._records: list[str] = []

    def schema(self, depth: int = 0) -> Any:
        kind = self.random.random()
        if self._records and kind < 0.3:
            return self.random.choice(self._records)
        if depth > 5 or kind < 0.5:
            return self.random.choice(["null", "null", "boolean", "int", "string", "double"])
        if kind < 0.6:
            return {"type": "array", "items": self.schema(depth + 1)}
        if kind < 0.65:
            return {"type": "map", "values": self.schema(depth + 1)}
        if kind < 0.75:
            return ["null", {"type": "array", "items": self.schema(depth + 1)}, "int"]
        return self.record(depth)

    def record(self, depth: int) -> dict[str, Any]:
        name = f"N{len(self._records)}x{self.random.randrange(10**9)}"
        fields = [
            {"name": f"f{i}", "type": self.schema(depth + 1)} for i in range(self.random.choice([1, 2, 2, 3, 40]))
        ]
        self._records.append(name)
        return {"type": "record", "name": name, "fields": fields}

    def random_data(self, content_of: Any) -> bytes:
        """Return data that fastavro writes with the schema, sometimes truncated, or random bytes."""
        kind = self.random.random()
        if kind < 0.3:
            return bytes(self.random.choice([0, 0, 2, 4, 1]) for _ in range(self.random.choice([0, 1, 50, 5000])))
        out = BytesIO()
        for datum in generate_many(content_of, 1):
            fastavro.schemaless_writer(out, content_of, datum)
        written = out.getvalue()
        return written[: self.random.randrange(len(written) + 1)] if kind < 0.5 else written


@pytest.mark.parametrize("seed", range(10))
def test_avro_validation_stays_within_its_estimated_steps_and_values(seed: int) -> None:
    drawn = RandomSchema(seed)
    random.seed(seed)  # the random numbers of fastavro
    for _ in range(10):
        drawn._records.clear()
        schema = drawn.record(0)
        content = avro_content(json.dumps(schema))
        if steps_of(content.fault, b"") > 1_000:
            continue  # fastavro would build the whole value
        for _ in range(5):
            data = drawn.random_data(fastavro.parse_schema(schema, {}))
            began = thread_time()
            content.fault(data, StepBudget())
            assert thread_time() - began < steps_of(content.fault, data) * _STEP_SECONDS + _SLACK_SECONDS, (
                schema,
                data[:200],
            )
            assert values_in(schema, data) <= most_values(schema, data), (schema, data[:200])


def most_values(schema: Any, data: bytes) -> float:
    cost = plan_of(schema).cost
    return cost.fixed_values + cost.values_of_byte * len(data)


def values_in(schema: Any, data: bytes) -> int:
    """Return the number of values that a reader begins, by a separate walk over the plan (Avro's specification)."""
    plan = plan_of(schema)
    walk = ValueCountingWalk(plan.numbers, data)
    with suppress(IndexError, ValueError, RecursionError):
        walk.value(plan.root)
    return walk.values


class ValueCountingWalk:
    """Counts the values of a datum. Raises IndexError or ValueError if the data are not a datum."""

    def __init__(self, plan: "array[int]", data: bytes) -> None:
        self.values = self.at = 0
        self._plan: Sequence[int] = plan
        self._data = data

    def value(self, at: int, depth: int = 0) -> None:
        self.values += 1
        kind, plan = self._plan[at], self._plan
        if depth > avro_datum.MAX_DEPTH:
            raise ValueError
        if kind == avro_datum.RECORD:
            for field in plan[at + 2 : at + 2 + plan[at + 1]]:
                self.value(field, depth + 1)
        elif kind == avro_datum.UNION:
            branch = self._long()
            if not 0 <= branch < plan[at + 1]:
                raise ValueError
            self.value(plan[at + 2 + branch], depth + 1)
        elif kind in (avro_datum.ARRAY, avro_datum.MAP):
            while count := self._long():
                if count < 0:
                    count, _ = -count, self._long()
                if kind == avro_datum.ARRAY and not plan[at + 2]:
                    continue
                for _ in range(count):
                    if kind == avro_datum.MAP:
                        self._skip(self._long())
                    self.value(plan[at + 1], depth + 1)
        elif kind in (avro_datum.STRING, avro_datum.BYTES):
            self._skip(self._long())
        elif kind == avro_datum.SIZED:
            self._skip(plan[at + 1])
        elif kind == avro_datum.BOOLEAN:
            self._skip(1)
        elif kind != avro_datum.NULL:
            self._long()

    def _skip(self, size: int) -> None:
        if size < 0 or self.at + size > len(self._data):
            raise ValueError
        self.at += size

    def _long(self) -> int:
        value = shift = 0
        while True:
            byte = self._data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)
