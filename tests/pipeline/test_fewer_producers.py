"""If a topic has more producers than a summary lists, the summary combines the rest."""

import pytest
from pyspark.sql import SparkSession

from sluicegate.pipeline.jobs.profile import job
from sluicegate.pipeline.jobs.profile.job import with_fewer_producers

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
WHO = ("producer_id", "codec")
DDL = "topic string, producer_id bigint, codec string, damage string, records bigint"


def test_producers_with_most_invalid_timestamps_are_listed_and_others_are_summed(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "_MOST_PRODUCERS", 2)
    rows = [
        ("t", 1, "lz4", "none", 900),
        ("t", 2, "lz4", "none", 10),
        ("t", 2, "lz4", "zero", 1),
        ("t", 3, "lz4", "none", 800),
        ("t", 3, "zstd", "none", 5),
        ("few", 9, "lz4", "none", 5),
    ]

    found, left_out = with_fewer_producers(spark.createDataFrame(rows, DDL), WHO)

    assert left_out == {"t": 2}
    message = sorted(((r.topic, r.producer_id, r.codec, r.damage, r.records) for r in found.collect()), key=str)
    assert message == sorted(
        [
            ("t", 1, "lz4", "none", 900),
            ("t", 2, "lz4", "none", 10),
            ("t", 2, "lz4", "zero", 1),
            ("t", None, None, "none", 800),
            ("t", None, None, "none", 5),
            ("few", 9, "lz4", "none", 5),
        ],
        key=str,
    )
