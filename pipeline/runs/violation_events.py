"""Defines the columns of the proxy's violation events, for all jobs that read them
(`sluicegate.validation.event_schema`).
"""

from pyspark.sql import Column
from pyspark.sql import functions as f

from sluicegate.validation.event_schema import EVENT_FIELDS, SCHEMA_VERSION, EventField, FieldType

_SPARK_TYPES = {
    FieldType.STRING: "string",
    FieldType.INT: "int",
    FieldType.LONG: "bigint",
    FieldType.BOOLEAN: "boolean",
    FieldType.STRINGS: "array<string>",
    FieldType.ANY: "string",  # the value as JSON text
}


def _columns(fields: tuple[EventField, ...], separator: str = " ") -> str:
    """Return the fields as Spark DDL, either for a table or, with `: ` as the separator, for a struct."""
    return ", ".join(f"`{field.name}`{separator}{_spark_type(field)}" for field in fields)


def _spark_type(field: EventField) -> str:
    if not field.fields:
        return _SPARK_TYPES[field.type]
    struct = f"struct<{_columns(field.fields, ': ')}>"
    return f"array<{struct}>" if field.type is FieldType.OBJECTS else struct


_EVENT = _columns(EVENT_FIELDS)


def event_of_line(line: str) -> Column:
    """Return the event in the column `line`, in either format of `violations.format`; null if there is no event."""
    is_cloud_event = f.get_json_object(line, "$.specversion").isNotNull()
    event = f.when(is_cloud_event, f.get_json_object(line, "$.data")).otherwise(f.col(line))
    return f.from_json(event, _EVENT)


def is_of_this_version(event: str) -> Column:
    """Return whether the column `event` contains an event of the version that this build reads; null if it has none."""
    return f.col(f"{event}.schema_version") == SCHEMA_VERSION
