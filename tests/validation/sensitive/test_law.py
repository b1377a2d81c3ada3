"""The CPU time until the next yield and the memory for one value are bounded, in each format and for each action."""

import contextlib
import gc
import importlib
import inspect
import json
import pkgutil
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from sluicegate.protocol.records.codecs.decompression_budget import OverLimit, PayloadLimit
from sluicegate.validation import sensitive as package
from sluicegate.validation.rules.avro.schema import avro_content
from sluicegate.validation.rules.json.schema import json_schema_content
from sluicegate.validation.rules.rule import SchemaError
from sluicegate.validation.rules.schemas.content import Content, SchemaLanguage
from sluicegate.validation.sensitive import schema_values
from sluicegate.validation.sensitive.avro_fields import mask_avro
from sluicegate.validation.sensitive.edits import Unmaskable
from sluicegate.validation.sensitive.json_fields import mask_json
from sluicegate.validation.sensitive.paths import Action, FieldPolicy, tree_of
from sluicegate.validation.sensitive.protobuf_fields import mask_protobuf
from sluicegate.validation.sensitive.schema_values import SchemaValues
from sluicegate.validation.sensitive.values import JsonValues, MaskedValue, Values
from tests.bounds.hostile_values import FIELDS, HOSTILE_VALUES, LONGEST, Format, HostileValue
from tests.bounds.machine import slowness
from tests.validation.rules.records import record
from tests.validation.sensitive.places import VALUES, SingleSchema

LONGEST_STRETCH_SECONDS = 0.020
MIB = 1 << 20
SHORT = 30_000
WALKERS = {Format.JSON: mask_json, Format.AVRO: mask_avro, Format.PROTOBUF: mask_protobuf}
LANGUAGES = {
    SchemaLanguage.JSON: Format.JSON,
    SchemaLanguage.AVRO: Format.AVRO,
    SchemaLanguage.PROTOBUF: Format.PROTOBUF,
}
CLASSES = {JsonValues, SchemaValues}
by_name = pytest.mark.parametrize("hostile", HOSTILE_VALUES, ids=[each.name for each in HOSTILE_VALUES])


class WorkIntervals:
    """Measures the processor time between two calls of `worked`."""

    def __init__(self) -> None:
        self.longest = 0.0
        self.counted = 0
        self._last = time.thread_time()

    def worked(self, work: int) -> None:
        now = time.thread_time()
        self.longest = max(self.longest, now - self._last)
        self.counted += work
        self._last = time.thread_time()


def masking_outcome(values: Values, data: bytes, worked: Callable[[int], None]) -> MaskedValue | Exception | None:
    try:
        return values.masked(record(data), worked, LONGEST)
    except (Unmaskable, SchemaError, OverLimit) as error:
        return error


def work_intervals_of(values: Values, data: bytes) -> WorkIntervals:
    gc.disable()
    try:
        found = WorkIntervals()
        masking_outcome(values, data, found.worked)
        found.worked(0)
    finally:
        gc.enable()
    return found


def peak_bytes_of_masking(values: Values, data: bytes) -> tuple[int, MaskedValue | Exception | None]:
    tracemalloc.start()
    try:
        found = masking_outcome(values, data, lambda _work: None)
        return tracemalloc.get_traced_memory()[1], found
    finally:
        tracemalloc.stop()


def hostile_value(hostile: HostileValue) -> bytes:
    return hostile.make(LONGEST - 1000 if hostile.is_long else SHORT)


@by_name
def test_masking_a_hostile_value_yields_regularly(hostile: HostileValue) -> None:
    values, data = VALUES[hostile.format](), hostile_value(hostile)

    found = work_intervals_of(values, data)
    if found.longest > LONGEST_STRETCH_SECONDS:  # another process may have slowed the first run
        found = work_intervals_of(values, data)

    assert found.longest <= LONGEST_STRETCH_SECONDS * slowness()


@by_name
def test_masking_memory_is_a_few_times_the_value_size(hostile: HostileValue) -> None:
    values, data = VALUES[hostile.format](), hostile_value(hostile)

    peak, found = peak_bytes_of_masking(values, data)

    written = len(found.data) if isinstance(found, MaskedValue) else len(data)
    assert peak <= 2 * MIB + 3 * max(len(data), written)
    if hostile.is_masked is None:
        assert isinstance(found, Unmaskable)
    elif hostile.is_masked:
        assert isinstance(found, MaskedValue)
    else:
        assert found is None


@pytest.mark.parametrize(
    "hostile", [each for each in HOSTILE_VALUES if each.name.endswith("masked strings")], ids=lambda each: each.name
)
def test_masking_rejects_value_that_would_grow_too_much_before_allocation(hostile: HostileValue) -> None:
    values, data = VALUES[hostile.format](), hostile.make(SHORT)
    most_bytes = SHORT + SHORT // 2
    tracemalloc.start()
    with pytest.raises(OverLimit) as over:
        values.masked(record(data), lambda _work: None, most_bytes)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert (over.value.bound, over.value.size) == (PayloadLimit.WINDOW, most_bytes)
    assert peak <= 2 * MIB + 2 * most_bytes


@pytest.mark.parametrize("more", [0, 1])
@pytest.mark.parametrize("format", Format)
def test_accepts_masked_value_of_the_maximum_size(format: Format, more: int) -> None:
    hostile = next(each for each in HOSTILE_VALUES if each.format is format and each.name.endswith("masked strings"))
    values, data = VALUES[format](), hostile.make(1000)
    whole = values.masked(record(data), lambda _work: None, LONGEST)
    assert whole is not None
    size = len(whole.data)

    if more:
        with pytest.raises(OverLimit):
            values.masked(record(data), lambda _work: None, size - 1)
    else:
        found = values.masked(record(data), lambda _work: None, size)
        assert found is not None and found.data == whole.data


def test_masking_can_be_restarted_after_an_interruption() -> None:
    class StopWork(Exception):
        pass

    for hostile in HOSTILE_VALUES:
        values, data = VALUES[hostile.format](), hostile.make(3_000)
        expected = masking_outcome(VALUES[hostile.format](), data, lambda _work: None)
        calls = 0

        def stop_at_call(_work: int, stop_at: int) -> None:
            nonlocal calls
            calls += 1
            if calls == stop_at:
                raise StopWork

        for stop_at in (1, 2, 9):
            calls = 0
            with contextlib.suppress(StopWork, Unmaskable, OverLimit):
                values.masked(record(data), partial(stop_at_call, stop_at=stop_at), LONGEST)
        found = masking_outcome(values, data, lambda _work: None)

        assert found == expected or str(found) == str(expected), hostile.name


def many_fields(count: int) -> str:
    fields = [{"name": f"f{i}", "type": ["null", "string"], "confluent:tags": ["PII"]} for i in range(count)]
    return json.dumps({"type": "record", "name": "R", "fields": fields})


def shared_parts(properties: int, parts: int) -> str:
    """Return a JSON Schema of many properties that share many parts, and so have their product together."""
    return json.dumps(
        {
            "$defs": {"all": {"anyOf": [{"title": f"{i}"} for i in range(parts)]}},
            "properties": {f"p{i}": {"$ref": "#/$defs/all"} for i in range(properties)},
        }
    )


def values_by_tag(content: Content) -> SchemaValues:
    policy = FieldPolicy("s", (("a", "b"),), Action.MASK, "***", tags=frozenset({"PII"}))
    return SchemaValues([policy], (tree_of([policy]),), SingleSchema(content))


COSTLY_SCHEMAS: dict[str, tuple[Callable[[], Content], bytes]] = {
    "Avro, 5,000 tagged fields": (lambda: avro_content(many_fields(5_000)), b"\0" * 5_000),
    "JSON, 2,000 tagged properties": (
        lambda: json_schema_content(
            json.dumps({"properties": {f"p{i}": {"confluent:tags": ["PII"]} for i in range(2_000)}})
        ),
        json.dumps({f"p{i}": "x" for i in range(2_000)}).encode(),
    ),
    "JSON, 100 properties of 3,000 parts": (
        lambda: json_schema_content(shared_parts(100, 3_000)),
        json.dumps({f"p{i}": 1 for i in range(100)}).encode(),
    ),
}


@pytest.mark.parametrize("name", COSTLY_SCHEMAS)
def test_search_for_schema_tags_yields_regularly(name: str) -> None:
    make, data = COSTLY_SCHEMAS[name]
    content = make()

    found = work_intervals_of(values_by_tag(content), data)
    peak, _ = peak_bytes_of_masking(values_by_tag(content), data)

    assert found.longest <= LONGEST_STRETCH_SECONDS * slowness()
    assert peak <= 24 * MIB


def test_rejects_json_schema_with_too_many_shared_parts() -> None:
    make, data = COSTLY_SCHEMAS["JSON, 100 properties of 3,000 parts"]

    assert "more than 100000 parts" in str(masking_outcome(values_by_tag(make()), data, lambda _work: None))


def test_memory_for_tags_of_many_schemas_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records may name each schema of a registry in turn."""
    monkeypatch.setattr(schema_values, "_MOST_KEPT", 1_000)
    contents = [avro_content(many_fields(400)) for _ in range(30)]
    finder: Any = SingleSchema(contents[0])
    policy = FieldPolicy("s", (), Action.MASK, tags=frozenset({"PII"}))
    values = SchemaValues([policy], (tree_of([policy]),), finder)
    kept = []
    tracemalloc.start()
    for content in contents:
        finder._content = content
        values.masked(record(b"\0" * 400), lambda _work: None, LONGEST)
        kept.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()

    assert kept[-1] <= 4 * kept[0]


def _members() -> list[Any]:
    modules = [
        importlib.import_module(each.name) for each in pkgutil.iter_modules(package.__path__, package.__name__ + ".")
    ]
    return [
        each
        for module in modules
        for each in vars(module).values()
        if getattr(each, "__module__", "") == module.__name__
    ]


def test_hostile_values_cover_each_format_and_action() -> None:
    """A new class of values, walker, language or action needs values above."""
    members = _members()
    classes = {each for each in members if inspect.isclass(each) and hasattr(each, "masked") and each is not Values}
    walkers = {each for each in members if inspect.isfunction(each) and each.__name__.startswith("mask_")}

    assert classes == CLASSES
    assert walkers == set(WALKERS.values())
    assert set(WALKERS) == set(Format) == set(VALUES)
    assert set(LANGUAGES) == set(SchemaLanguage)
    assert set(FIELDS) == {each.value for each in Action}
    for format in Format:
        assert sum(each.format is format for each in HOSTILE_VALUES) >= 10
