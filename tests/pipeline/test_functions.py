"""The column functions agree with the core's functions for single timestamps, for all kinds of int64."""

import random
from itertools import product

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as f

from sluicegate.pipeline.functions import diagnose, in_bounds, register_functions, unit_of
from sluicegate.validation import units
from sluicegate.validation.timestamps import TimeWindow
from tests.pipeline.polluted import DAY, HOUR

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
NOW = 1_764_000_000_000
LEAST, MOST = -(2**63), 2**63 - 1
BOUNDS = (0, 1, HOUR, 7 * DAY, MOST - 1, MOST)
MOMENTS = (NOW, 0, -1, 1, units.PLAUSIBLE_MS, MOST - units.PLAUSIBLE_MS, LEAST, LEAST + 1, MOST)
COLUMNS = "timestamp bigint, appended bigint, before bigint, after bigint"
Asked = tuple[int, int, int, int]


def edge_times_around(moment: int) -> set[int]:
    """Return numbers around the limits of plausible times and of bounds at a moment, in each unit, and around int64's
    limits."""
    edges = [moment + side * away for away in (units.PLAUSIBLE_MS, *BOUNDS) for side in (-1, 1)]
    edges += [edge // 1000 for edge in edges] + [edge * per for edge in edges for per in (1000, 1_000_000)]
    steps = (-1_000_001, -1001, -1, 0, 1, 999, 1000, 999_999, 1_000_000)
    near = {edge + step for edge in (*edges, 0, LEAST, MOST) for step in steps}
    return {number for number in near if LEAST <= number <= MOST}


def random_questions() -> list[Asked]:
    chance = random.Random(937)
    times = [(time, moment) for moment in MOMENTS for time in edge_times_around(moment)]
    times += [(chance.randint(LEAST, MOST), chance.randint(LEAST, MOST)) for _ in range(2000)]
    times += [
        (NOW + chance.randint(-(10 ** chance.randint(1, 15)), 10 ** chance.randint(1, 15)), NOW) for _ in range(2000)
    ]
    times += [(NOW + step, NOW) for step in range(-2000, 2000, 25)]  # at these times, tenths of a second are rounded
    bounds = list(product(BOUNDS, BOUNDS))
    return [(*pair, *bounds[number % len(bounds)]) for number, pair in enumerate(times)]


def scalar_results(row: Asked) -> tuple[str, bool, str | None]:
    timestamp, appended, before, after = row
    is_within = TimeWindow(appended, before, after).breach(timestamp) is None
    return units.diagnose(timestamp, appended), is_within, units.unit_of(timestamp, appended)


def function_results(row: Row) -> tuple[str, bool, str | None]:
    return row["looks"], row["is_within"], row["unit"]


def test_column_functions_agree_with_the_proxy(spark: SparkSession) -> None:
    frame = spark.createDataFrame(random_questions(), COLUMNS)

    found = frame.select(
        *frame.columns,
        diagnose("timestamp", f.col("appended")).alias("looks"),
        in_bounds("timestamp", "appended", f.col("before"), f.col("after")).alias("is_within"),
        unit_of(f.col("timestamp"), "appended").alias("unit"),
    ).collect()

    assert len(found) > 4000
    assert {row["unit"] for row in found} == {None, *(unit.value for unit in units.TimeUnit)}
    assert {row["is_within"] for row in found} == {True, False}
    wrong = [
        (tuple(row)[:4], function_results(row))
        for row in found
        if function_results(row) != scalar_results(tuple(row)[:4])
    ]
    assert wrong[:5] == []


def test_sql_functions_agree_with_the_proxy(spark: SparkSession) -> None:
    register_functions(spark)
    spark.createDataFrame(random_questions()[::3], COLUMNS).createOrReplaceTempView("asked_in_sql")

    found = spark.sql(
        "SELECT *, sluicegate_diagnose(timestamp, appended) AS looks,"
        " sluicegate_in_bounds(timestamp, appended, before, after) AS is_within,"
        " sluicegate_unit_of(timestamp, appended) AS unit FROM asked_in_sql"
    ).collect()

    wrong = [
        (tuple(row)[:4], function_results(row))
        for row in found
        if function_results(row) != scalar_results(tuple(row)[:4])
    ]
    assert (len(found) > 1000, wrong[:5]) == (True, [])


def test_column_functions_of_null_are_null(spark: SparkSession) -> None:
    register_functions(spark)
    rows: list[tuple[int | None, int | None, int, int]] = [(None, NOW, HOUR, HOUR), (NOW, None, HOUR, HOUR)]
    spark.createDataFrame(rows, COLUMNS).createOrReplaceTempView("nothing_is_known")

    by_columns = spark.table("nothing_is_known").select(
        diagnose("timestamp", "appended"),
        in_bounds("timestamp", "appended", HOUR, HOUR),
        unit_of("timestamp", "appended"),
    )
    by_sql = spark.sql(
        "SELECT sluicegate_diagnose(timestamp, appended), sluicegate_in_bounds(timestamp, appended, 1, 1),"
        " sluicegate_unit_of(timestamp, appended) FROM nothing_is_known"
    )

    assert [tuple(row) for row in by_columns.union(by_sql).collect()] == [(None, None, None)] * 4


def test_column_functions_work_in_groups_and_filters(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(NOW // 1000,), (NOW,), (NOW * 1000,), (NOW + 1,)], "timestamp bigint")
    moment = f.lit(NOW)

    units_found = frame.groupBy(unit_of("timestamp", moment).alias("unit")).count().orderBy("unit").collect()
    taken = frame.where(in_bounds("timestamp", moment, HOUR, HOUR)).agg(f.max("timestamp"), f.count("*")).first()

    assert [tuple(row) for row in units_found] == [(None, 2), ("microseconds", 1), ("seconds", 1)]
    assert taken == (NOW + 1, 2)
