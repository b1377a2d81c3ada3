"""A watch counts every record once and reports the beginning of each problem once, whatever interrupts it."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyspark
import pytest
import yaml
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from sluicegate.pipeline import Watched, audit, watch
from sluicegate.pipeline.jobs.watch.progress import DifferentWatch, WatchProgress
from sluicegate.pipeline.runs.tables import TableFormat, minor_of, package_of
from tests.integration.topics import create_topic
from tests.pipeline.commands import kill_once, run, run_in_new_process, summary
from tests.pipeline.polluted import DAY, HOUR, RECORDS, UNLIMITED, PollutedTopic, Polluter
from tests.pipeline.repairs import now_ms
from tests.wire.batches import LZ4, Rec, batch
from tests.wire.raw_client import RawClient, topic_data

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.long,
]
PRODUCER = 7001


class Writer:
    """A producer that writes one partition."""

    def __init__(self, bootstrap: str, producer_id: int = PRODUCER) -> None:
        self._bootstrap = bootstrap
        self._producer_id = producer_id
        self._sequence = 0
        self.topic = create_topic(bootstrap, UNLIMITED, 1)

    def write(self, time_of: Callable[[int], int], records: int = RECORDS) -> None:
        """Send a batch with times computed from the current time."""
        times = [time_of(now_ms() + i) for i in range(records)]
        data = batch(
            [Rec(time, b"k", b"v") for time in times],
            LZ4,
            producer_id=self._producer_id,
            producer_epoch=0,
            base_sequence=self._sequence,
        )
        self._sequence += records
        with RawClient(self._bootstrap.split(",", maxsplit=1)[0]) as client:
            response = client.produce(9, [topic_data(self.topic, (0, data))])
        assert isinstance(response, dict)
        assert response["responses"][0]["partition_responses"][0]["error_code"] == 0, response


def stored_counts(spark: SparkSession, out: Path, by: str = "damage") -> Counter[Any]:
    rows = spark.read.parquet(str(out / "watch_hours")).groupBy(by).agg(f.sum("records").alias("records")).collect()
    return Counter({row[by]: row["records"] for row in rows})


def counts_of(polluted: PollutedTopic) -> Counter[Any]:
    return Counter({"none": polluted.records - sum(polluted.counts.values()), **polluted.counts})


def new_findings(found: Watched) -> list[tuple[Any, ...]]:
    return [(row["about"], row["change"], row["what"], row["before"]) for row in found.new]


def has_a_batch_that_progress_does_not_list(out: Path) -> bool:
    """Return whether one batch at least is complete, and the hours of the next one exist."""
    done = [int(file.stem) for file in (out / "progress").glob("*.json")]
    return bool(done) and bool(list(out.glob(f"watch_hours/batch=*-{max(done) + 1:08}")))


def test_a_killed_watch_counts_every_record_once(spark: SparkSession, kafka_bootstrap: str, tmp_path: Path) -> None:
    polluter, out = Polluter(kafka_bootstrap, now_ms(), partitions=2), tmp_path / "out"
    polluted = polluter.write(batches=60, span_ms=5 * HOUR)
    command = ("watch", "--bootstrap", kafka_bootstrap, "--topic", polluted.topic, "--out", str(out))
    in_chunks = (*command, "--batch", "500", "--every-seconds", "1")

    kill_once(lambda: has_a_batch_that_progress_does_not_list(out), tmp_path, *in_chunks)
    polluter.write(batches=30, span_ms=HOUR)
    run(*command, "--once")

    assert stored_counts(spark, out) == counts_of(polluted)
    (topic,) = summary(out)["topics"].values()
    assert (topic["records"], topic["damage"]) == (polluted.records, polluted.counts)
    nothing_new = run(*command, "--once")
    assert "batch" not in nothing_new
    assert stored_counts(spark, out) == counts_of(polluted)


def test_a_watch_overwrites_a_batch_that_its_progress_does_not_list(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = Writer(kafka_bootstrap)
    writer.write(lambda now: now * 1_000_000)
    keep = WatchProgress.keep

    def raise_interrupt(progress: WatchProgress, results: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(WatchProgress, "keep", raise_interrupt)
    with pytest.raises(KeyboardInterrupt):
        watch(spark, kafka_bootstrap, writer.topic, tmp_path)
    assert stored_counts(spark, tmp_path) == {"nanoseconds": RECORDS}
    monkeypatch.setattr(WatchProgress, "keep", keep)
    writer.write(lambda now: now)
    found = watch(spark, kafka_bootstrap, writer.topic, tmp_path)

    assert stored_counts(spark, tmp_path) == {"nanoseconds": RECORDS, "none": RECORDS}
    ids = [row["id"] for row in found.findings.collect()]
    assert len(ids) == len(set(ids)) == 1
    assert found.findings.schema.fieldNames()[0] == "id"


def test_watch_reports_each_start_and_change_of_invalid_timestamps_once(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path
) -> None:
    writer = Writer(kafka_bootstrap)

    def findings_after_writing(time_of: Callable[[int], int]) -> list[tuple[Any, ...]]:
        writer.write(time_of)
        return new_findings(watch(spark, kafka_bootstrap, writer.topic, tmp_path, before_max_ms=DAY))

    assert findings_after_writing(lambda now: now) == []
    assert findings_after_writing(lambda now: now * 1_000_000) == [("damage", "began", "nanoseconds", "")]
    assert findings_after_writing(lambda now: now * 1_000_000) == []
    assert findings_after_writing(lambda now: now // 1000) == [("damage", "changed", "seconds", "nanoseconds")]
    assert findings_after_writing(lambda now: now) == []
    # No neighbour shows that these records are late. A profile would count them as old. A watch knows when they were
    # appended.
    assert findings_after_writing(lambda now: now - 7 * HOUR) == [("behind", "began", "more than 6 h", "within 1 min")]
    assert findings_after_writing(lambda now: now - 3 * DAY) == [
        ("damage", "changed", "past", "nanoseconds, seconds"),
        ("behind", "changed", "more than 2 d", "more than 6 h"),
    ]
    assert findings_after_writing(lambda now: now) == [("behind", "ended", "within 1 min", "more than 2 d")]
    assert summary(tmp_path)["topics"][writer.topic]["records"] == 8 * RECORDS


def test_watch_violations_equal_those_of_an_audit(spark: SparkSession, kafka_bootstrap: str, tmp_path: Path) -> None:
    polluted, file = Polluter(kafka_bootstrap, now_ms(), partitions=2).write(60, 5 * HOUR), tmp_path / "sluicegate.yaml"
    config = {
        "upstream": {"bootstrap": [kafka_bootstrap], "topic_settings": False},
        "listen": {"bootstrap": "127.0.0.1:19092"},
        "defaults": {
            "message.timestamp.after.max.ms": HOUR,
            "rules": [{"name": "keyed", "key": {"required": True}, "mode": "observe"}],
        },
    }
    file.write_text(yaml.safe_dump(config))

    whole = watch(spark, kafka_bootstrap, polluted.topic, tmp_path / "whole", policies=file)
    chunks = watch(spark, kafka_bootstrap, polluted.topic, tmp_path / "pieces", policies=file, offsets_a_batch=777)
    at_once = audit(spark, kafka_bootstrap, polluted.topic, tmp_path / "audit", file)

    def sums_by_columns(frame: Any, *by: str) -> list[Any]:
        return sorted(frame.groupBy(*by).agg(f.sum("batches"), f.sum("bad_records")).collect(), key=str)

    by_rule = ("partition", "producer_id", "verdict", "reason", "rule")
    assert chunks.summary["batches"] > 5
    assert sums_by_columns(whole.violations, "hour", *by_rule) == sums_by_columns(at_once.findings, "hour", *by_rule)
    assert sums_by_columns(chunks.violations, *by_rule) == sums_by_columns(at_once.findings, *by_rule)
    began = {row["what"] for row in whole.new if row["about"] == "violation"}
    assert "reject: timestamp_in_future" in began
    assert any(what.startswith("observe: ") and what.endswith(" by keyed") for what in began)


def test_rejects_changed_table_location_of_an_existing_watch(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path
) -> None:
    topic = create_topic(kafka_bootstrap, UNLIMITED, 1)
    watch(spark, kafka_bootstrap, topic, tmp_path)

    with pytest.raises(
        DifferentWatch, match=r"contains the results of a watch with tables in .* as parquet: use the same"
    ):
        watch(spark, kafka_bootstrap, topic, tmp_path, tables=tmp_path / "elsewhere")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--format", "orc"), "unknown format 'orc'; expected one of parquet, delta, iceberg"),
        (("--tables", "catalog:lake.audit"), "catalog:lake.audit: only Iceberg supports a catalog; use a"),
        (("--tables", "catalog:lake", "--format", "iceberg"), "catalog:lake: expected catalog:NAME.NAMESPACE, of"),
        (("--webhook", "ftp://host/secret"), "the webhook's address is invalid: expected https://host/path"),
        (("--webhook", "https://me:word@host/"), "the webhook's address is invalid: expected https://host/path"),
        (("--webhook", "https://host:port/secret"), "the webhook's address is malformed: expected https://host/path"),
    ],
)
def test_invalid_arguments_of_a_watch_are_errors_of_one_line(
    kafka_bootstrap: str, tmp_path: Path, arguments: tuple[str, ...], text: str
) -> None:
    topic = create_topic(kafka_bootstrap, UNLIMITED, 1)
    about = ("--bootstrap", kafka_bootstrap, "--topic", topic, "--out", str(tmp_path / "out"))

    printed = run("watch", *about, "--once", *arguments, status=1)

    assert printed.startswith(f"sluicegate-spark: {text}")
    assert len(printed.splitlines()) == 1
    assert "secret" not in printed
    assert "word" not in printed


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_missing_table_format_error_names_its_package(kafka_bootstrap: str, tmp_path: Path, form: str) -> None:
    topic = create_topic(kafka_bootstrap, UNLIMITED, 1)
    about = ("--bootstrap", kafka_bootstrap, "--topic", topic, "--out", str(tmp_path / "out"))

    # The session names a missing catalog, and Spark 4.3 runs no query in such a session.
    printed = run_in_new_process("watch", *about, "--once", "--format", form, status=1)

    package, minor = package_of(TableFormat(form), pyspark.__version__), minor_of(pyspark.__version__)
    advice = (
        f": add {package} (for Spark {minor}) to"
        if package
        else f", and this release does not know a package for Spark {minor}"
    )
    report = f"sluicegate-spark: Spark has no {form} here{advice}"
    assert printed.splitlines()[-1].startswith(report)
    assert "Traceback" not in printed
