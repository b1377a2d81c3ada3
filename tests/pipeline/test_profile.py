"""Profiles report the known invalid timestamps in topics."""

import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sluicegate.pipeline.jobs.profile import report
from sluicegate.pipeline.jobs.profile.job import profile
from sluicegate.pipeline.runs.results import Results
from sluicegate.pipeline.source.topics import Topics
from tests.integration.topics import create_topic
from tests.pipeline.polluted import DAY, HOUR, PRODUCERS, UNLIMITED, PollutedTopic, Polluter
from tests.wire.batches import LZ4, Rec, batch
from tests.wire.raw_client import RawClient, topic_data

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def profile_of(
    spark: SparkSession, bootstrap: str, folder: Path, topic: str, before_max_ms: int | None = None
) -> dict[str, Any]:
    results = Results(spark, str(folder))
    found = profile(spark, Topics(bootstrap, (topic,)), results, now_ms(), HOUR, before_max_ms)
    report.write_report(results, found)
    results.write_summary(found)
    topics: dict[str, Any] = results.read_summary()["topics"][topic]
    return topics


def expected_counts(polluted: PollutedTopic) -> dict[str, int]:
    return {"negative": 0, "implausible": 0, "past": 0, **polluted.counts}


@pytest.mark.long
def test_a_profile_finds_each_kind_of_invalid_timestamp_and_its_producer(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path
) -> None:
    polluted = Polluter(kafka_bootstrap, now_ms()).write(batches=200, span_ms=5 * HOUR)

    found = profile_of(spark, kafka_bootstrap, tmp_path, polluted.topic)

    assert found["records"] == polluted.records
    assert found["damage"] == expected_counts(polluted)
    assert found["timestamp_min"] == 0
    assert found["timestamp_max"] == max(written for _, _, written in polluted.written)
    assert found["null_keys"] == polluted.records // 8
    damage_of = {p["producer_id"]: (p["records"], p["damage"]) for p in found["producers"]}
    for damage, count in polluted.counts.items():
        assert damage_of[PRODUCERS[damage]] == (count, {damage: count})
    assert damage_of[PRODUCERS["good"]][1] == {}
    page = (tmp_path / "report.html").read_text()
    assert page.count("<svg") == 3
    assert "1970-01-01 00:00:00 UTC (0)" in page
    assert f"no date ({found['timestamp_max']})" in page
    assert "http://" not in page.replace("http://www.w3.org", "").replace("http://purl.org", "").replace(
        "http://creativecommons.org", ""
    )


@pytest.mark.long
def test_time_ahead_of_its_append_is_possibly_future_even_if_now_in_the_past(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path
) -> None:
    """The topic may have been written a week ago, or now with times of a week ago. The stored records do not show
    which."""
    week_ago = now_ms() - 7 * DAY
    polluted = Polluter(kafka_bootstrap, week_ago).write(batches=100, span_ms=5 * HOUR)

    found = profile_of(spark, kafka_bootstrap, tmp_path, polluted.topic)

    assert found["damage"] == expected_counts(polluted) | {"future": 0}
    assert found["damage_at_most"]["future"] == polluted.counts["future"]


def test_profile_counts_do_not_depend_on_number_of_tasks(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path
) -> None:
    polluted = Polluter(kafka_bootstrap, now_ms(), partitions=1).write(batches=120, span_ms=DAY, every=3)

    found = profile_of(spark, kafka_bootstrap, tmp_path, polluted.topic)  # one batch spans two tasks

    assert found["records"] == polluted.records
    assert found["damage"] == expected_counts(polluted)


@pytest.mark.long
def test_late_records_count_as_past_only_with_a_maximum_age(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path
) -> None:
    topic = create_topic(kafka_bootstrap, UNLIMITED, 1)
    now = now_ms()
    with RawClient(kafka_bootstrap) as client:
        for i in range(50):
            on_time = [Rec(now - DAY + i * 60_000 + j) for j in range(20)]
            late = [Rec(now - 3 * DAY + i * 60_000)] if i % 10 == 5 else []
            client.produce(9, [topic_data(topic, (0, batch([*on_time, *late], LZ4)))])

    assert profile_of(spark, kafka_bootstrap, tmp_path / "a", topic)["damage"]["past"] == 0
    found = profile_of(spark, kafka_bootstrap, tmp_path / "b", topic, before_max_ms=HOUR)["damage"]

    assert found == dict.fromkeys(found, 0) | {"past": 5}


def windows_ticks(time_ms: int) -> int:
    """Return a time as Windows counts it: in units of 100 ns since 1601."""
    return (time_ms + 11_644_473_600_000) * 10_000


ODD = {
    "100 ns since 1601": windows_ticks,
    "seconds × 10": lambda time_ms: time_ms // 100,
    "YYYYMMDD": lambda _: 20_261_121,
}


def test_implausible_timestamps_have_their_likely_unit_named(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path
) -> None:
    topic, now = create_topic(kafka_bootstrap, UNLIMITED, 1), now_ms()
    by_producer = {1: [now - HOUR + i for i in range(100)]}
    by_producer |= {producer: [write(now - HOUR)] * producer for producer, write in enumerate(ODD.values(), 2)}
    with RawClient(kafka_bootstrap) as client:
        for producer, times in by_producer.items():
            data = batch([Rec(t) for t in times], producer_id=producer, producer_epoch=0, base_sequence=0)
            client.produce(9, [topic_data(topic, (0, data))])

    found = profile_of(spark, kafka_bootstrap, tmp_path, topic)

    assert {damage: count for damage, count in found["damage"].items() if count} == {"future": 2, "implausible": 3 + 4}
    assert found["likely_units"] == {name: count for count, name in enumerate(ODD, 2)}
    page = (tmp_path / "report.html").read_text()
    assert all(f"<td class=short>{name}</td>" in page for name in ODD)


def test_a_producer_that_mixes_units_has_each_of_them_counted(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path
) -> None:
    topic, now = create_topic(kafka_bootstrap, UNLIMITED, 1), now_ms()
    units: dict[str, int] = {
        **{name: write(now - HOUR) for name, write in ODD.items()},
        "days since 1970": now // DAY,
        "Excel's days since 1900": (now + 2_209_161_600_000) // DAY,
        "YYYYMMDDhhmmss": 20_261_121_093_000,
        "100 ns since the year 1": (now + 62_135_596_800_000) * 10_000,
    }
    mixed = [Rec(number) for number in units.values()] * 100
    with RawClient(kafka_bootstrap) as client:
        client.produce(9, [topic_data(topic, (0, batch([Rec(now - HOUR)] * 50)))])
        client.produce(9, [topic_data(topic, (0, batch(mixed, producer_id=7, producer_epoch=0, base_sequence=0)))])

    found = profile_of(spark, kafka_bootstrap, tmp_path, topic)

    assert found["likely_units"] == dict.fromkeys(units, 100)


def test_profiles_an_empty_topic(spark: SparkSession, kafka_bootstrap: str, tmp_path: Path) -> None:
    topic = create_topic(kafka_bootstrap, UNLIMITED)

    found = profile_of(spark, kafka_bootstrap, tmp_path, topic)

    assert found["records"] == 0
    assert found["timestamp_min"] is None
    assert sum(found["damage"].values()) == 0
