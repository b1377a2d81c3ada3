"""Profile, advise, audit, repair and watch report equal figures for topics with known append times, and the true
figures are within the reported ranges.
"""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sluicegate.pipeline import api, call_arguments
from sluicegate.pipeline.jobs.advise.job import advice_of, summary_of
from sluicegate.pipeline.jobs.repair.report import future_sentences
from sluicegate.pipeline.jobs.watch import reading
from sluicegate.pipeline.runs.results import Results
from sluicegate.pipeline.source.topics import Topics
from tests.integration.topics import create_topic
from tests.pipeline.appended import BATCH, HOUR, KINDS, StampedRecords, stamped_records
from tests.pipeline.polluted import UNLIMITED
from tests.pipeline.repairs import now_ms
from tests.wire.batches import LZ4, Rec, batch
from tests.wire.raw_client import RawClient, topic_data

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.long,
]
RECORDS = 1200
"""With fewer records, the first timestamps that are ahead would look valid: no earlier records contradict them."""
POLICIES = """
upstream: {{bootstrap: ["{bootstrap}"], topic_settings: false}}
listen: {{bootstrap: "127.0.0.1:19092"}}
topics:
  - {{match: "*", message.timestamp.after.max.ms: 3600000}}
"""
Figures = dict[str, tuple[int, int]]
"""The minimum and the maximum number of records that are ahead, by kind of times."""


def write_topics(bootstrap: str, now: int, records: int) -> dict[str, tuple[str, StampedRecords]]:
    """Write a topic for each kind of times; return the kind and the records of each topic."""
    found = {}
    for kind in KINDS:
        its = stamped_records(kind, records, now)
        found[write(bootstrap, its)] = (kind, its)
    return found


def write(bootstrap: str, its: StampedRecords) -> str:
    """Write a topic, and return its name."""
    topic = create_topic(bootstrap, UNLIMITED, 1)
    with RawClient(bootstrap.split(",", maxsplit=1)[0]) as client:
        for start in range(0, len(its.times), BATCH):
            data = batch([Rec(time) for time in its.times[start : start + BATCH]], LZ4)
            client.produce(9, [topic_data(topic, (0, data))])
    return topic


def future_records_by_job(
    spark: SparkSession, bootstrap: str, topics: list[str], out: Path, now: int
) -> dict[str, Figures]:
    """Return the number of records ahead that each job reports, by topic."""
    file = out / "policies.yaml"
    file.write_text(POLICIES.format(bootstrap=bootstrap))
    profiled = api.profile(spark, bootstrap, topics, out / "profile").summary["topics"]
    all_topics = Topics(bootstrap, tuple(topics))
    advice = advice_of(all_topics, Results(spark, str(out / "profile")), 0)
    advised = summary_of(advice, all_topics, 0)[0]["topics"]
    audited = api.audit(spark, bootstrap, topics, out / "audit", file).summary["topics"]
    repaired = api.plan_repair(spark, bootstrap, topics, out / "repair").summary["changes"]
    watched = api.watch(spark, bootstrap, topics, out / "watch").summary["topics"]

    def future_records_by_audit(name: str) -> tuple[int, int]:
        its = audited[name]["findings"]
        certain, perhaps = (
            sum(row["bad_records"] for row in its if row["verdict"] == v) for v in ("reject", "perhaps")
        )
        return certain, certain + perhaps

    def future_records_by_repair(name: str) -> tuple[int, int]:
        its: dict[str, Any] = {row["damage"]: row["records"] for row in repaired if row["topic"] == name}
        return its.get("future", 0), its.get("future", 0) + its.get("maybe_future", 0)

    return {
        "profile": {name: (its["damage"]["future"], its["damage_at_most"]["future"]) for name, its in profiled.items()},
        "advise": {name: (its["kafka_4_rejected"], its["kafka_4_rejected_at_most"]) for name, its in advised.items()},
        "audit": {name: future_records_by_audit(name) for name in topics},
        "repair": {name: future_records_by_repair(name) for name in topics},
        "watch": {
            name: (its["damage"].get("future", 0), its["damage_at_most"].get("future", 0))
            for name, its in watched.items()
        },
    }


def stop_the_clock(monkeypatch: pytest.MonkeyPatch, now: int) -> None:
    """Let all jobs read the topics at the same moment, because some count records that are ahead of that moment."""
    for module in (api, call_arguments):
        monkeypatch.setattr(module, "now_in_ms", lambda: now)
    monkeypatch.setattr(reading, "time", SimpleNamespace(time_ns=lambda: now * 1_000_000))


def test_all_jobs_report_equal_ranges_that_contain_the_true_counts(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = now_ms()
    topics = write_topics(kafka_bootstrap, now, RECORDS)
    stop_the_clock(monkeypatch, now)

    found = future_records_by_job(spark, kafka_bootstrap, list(topics), tmp_path, now)

    for topic, (kind, its) in topics.items():
        each = {job: of[topic] for job, of in found.items()}
        assert set(each.values()) == {each["profile"]}, (kind, each)
        least, most = each["profile"]
        assert least <= its.count_in_future(HOUR) <= most, kind


def test_repair_dry_run_reports_certain_and_possible_future_records(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tenth of the records are six hours ahead. As they were sent over thirty hours, most of these times have
    passed."""
    now = now_ms()
    its = stamped_records("a tenth ahead", RECORDS, now)
    topic, truth = write(kafka_bootstrap, its), its.count_in_future(HOUR)
    stop_the_clock(monkeypatch, now)
    certain = sum(time > now + HOUR for time in its.times)

    plain = api.plan_repair(spark, kafka_bootstrap, topic, tmp_path / "plain")
    asked = api.plan_repair(spark, kafka_bootstrap, topic, tmp_path / "asked", rewrite="future")

    assert 0 < certain < truth == 120
    stated = (
        f"{certain:,} records are certainly ahead of their append, whenever that was. {truth - certain:,} more may be"
    )
    (sentence,) = future_sentences(plain.summary)
    assert sentence.startswith(stated)
    assert sentence.endswith("They are left unchanged without --rewrite future.")
    assert f"the estimated append time of the {truth - certain:,} records" in plain.conclusion().to_do
    assert stated in (tmp_path / "plain" / "report.html").read_text()
    assert future_sentences(asked.summary)[0].endswith("They are corrected too by --rewrite future.")
    after = {row.offset: row.after for row in asked.repairs.where("solved").collect()}
    assert after.keys() == {i for i, (t, at) in enumerate(zip(its.times, its.appended, strict=True)) if t > at + HOUR}
    assert max(abs(time - its.appended[offset]) for offset, time in after.items()) <= HOUR // 2
