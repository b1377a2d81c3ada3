"""Provides column functions for DataFrames and Spark SQL that classify timestamps as the proxy does.

    from sluicegate.pipeline.functions import diagnose, in_bounds

    frame.where(~in_bounds("timestamp", "appended", DAY_MS, HOUR_MS)).select(diagnose("timestamp", "appended"))

Times are int64 milliseconds since 1970, as on the wire (Spark's bigint, not its timestamp). `appended` is the time with
which a timestamp is compared. If an argument is null, the result is null. Each function raises BadParameter for an
invalid argument.
"""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as f

from sluicegate.pipeline.runs.argument_checks import Check, UnfitValue, check_arguments_with, is_integer, spark_session
from sluicegate.protocol.integers import LONG_MAX
from sluicegate.protocol.records.record_batch import NO_TIMESTAMP
from sluicegate.validation import units
from sluicegate.validation.timestamps import TimeWindow
from sluicegate.validation.units import PLAUSIBLE_MS, TimeUnit

_LEAST = -(2**63)
_MS_PER_SECOND = 1000
_PER_MS = {TimeUnit.MICROSECONDS: 1_000, TimeUnit.NANOSECONDS: 1_000_000}
_EXACT = "decimal(19,0)"  # can represent products of int64 without overflow


def _times(value: Any) -> Column | str:
    if isinstance(value, Column) or (isinstance(value, str) and value.strip()):
        return value
    raise UnfitValue("a column, or a column's name")


def _bound_ms(value: Any) -> Column | int:
    if isinstance(value, Column) or (is_integer(value) and 0 <= value <= LONG_MAX):
        found: Column | int = value
        return found
    raise UnfitValue("a number of milliseconds, from 0 on, or a column of such numbers")


CHECKS: Mapping[str, Check] = {
    "spark": spark_session,
    "timestamp": _times,
    "appended": _times,
    "before_max_ms": _bound_ms,
    "after_max_ms": _bound_ms,
}


@check_arguments_with(CHECKS)
def diagnose(timestamp: Column | str, appended: Column | str) -> Column:
    """Describe a time as violation events and record errors do: `looks like nanoseconds: as milliseconds it is 0.2 s
    ago`, `is 2.0 h ahead`. Returns a string column.

    This function runs the proxy's own Python function, so sluicegate must be available on the executors, either
    installed or as the zip that `make executors` builds. Apply it only to bad rows, because it is slow.
    """
    return f.udf(_diagnosis, "string", useArrow=False)(_column(timestamp), _column(appended))


@check_arguments_with(CHECKS)
def in_bounds(
    timestamp: Column | str, appended: Column | str, before_max_ms: Column | int, after_max_ms: Column | int
) -> Column:
    """Return whether a broker with these `message.timestamp.before.max.ms` and `message.timestamp.after.max.ms` accepts
    a record that is appended at that time.

    The result is a boolean column. -1 (no timestamp) is accepted, and differences wrap around as in a broker. Bounds
    are non-negative numbers of ms, or columns of such numbers. The result is a native Spark expression, so executors do
    not need sluicegate.
    """
    time, moment = _column(timestamp), _column(appended)
    # If the difference overflows int64, the signs differ; flipping both highest bits wraps it by 2^64.
    wrapped = moment.bitwiseXOR(f.lit(_LEAST)) - time.bitwiseXOR(f.lit(_LEAST))
    behind = f.coalesce(f.try_subtract(moment, time), wrapped)
    # The smallest int64 is its own negative, so it is within every bound.
    is_within = (behind == _LEAST) | behind.between(-f.lit(after_max_ms), f.lit(before_max_ms))
    return (time == NO_TIMESTAMP) | is_within


@check_arguments_with(CHECKS)
def unit_of(timestamp: Column | str, appended: Column | str) -> Column:
    """Return the unit in which a time was probably written: `seconds`, `microseconds` or `nanoseconds`.

    The result is null if the time is plausible in milliseconds (within ten years of `appended`), or if it is plausible
    in no unit. The result is a native Spark expression.
    """
    time, moment = _column(timestamp).cast(_EXACT), _column(appended).cast(_EXACT)
    low, high = moment - _exactly(PLAUSIBLE_MS), moment + _exactly(PLAUSIBLE_MS)
    in_seconds = (time * _exactly(_MS_PER_SECOND)).between(low, high)
    found = f.when((time <= 0) | time.between(low, high), f.lit(None).cast("string"))
    found = found.when(in_seconds, TimeUnit.SECONDS.value)
    for unit, per in _PER_MS.items():
        is_in_it = time.between(low * _exactly(per), high * _exactly(per) + _exactly(per - 1))
        found = found.when(is_in_it, unit.value)
    return found


@check_arguments_with(CHECKS)
def register_functions(spark: SparkSession) -> None:
    """Register `sluicegate_diagnose(timestamp, appended)`, `sluicegate_in_bounds(timestamp, appended, before_max_ms,
    after_max_ms)` and `sluicegate_unit_of(timestamp, appended)` in the session's SQL.

    In SQL, all three are Python functions that run row by row. For DataFrames, `in_bounds` and `unit_of` are native
    expressions.
    """
    spark.udf.register("sluicegate_diagnose", _diagnosis, "string")
    spark.udf.register("sluicegate_in_bounds", _is_in_bounds, "boolean")
    spark.udf.register("sluicegate_unit_of", _unit, "string")


def _diagnosis(timestamp: int | None, appended: int | None) -> str | None:
    return None if timestamp is None or appended is None else units.diagnose(timestamp, appended)


def _is_in_bounds(
    timestamp: int | None, appended: int | None, before_max_ms: int | None, after_max_ms: int | None
) -> bool | None:
    if timestamp is None or appended is None or before_max_ms is None or after_max_ms is None:
        return None
    return TimeWindow(appended, before_max_ms, after_max_ms).breach(timestamp) is None


def _unit(timestamp: int | None, appended: int | None) -> str | None:
    if timestamp is None or appended is None:
        return None
    found = units.unit_of(timestamp, appended)
    return None if found is None else found.value  # the JVM does not accept an enum member


def _column(given: Column | str) -> Column:
    return f.col(given) if isinstance(given, str) else given


def _exactly(number: int) -> Column:
    return f.lit(number).cast(f"decimal({len(str(number))},0)")
