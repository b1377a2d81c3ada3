"""A Spark session without sluicegate can read the tables that jobs keep for users, and no row occurs twice."""

import json
from pathlib import Path
from typing import Any

import pyspark
import pytest
import yaml
from pyspark.sql import SparkSession

from sluicegate.pipeline import profile
from sluicegate.pipeline.runs.tables import TableFormat, package_of
from tests.integration.topics import create_topic
from tests.pipeline.events import violation_event_row
from tests.pipeline.lake import read_back, run_in_lake
from tests.pipeline.polluted import DAY, HOUR, UNLIMITED, PollutedTopic, Polluter
from tests.pipeline.repairs import now_ms

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.long,
]
FORMATS = ("parquet", *(form for form in ("delta", "iceberg") if package_of(TableFormat(form), pyspark.__version__)))


@pytest.fixture(scope="module")
def polluter(kafka_bootstrap: str) -> Polluter:
    polluter = Polluter(kafka_bootstrap, now_ms(), partitions=2)
    polluter.write(batches=60, span_ms=30 * HOUR)
    return polluter


def counts_by_kind(rows: list[dict[str, Any]]) -> dict[str, int]:
    return {row["damage"]: row["records"] for row in rows}


def expected_counts(polluted: PollutedTopic) -> dict[str, int]:
    return {"none": polluted.records - sum(polluted.counts.values()), **polluted.counts}


@pytest.mark.parametrize("form", FORMATS)
def test_repeated_profile_replaces_only_the_rows_of_its_topic(
    kafka_bootstrap: str, polluter: Polluter, tmp_path: Path, form: str
) -> None:
    other = Polluter(kafka_bootstrap, now_ms(), partitions=1)
    other.write(batches=10, span_ms=HOUR)
    tables = tmp_path / "lake"
    for topic in (polluter.found.topic, other.found.topic):
        about = ("--bootstrap", kafka_bootstrap, "--topic", topic, "--out", str(tmp_path / "out"))
        run_in_lake("profile", *about, "--tables", str(tables), "--format", form)
    other.write(batches=10, span_ms=HOUR)
    run_in_lake("profile", *about, "--tables", str(tables), "--format", form)

    table = f"{form}.`{tables}/profile_hours`"
    mine, theirs, days, columns = read_back(
        f"SELECT damage, sum(records) AS records FROM {table} WHERE topic = '{polluter.found.topic}' GROUP BY 1",
        f"SELECT damage, sum(records) AS records FROM {table} WHERE topic = '{other.found.topic}' GROUP BY 1",
        f"SELECT count(DISTINCT day) AS days, count_if(day <> to_date(timestamp_millis(hour))) AS odd FROM {table}",
        f"SELECT * FROM {table} LIMIT 1",
    )

    assert counts_by_kind(mine) == expected_counts(polluter.found)
    assert counts_by_kind(theirs) == expected_counts(other.found)
    assert days[0]["days"] >= 2
    assert days[0]["odd"] == 0
    assert set(columns[0]) == {*documented_columns("profile_hours")}


# Only a profile uses Delta's feature for replacing a topic's rows.
@pytest.mark.parametrize("form", [form for form in FORMATS if form != "delta"])
def test_a_repeated_audit_replaces_its_rows(
    kafka_bootstrap: str, polluter: Polluter, tmp_path: Path, form: str
) -> None:
    file, tables = tmp_path / "sluicegate.yaml", tmp_path / "lake"
    config = {
        "upstream": {"bootstrap": [kafka_bootstrap], "topic_settings": False},
        "listen": {"bootstrap": "127.0.0.1:19092"},
        "defaults": {"message.timestamp.after.max.ms": HOUR, "message.timestamp.before.max.ms": 7 * DAY},
    }
    file.write_text(yaml.safe_dump(config))
    about = ("--bootstrap", kafka_bootstrap, "--topic", polluter.found.topic, "--out", str(tmp_path / "out"))
    for _ in range(2):
        run_in_lake("audit", *about, "--policies", str(file), "--tables", str(tables), "--format", form)

    summary = json.loads((tmp_path / "out" / "summary.json").read_text())["topics"][polluter.found.topic]
    findings, batches, samples = read_back(
        f"SELECT verdict, sum(batches) AS batches, sum(bad_records) AS bad FROM {form}.`{tables}/audit_findings` "
        "GROUP BY 1",
        f"SELECT sum(records) AS records FROM {form}.`{tables}/audit_batches`",
        f"SELECT count(*) AS rows, count(DISTINCT partition, offset, reason) AS each "
        f"FROM {form}.`{tables}/audit_samples`",
    )
    rejected = summary["verdicts"]["reject"]
    assert findings == [{"verdict": "reject", "batches": rejected["batches"], "bad": rejected["bad_records"]}]
    assert batches == [{"records": polluter.found.records}]
    assert samples[0]["rows"] == samples[0]["each"] > 0


@pytest.mark.parametrize("form", FORMATS)
def test_a_restarted_watch_continues_its_tables(
    kafka_bootstrap: str, polluter: Polluter, tmp_path: Path, form: str
) -> None:
    out, tables = tmp_path / "out", tmp_path / "lake"
    about = ("--bootstrap", kafka_bootstrap, "--topic", polluter.found.topic, "--out", str(out), "--once")
    kept = ("--tables", str(tables), "--format", form)
    run_in_lake("watch", *about, *kept, "--batch", "2000")
    last = max(out.glob("progress/*.json"), key=lambda file: int(file.stem))
    last.unlink()  # as if the job had been killed before it marked the batch as done
    run_in_lake("watch", *about, *kept)

    hours, findings = read_back(
        f"SELECT damage, sum(records) AS records FROM {form}.`{tables}/watch_hours` GROUP BY 1",
        f"SELECT producer_id, what, count(*) AS times FROM {form}.`{tables}/watch_findings` WHERE about = 'damage' "
        "GROUP BY 1, 2",
    )
    assert counts_by_kind(hours) == expected_counts(polluter.found)
    assert {row["what"]: row["times"] for row in findings} == dict.fromkeys(polluter.found.counts, 1)


def test_windows_of_violations_grow_with_new_events(tmp_path: Path) -> None:
    shipped, tables = tmp_path / "shipped", tmp_path / "lake"
    shipped.mkdir()
    for form in FORMATS:
        command = ("violations", "--events", str(shipped), "--out", str(tmp_path / f"out-{form}"))
        for number in range(2):
            lines = [json.dumps(violation_event_row(number, 10 + i, topic="../../orders")) for i in range(3)]
            (shipped / f"{form}-{number}").write_text("\n".join(lines) + "\n")
            run_in_lake(*command, "--tables", str(tables / form), "--format", form, "--window", "10 minutes")

    found = read_back(
        *(
            f"SELECT topic, sum(events) AS events, count(DISTINCT batch) AS batches FROM {form}.`{tables}/{form}/"
            "violations_windows` GROUP BY 1"
            for form in FORMATS
        )
    )

    # The first run with each format finds the events that were written for the earlier formats.
    counts = (6, 12, 18)[: len(FORMATS)]
    assert found == [[{"topic": "../../orders", "events": events, "batches": 2}] for events in counts]
    assert {file.name for file in tmp_path.iterdir()} == {"shipped", "lake", *(f"out-{form}" for form in FORMATS)}


@pytest.mark.skipif("iceberg" not in FORMATS, reason="no Iceberg was made for this Spark")
def test_tables_are_written_to_an_iceberg_catalog_of_the_user(
    kafka_bootstrap: str, polluter: Polluter, tmp_path: Path
) -> None:
    about = ("--bootstrap", kafka_bootstrap, "--topic", polluter.found.topic, "--out", str(tmp_path / "out"))
    for _ in range(2):
        run_in_lake("profile", *about, "--tables", "catalog:lake.audit", "--format", "iceberg")

    (rows,) = read_back("SELECT damage, sum(records) AS records FROM lake.audit.profile_hours GROUP BY 1")
    assert counts_by_kind(rows) == expected_counts(polluter.found)
    output = run_in_lake("profile", *about, "--tables", "catalog:sea.audit", "--format", "iceberg", status=1)
    assert output.startswith("sluicegate-spark: catalog:sea.audit: Spark has no such catalog; configure its")


def test_a_repeated_profile_replaces_its_kept_parquet_rows(
    spark: SparkSession, kafka_bootstrap: str, polluter: Polluter, tmp_path: Path
) -> None:
    empty = create_topic(kafka_bootstrap, UNLIMITED, 1)
    for _ in range(2):
        profile(spark, kafka_bootstrap, (polluter.found.topic, empty), tmp_path / "out", tables=tmp_path / "kept")

    rows = spark.read.parquet(str(tmp_path / "kept" / "profile_hours")).groupBy("damage").sum("records").collect()
    assert {row["damage"]: row["sum(records)"] for row in rows} == expected_counts(polluter.found)


def documented_columns(table: str) -> list[str]:
    """Return the columns of a table from docs/pipeline/kept-tables.md."""
    page = (Path(__file__).parent.parent.parent / "docs" / "pipeline" / "kept-tables.md").read_text()
    (line,) = (line for line in page.splitlines() if line.startswith(f"| `{table}` |"))
    return [name.strip("` ").split(" ")[0] for name in line.split("|")[3].split(",")]
