"""In each version, every layout of a response has the same fields, in the same order, as Kafka's own definition."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from sluicegate.protocol.api import APIS
from sluicegate.protocol.layout import REST, LayoutField, LayoutStep
from tests.oracle.definitions import message_definition, parse_versions
from tests.protocol.messages.test_against_kafka import release_of

_SIZES = {"bool": 1, "int8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "int64": 8, "float64": 8, "uuid": 16}
_KINDS = {"string": "string", "bytes": "bytes", "records": "bytes"}


class FieldShape(NamedTuple):
    """A field on the wire. `kind`: its size in bytes, or its type. `name`: Kafka's name, or the end of that name."""

    kind: int | str
    name: str
    inner: tuple["FieldShape", ...] = ()


def shapes_of_kafka_fields(spec: dict[str, Any], version: int) -> tuple[FieldShape, ...]:
    """Return the untagged fields of a message."""
    structs = {each["name"]: each["fields"] for each in spec.get("commonStructs", ())}

    def shapes(fields: list[dict[str, Any]]) -> Iterator[FieldShape]:
        for field in fields:
            if version not in parse_versions(field["versions"]) or version in parse_versions(
                field.get("taggedVersions")
            ):
                continue
            kind = field["type"].removeprefix("[]")
            inner = field.get("fields") or structs.get(kind)
            items = tuple(shapes(inner)) if inner else (shape_of(kind, field["name"]),)
            if field["type"].startswith("[]"):
                yield FieldShape("array", field["name"], items)
            else:
                yield from items

    def shape_of(kind: str, name: str) -> FieldShape:
        return FieldShape(_SIZES[kind] if kind in _SIZES else _KINDS[kind], name)

    return tuple(shapes(spec["fields"]))


def shapes_of_layout_fields(fields: tuple[LayoutField, ...], version: int) -> tuple[FieldShape, ...]:
    """Return the fields before REST."""

    def shapes() -> Iterator[FieldShape]:
        for field in fields:
            if field is REST:
                return
            if not field.since <= version <= field.until:
                continue
            inner = shapes_of_layout_fields(field.fields, version)
            match field.step:
                case None:
                    yield from inner
                case LayoutStep.FIXED:
                    yield FieldShape(field.size, "")
                case LayoutStep.ERROR:
                    yield FieldShape(2, "ErrorCode")
                case LayoutStep.ADDRESS:
                    yield from (FieldShape(4, "Id"), FieldShape("string", "Host"), FieldShape(4, "Port"))
                case LayoutStep.ARRAY | LayoutStep.NODES:
                    yield FieldShape("array", "", inner)
                case step:
                    yield FieldShape(step.name.lower(), "")

    return tuple(shapes())


def first_difference(ours: tuple[FieldShape, ...], kafkas: tuple[FieldShape, ...], is_prefix: bool) -> str | None:
    """Return the first difference of a layout from Kafka's definition, or None."""
    for at, shape_of in enumerate(ours):
        if at >= len(kafkas):
            return f"field {at + 1} ({shape_of.kind}) does not exist"
        theirs = kafkas[at]
        if shape_of.kind != theirs.kind or not theirs.name.endswith(shape_of.name):
            stated = f"{shape_of.kind} ({shape_of.name})" if shape_of.name else shape_of.kind
            return f"field {at + 1} is {stated}, and Kafka's {theirs.name} is {theirs.kind}"
        inner = first_difference(shape_of.inner, theirs.inner, is_prefix=False)
        if inner is not None:
            return f"{theirs.name}: {inner}"
    return None if is_prefix or len(ours) == len(kafkas) else f"{kafkas[len(ours)].name} is missing"


@pytest.mark.parametrize("key", [key for key, api in APIS.items() if api.layout or api.codes])
def test_layout_matches_kafkas_definition_in_each_version(key: int) -> None:
    api = APIS[key]
    name = f"{api.name}Response"
    compared = 0
    for version in range(api.max_version + 1):
        spec = message_definition(release_of(name, version), name)
        if version not in parse_versions(spec["validVersions"]):
            continue  # neither release contains this API
        for layout in filter(None, (api.layout, api.codes)):
            found = first_difference(
                shapes_of_layout_fields(layout, version), shapes_of_kafka_fields(spec, version), REST in layout
            )
            assert found is None, f"the layout of {name} v{version} differs from Kafka's: {found}"
            compared += 1
    assert compared


def test_layout_comparison_detects_a_field_that_kafka_lacks() -> None:
    kafkas = shapes_of_kafka_fields(message_definition(release_of("MetadataResponse", 13), "MetadataResponse"), 13)
    layout = APIS[3].layout

    assert first_difference(shapes_of_layout_fields(layout, 13), kafkas, is_prefix=True) is None
    invented = (layout[0], LayoutField(LayoutStep.FIXED, 2), *layout[1:])
    found = first_difference(shapes_of_layout_fields(invented, 13), kafkas, is_prefix=True)
    assert found is not None
    assert "Kafka's Brokers is array" in found
