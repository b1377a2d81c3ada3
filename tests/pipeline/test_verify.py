"""Topics that hold the same, and topics that do not."""

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from pipeline.results import Results
from pipeline.topics import Topics
from pipeline.verify.job import verify
from tests.integration.topics import create_topic
from tests.pipeline.polluted import UNLIMITED

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
NANOSECONDS = 1_764_000_000_000_000_000
Row = dict[str, Any]


def rows() -> list[Row]:
    return [
        {"key": f"k{i % 7}", "value": f"v{i}", "timestamp": 1_764_000_000_000 + i, "partition": i % 7 % 3}
        for i in range(300)
    ] + [{"key": None, "value": "same", "timestamp": 1_764_000_000_000, "partition": 0}] * 3


def written(bootstrap: str, records: list[Row], partitions: int = 3) -> str:
    topic = create_topic(bootstrap, UNLIMITED, partitions)
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20})
    for record in records:
        producer.produce(topic, **record)
    assert producer.flush(30) == 0
    return topic


def compared(spark: SparkSession, bootstrap: str, folder: Path, left: list[Row], right: list[Row]) -> dict[str, Any]:
    source, target = written(bootstrap, left), written(bootstrap, right)
    return verify(spark, Topics(bootstrap, (source,)), target, Results(spark, str(folder)))


def test_copies_are_the_same(spark: SparkSession, kafka_bootstrap: str, tmp_path: Path) -> None:
    found = compared(spark, kafka_bootstrap, tmp_path, rows(), rows())

    assert found["same"]
    assert found["records"] == {"source": 303, "target": 303}


def test_other_partitions_matter_only_where_the_order_of_a_key_changes(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path
) -> None:
    elsewhere = [{**row, "partition": (row["partition"] + 1) % 3} for row in rows()]

    assert compared(spark, kafka_bootstrap, tmp_path, rows(), elsewhere)["same"]


@pytest.mark.parametrize(
    ("change", "differences"),
    [
        (lambda r: r[:100] + r[101:], {"missing": 1}),
        (lambda r: [*r, r[5]], {"added": 1}),
        (lambda r: [*r[:50], {**r[50], "value": "other"}, *r[51:]], {"missing": 1, "added": 1}),
        (lambda r: [*r[:50], {**r[50], "timestamp": 5}, *r[51:]], {"missing": 1, "added": 1}),
        (lambda r: [*r[:50], {**r[50], "headers": [("a", b"")]}, *r[51:]], {"missing": 1, "added": 1}),
        (lambda r: [*r[:50], {**r[50], "value": None}, *r[51:]], {"missing": 1, "added": 1}),
        (lambda r: [*r[:7], r[14], *r[8:14], r[7], *r[15:]], {"out of order": 2}),
        (lambda r: r[:-1], {"missing": 1}),
    ],
)
def test_what_differs_is_told(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path, change: Any, differences: dict[str, int]
) -> None:
    found = compared(spark, kafka_bootstrap, tmp_path, rows(), change(rows()))

    assert not found["same"]
    assert {what: count for what, count in found["differences"].items() if count} == differences
    assert len(found["samples"]) == sum(differences.values())


@pytest.mark.parametrize(("after", "wrong"), [(NANOSECONDS // 1_000_000, 0), (NANOSECONDS // 1_000_000 + 1, 1)])
def test_a_declared_repair_must_be_right(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path, after: int, wrong: int
) -> None:
    bad = {"key": "k", "value": "v", "timestamp": NANOSECONDS, "partition": 0}
    told = [
        ("sluicegate.origin", b"t/0/0"),
        ("sluicegate.timestamp", str(NANOSECONDS).encode()),
        ("sluicegate.repair", b"nanoseconds"),
    ]

    found = compared(
        spark, kafka_bootstrap, tmp_path, [bad, *rows()], [{**bad, "timestamp": after, "headers": told}, *rows()]
    )

    assert found["repairs"] == {"nanoseconds": 1}
    assert found["differences"]["repaired wrongly"] == wrong
    assert found["same"] is (wrong == 0)
