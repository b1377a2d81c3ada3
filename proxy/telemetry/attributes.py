"""Attributes as OTLP has them. Texts must be such that UTF-8 can have them."""

from collections.abc import Iterable, Mapping, Sequence

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue

Value = str | int | float | bool | Sequence[str]


def attributes_of(values: Mapping[str, Value | None]) -> list[KeyValue]:
    """Those that are not None."""
    return [KeyValue(key=key, value=_any(value)) for key, value in values.items() if value is not None]


def _any(value: Value) -> AnyValue:
    match value:
        case bool():
            return AnyValue(bool_value=value)
        case str():
            return AnyValue(string_value=value)
        case int():
            return AnyValue(int_value=value)
        case float():
            return AnyValue(double_value=value)
    return AnyValue(array_value=ArrayValue(values=_texts(value)))


def _texts(values: Iterable[str]) -> list[AnyValue]:
    return [AnyValue(string_value=value) for value in values]
