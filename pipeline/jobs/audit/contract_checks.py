"""Checks data contracts over all stored records of a topic: counts, shares, duplicates and freshness.

Records with a null value are not counted. A field that is absent or cannot be read counts as null. An encrypted value
counts only as a record, and an encrypted field counts as not null.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from sluicegate.config.values.contract import Metric, StoredCheck, TopicContract, contract_of
from sluicegate.pipeline.jobs.audit.policies import Policies
from sluicegate.pipeline.jobs.audit.values_as_json import as_json
from sluicegate.pipeline.source.topics import Topics

_ROWS = "rows"
_NEWEST = "newest"
_READABLE = "readable"
_ENCRYPTED: Final = "\0encrypted"
"""The text that represents an encrypted field, which no check reads."""
_PASSES: Final[Mapping[str, Callable[..., bool]]] = {
    "mustBe": lambda found, limit: found == limit,
    "mustNotBe": lambda found, limit: found != limit,
    "mustBeGreaterThan": lambda found, limit: found > limit,
    "mustBeGreaterOrEqualTo": lambda found, limit: found >= limit,
    "mustBeLessThan": lambda found, limit: found < limit,
    "mustBeLessOrEqualTo": lambda found, limit: found <= limit,
    "mustBeBetween": lambda found, low, high: low < found < high,
    "mustNotBeBetween": lambda found, low, high: not low < found < high,
}


def check_contracts(
    spark: SparkSession, topics: Topics, contracts: Mapping[str, TopicContract], policies: Policies, now_ms: int
) -> dict[str, dict[str, Any]]:
    """Return, by topic, the results of its contract's checks, and the statements that were not checked.

    `policies` contains the registries with the Avro and Protobuf schemas. `now_ms` is the time from which the age of
    the newest record is measured. Raises Spark's own exceptions, and CannotBeValidated in a task.
    """
    found = {}
    for name in topics.names:
        contract = contract_of(contracts, name)
        if contract is not None:
            one = replace(topics, names=(name,), skip_unreadable=True)  # the audit reports unreadable batches itself
            registry = contract.registry if any(check.fields for check in contract.stored) else None
            columns = "value,timestamp" if registry is None else "value,timestamp,headers_binary"
            records = one.read(spark, "sluicegate", columns=columns).where("value is not null")
            if registry is not None:
                records = as_json(records, name, policies, registry)
            found[name] = {
                "file": str(contract.file),
                "version": contract.version,
                "checks": _checked(records, contract.stored, now_ms),
                "not_checked": [str(each) for each in contract.unchecked],
            }
    return found


def _checked(records: DataFrame, checks: tuple[StoredCheck, ...], now_ms: int) -> list[dict[str, Any]]:
    if not checks:
        return []
    paths = dict.fromkeys(path for check in checks for path in check.fields)
    fields = [_field(path, "encrypted" in records.columns).alias(_column(path)) for path in paths]
    records = records.select("timestamp", f.col("value").isNotNull().alias(_READABLE), *fields)
    counted = {f"c{i}": check for i, check in enumerate(checks) if check.metric in _COUNTED}
    counts = [
        f.count_if(f.col(_READABLE) & _COUNTED[check.metric](check)).alias(name) for name, check in counted.items()
    ]
    sums = f.count("*").alias(_ROWS), f.count_if(f.col(_READABLE)).alias(_READABLE), f.max("timestamp").alias(_NEWEST)
    (row,) = records.agg(*sums, *counts).collect()
    rows, readable = int(row[_ROWS]), int(row[_READABLE])
    results = []
    for i, check in enumerate(checks):
        if check.metric is Metric.ROWS:
            measured: float | None = rows
        elif check.metric is Metric.FRESHNESS:
            measured = None if row[_NEWEST] is None else now_ms - int(row[_NEWEST])
        elif check.metric is Metric.DUPLICATES:
            measured = _duplicates(records, check)
        else:
            measured = int(row[f"c{i}"])
        if check.percent and measured is not None:
            all_rows = rows if check.metric is Metric.ROWS else readable
            measured = 100 * measured / all_rows if all_rows else 0.0
        passed = measured is not None and _PASSES[check.operator](measured, *check.limit)
        results.append({"check": str(check), "found": measured, "passed": passed, "place": check.place})
    return results


def _duplicates(records: DataFrame, check: StoredCheck) -> int:
    """Return how many values occur more than once, without null and encrypted values."""
    values = records.select(*(f.col(_column(path)) for path in check.fields)).dropna()
    for path in check.fields:
        values = values.where(f.col(_column(path)) != _ENCRYPTED)
    return values.groupBy(*values.columns).count().where("count > 1").count()


def _is_missing(check: StoredCheck) -> Column:
    field, values = f.col(_column(check.fields[0])), check.values or ()
    among = f.coalesce(field.isin(_texts(values)), f.lit(False))
    return among | field.isNull() if None in values else among


def _is_invalid(check: StoredCheck) -> Column:
    field = f.col(_column(check.fields[0]))
    bad = f.lit(False)
    if check.values is not None:
        bad = bad | ~field.isin(_texts(check.values))
    if check.pattern is not None:
        bad = bad | ~field.rlike(check.pattern)
    return field.isNotNull() & (field != _ENCRYPTED) & f.coalesce(bad, f.lit(False))


_SCALES: Final = (1, 20, 38)  # scales of decimals with 38 digits: for large numbers, up to 1e18, and small ones
_COUNTED: Final[Mapping[Metric, Callable[[StoredCheck], Column]]] = {
    Metric.NULLS: lambda check: f.col(_column(check.fields[0])).isNull(),
    Metric.MISSING: _is_missing,
    Metric.INVALID: _is_invalid,
}


def _column(path: tuple[str, ...]) -> str:
    """Return the name of the column for a field's text. None of its characters has a special meaning in Spark."""
    return "f" + json.dumps(path).encode().hex()


def _field(path: tuple[str, ...], may_be_encrypted: bool) -> Column:
    """Return a field of the JSON value as text; null if the field is absent or null.

    `may_be_encrypted` is whether the column `encrypted` contains the names of encrypted fields.
    """
    found = f.try_parse_json(f.col("value").cast("string"))
    for name in path:
        found = f.try_element_at(f.try_variant_get(found, "$", "map<string,variant>"), f.lit(name))
    text = _text(found)
    if not may_be_encrypted:
        return text
    is_encrypted = f.arrays_overlap("encrypted", f.array(*map(f.lit, path)))
    return f.when(is_encrypted & text.isNotNull(), f.lit(_ENCRYPTED)).otherwise(text)


def _texts(values: tuple[Any, ...]) -> list[Column]:
    """Return a contract's values in the form that `_field` returns."""
    dumped = (json.dumps(value, default=str) for value in values if value is not None)
    return [_text(f.try_parse_json(f.lit(value))) for value in dumped]


def _text(value: Column) -> Column:
    """Return a variant as text, which is the same for all spellings of a number: 5, 5.0 and 5e0; 1e-7 and 0.0000001.

    A number with an exponent is a double. If a decimal has the same value, the decimal's text is returned.
    """
    whole = f.try_variant_get(value, "$", "bigint")
    number = f.when(f.schema_of_variant(value) == "DOUBLE", f.try_variant_get(value, "$", "double"))
    decimals = [number.try_cast(f"decimal(38, {scale})") for scale in _SCALES]
    plain = [f.when(each.cast("double") == number, _without_zeros(each)) for each in decimals]
    text = f.coalesce(*plain, f.try_variant_get(value, "$", "string"))
    return f.when(number == whole, whole.cast("string")).otherwise(text)


def _without_zeros(number: Column) -> Column:
    """Return a decimal, which has decimal places, as text without trailing zeros."""
    return f.regexp_replace(number.cast("string"), r"\.?0+$", "")
