"""Columns of a row: those of Spark's own Kafka source in its order, then those of the raw source."""

from dataclasses import dataclass
from difflib import get_close_matches

_HEADERS = "array<struct<key: string, value: binary>>"


@dataclass(frozen=True, slots=True)
class Column:
    """`type` is Spark's DDL type."""

    name: str
    type: str


ALL = (
    Column("key", "binary"),
    Column("value", "binary"),
    Column("topic", "string"),
    Column("partition", "int"),
    Column("offset", "bigint"),
    Column("timestamp", "bigint"),
    Column("timestamp_type", "int"),
    Column("headers", _HEADERS),
    Column("key_size", "int"),
    Column("value_size", "int"),
    Column("magic", "int"),
    Column("codec", "string"),
    Column("producer_id", "bigint"),
    Column("producer_epoch", "int"),
    Column("base_sequence", "int"),
    Column("batch_base_offset", "bigint"),
    Column("batch_position", "int"),
    Column("batch_size", "int"),
    Column("batch_records", "int"),
)
BY_NAME_ONLY = (Column("headers_binary", "array<struct<key: binary, value: binary>>"),)
"""Headers with names as bytes, because not all are UTF-8; only included on request."""
_BY_NAME = {column.name: column for column in (*ALL, *BY_NAME_ONLY)}


class UnknownColumn(ValueError):
    """An unknown column; the text lists the valid ones."""


def columns_named(text: str | None) -> tuple[Column, ...]:
    """Parse a comma-separated list; None selects all columns except those in `BY_NAME_ONLY`. Raises UnknownColumn."""
    if text is None:
        return ALL
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in _BY_NAME:
            near = get_close_matches(name, _BY_NAME, 1)
            advice = f"did you mean {near[0]}?" if near else f"expected one of {', '.join(_BY_NAME)}"
            raise UnknownColumn(f"unknown column {name!r}; {advice}")
    if not names:
        raise UnknownColumn(f"the option columns is empty; expected some of {', '.join(_BY_NAME)}")
    return tuple(_BY_NAME[name] for name in dict.fromkeys(names))


def ddl_of(columns: tuple[Column, ...]) -> str:
    """Return the schema as Spark's DDL."""
    return ", ".join(f"{column.name} {column.type}" for column in columns)
