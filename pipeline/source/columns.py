"""What a row can hold, in the order of Spark's own Kafka source, and behind it what only a raw reader knows."""

from dataclasses import dataclass
from difflib import get_close_matches

_HEADERS = "array<struct<key: string, value: binary>>"


@dataclass(frozen=True, slots=True)
class Column:
    """`type` is Spark's, as DDL has it."""

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
"""Headers whose names are bytes, as they lie: not all are UTF-8."""
_BY_NAME = {column.name: column for column in (*ALL, *BY_NAME_ONLY)}


class UnknownColumn(ValueError):
    """A column that no row has; the text says which there are."""


def columns_named(text: str | None) -> tuple[Column, ...]:
    """The columns of a comma-separated list; where there is none all but those `BY_NAME_ONLY`. Raises UnknownColumn."""
    if text is None:
        return ALL
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in _BY_NAME:
            near = get_close_matches(name, _BY_NAME, 1)
            advice = f"did you mean {near[0]}?" if near else f"there are {', '.join(_BY_NAME)}"
            raise UnknownColumn(f"there is no column {name!r}; {advice}")
    if not names:
        raise UnknownColumn(f"the option columns names none; there are {', '.join(_BY_NAME)}")
    return tuple(_BY_NAME[name] for name in dict.fromkeys(names))


def ddl_of(columns: tuple[Column, ...]) -> str:
    """The schema as Spark's DDL."""
    return ", ".join(f"{column.name} {column.type}" for column in columns)
