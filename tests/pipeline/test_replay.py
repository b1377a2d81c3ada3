"""A real proxy's dead letters are corrected, validated again, and written to their topics, each exactly once."""

import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from sluicegate.pipeline import plan_replay
from sluicegate.pipeline.jobs.replay import job
from sluicegate.pipeline.jobs.replay.progress import groups_of
from sluicegate.pipeline.jobs.replay.writing import Headers
from sluicegate.pipeline.report.wording import moment_and_ms
from sluicegate.pipeline.runs.results import Results
from sluicegate.pipeline.source.topics import Topics
from tests.pipeline.commands import kill_once, run, summary
from tests.pipeline.polluted import DAY
from tests.pipeline.replays import (
    ConsumedRecord,
    Quarantine,
    quarantining_proxy,
    read_back,
    replay_progress,
    replay_request_of,
    run_replay,
)
from tests.wire.batches import Rec

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.long,
]
NANOSECONDS = 1_000_000
CORRECTIONS = "tests.pipeline.corrections"
TENANT_RULE = [{"name": "tenant", "cel": "value.tenant != ''"}]


def now_ms() -> int:
    return time.time_ns() // 1_000_000


CASES: dict[str, dict[str, Any]] = {
    "whole": {},
    "since": {},
    "forgotten": {},
    "deleted": {},
    "killed": {},
    "function": {"rules": TENANT_RULE},
    "validated": {"rules": TENANT_RULE},
    "raises": {},
    "headers": {},
    "stranger": {},
    "unwritable": {"rules": TENANT_RULE},
    "under-way": {},
}


@pytest.fixture(scope="module")
def kept_by_case(kafka_bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Quarantine]]:
    found = quarantining_proxy(kafka_bootstrap, tmp_path_factory.mktemp("keeping"), CASES)
    proxy = found["whole"].proxy
    try:
        proxy.start()
        yield found
    finally:
        proxy.stop()


@pytest.fixture
def own_quarantine(request: pytest.FixtureRequest, kept_by_case: dict[str, Quarantine]) -> Quarantine:
    """Return the topics for the case that the test names; no other test uses them."""
    found: Quarantine = kept_by_case[request.param]
    return found


def for_quarantine_case(name: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("own_quarantine", [name], indirect=True)


@for_quarantine_case("whole")
def test_a_replay_writes_dead_letters_back_after_a_dry_run(
    kafka_bootstrap: str, own_quarantine: Quarantine, tmp_path: Path
) -> None:
    now = now_ms()
    own = [(b"trace", b"1"), (b"trace", None), ("ä".encode(), b"")]
    own_quarantine.reject(
        1, [Rec(now * NANOSECONDS, b"k1", b"one", own), Rec(now, b"good", b"sent again by its producer")]
    )
    own_quarantine.reject(0, [Rec((now + 1) * NANOSECONDS, None, None), Rec(now + DAY, b"k2", b"from tomorrow")])
    out = tmp_path / "out"
    about = (
        "--bootstrap",
        kafka_bootstrap,
        "--topic",
        own_quarantine.dead,
        "--policies",
        str(own_quarantine.file),
        "--fix",
        "unit",
    )

    output = run("replay", *about, "--out", str(out))

    assert output.startswith(
        f"2 of 3 dead letters would be written back, 2 of them corrected: {own_quarantine.topic} 2.\n"
    )
    assert "1 remains where it is: timestamp_in_future 1; the table remaining gives the reasons.\n" in output
    assert "a dry run: nothing is written" in output
    assert any(
        f"timestamp {moment_and_ms(at * NANOSECONDS)} becomes {moment_and_ms(at)}" in output for at in (now, now + 1)
    )
    assert read_back(kafka_bootstrap, own_quarantine.topic) == []
    assert not summary(out)["applied"]

    run("replay", *about, "--out", str(out), "--apply")

    shown = [("trace", b"1"), ("trace", None), ("ä", b"")]
    back = [ConsumedRecord(0, now + 1, None, None, []), ConsumedRecord(1, now, b"k1", b"one", shown)]
    assert read_back(kafka_bootstrap, own_quarantine.topic) == back
    assert summary(out)["written_by_this_run"] == 2
    (remaining,) = summary(out)["remaining_records"]
    assert (remaining["topic"], remaining["to_topic"], remaining["to_partition"]) == (
        own_quarantine.dead,
        own_quarantine.topic,
        0,
    )
    assert (remaining["reason"], remaining["before"]) == ("timestamp_in_future", now + DAY)
    assert len(read_back(kafka_bootstrap, own_quarantine.dead)) == 3, "dead letters stay where they are"

    again = run("replay", *about, "--out", str(out), "--apply", "--json")

    found = json.loads(again[again.index("{") : again.rindex("}") + 1])
    assert (found["written_by_this_run"], found["remaining_by_earlier_runs"]) == (0, 1)
    assert read_back(kafka_bootstrap, own_quarantine.topic) == back


@for_quarantine_case("since")
def test_second_replay_without_folder_replays_only_newer_records(
    spark: SparkSession, kafka_bootstrap: str, own_quarantine: Quarantine, tmp_path: Path
) -> None:
    now = now_ms()
    for i in range(20):
        own_quarantine.reject(i % 2, [Rec((now + i) * NANOSECONDS, b"%d" % i, b"first %d" % i)])
    run_replay(spark, kafka_bootstrap, own_quarantine.dead, own_quarantine.file, tmp_path / "a", fix="unit")
    for i in range(10):
        own_quarantine.reject(i % 2, [Rec((now + i) * NANOSECONDS, b"%d" % i, b"second %d" % i)])

    found = run_replay(spark, kafka_bootstrap, own_quarantine.dead, own_quarantine.file, tmp_path / "b", fix="unit")

    assert found["written_by_this_run"] == 10
    back = read_back(kafka_bootstrap, own_quarantine.topic)
    sent = [b"first %d" % i for i in range(20)] + [b"second %d" % i for i in range(10)]
    assert Counter(each.value for each in back) == Counter(sent)
    assert all(each.partition == int(each.key or b"") % 2 for each in back)
    assert all(each.timestamp == now + int(each.key or b"") for each in back)


@for_quarantine_case("forgotten")
def test_replay_resumes_from_folder_if_committed_offsets_have_expired(
    spark: SparkSession, kafka_bootstrap: str, own_quarantine: Quarantine, tmp_path: Path
) -> None:
    """By default the offsets of a group expire a week after they were committed."""
    own_quarantine.reject(0, [Rec((now_ms() + i) * NANOSECONDS, b"%d" % i) for i in range(10)])
    run_replay(spark, kafka_bootstrap, own_quarantine.dead, own_quarantine.file, tmp_path, fix="unit")
    groups = groups_of(Topics(kafka_bootstrap, (own_quarantine.dead,)))
    admin = AdminClient({"bootstrap.servers": kafka_bootstrap})
    (deleted,) = admin.delete_consumer_groups([*groups.values()], request_timeout=120).values()
    deleted.result(130)

    found = run_replay(spark, kafka_bootstrap, own_quarantine.dead, own_quarantine.file, tmp_path, fix="unit")

    assert found["written_by_this_run"] == 0
    assert len(read_back(kafka_bootstrap, own_quarantine.topic)) == 10


@for_quarantine_case("deleted")
def test_a_replay_reports_dead_letters_that_were_deleted_before_it_read_them(
    spark: SparkSession, kafka_bootstrap: str, own_quarantine: Quarantine, tmp_path: Path
) -> None:
    now = now_ms()
    own_quarantine.reject(0, [Rec((now + i) * NANOSECONDS, b"k") for i in range(10)])
    run_replay(spark, kafka_bootstrap, own_quarantine.dead, own_quarantine.file, tmp_path, fix="unit")
    (group,) = groups_of(Topics(kafka_bootstrap, (own_quarantine.dead,))).values()
    reached = replay_progress(kafka_bootstrap, group, own_quarantine.dead, 3)
    own_quarantine.reject(0, [Rec((now + i) * NANOSECONDS, b"k") for i in range(10, 20)])
    (partition,) = (p for p, offset in enumerate(reached) if offset)
    admin = AdminClient({"bootstrap.servers": kafka_bootstrap})
    (deleted,) = admin.delete_records([TopicPartition(own_quarantine.dead, partition, reached[partition] + 4)]).values()
    deleted.result(60)

    found = plan_replay(spark, kafka_bootstrap, own_quarantine.dead, tmp_path / "plan", own_quarantine.file, fix="unit")

    place = f"{own_quarantine.dead}-{partition} was replayed up to offset {reached[partition]}"
    (warning,) = [each for each in found.warnings if each.startswith(place)]
    assert "dead letters at offsets 10 to 13 are gone" in warning
    assert found.summary["topics"][own_quarantine.dead]["replayed"] == 6


@for_quarantine_case("killed")
def test_a_killed_replay_writes_each_record_once_after_a_restart(
    spark: SparkSession, kafka_bootstrap: str, own_quarantine: Quarantine, tmp_path: Path
) -> None:
    now, count = now_ms(), 12_000
    for start in range(0, count, 3000):
        names = [(i, b"%d" % i) for i in range(start, start + 3000)]
        # Every hundredth record is a day ahead, which no unit explains, so it is not replayed.
        times = [now + DAY if i % 100 == 7 else (now + i) * NANOSECONDS for i, _ in names]
        records = [Rec(at, name, name, [(b"h", name)]) for at, (_, name) in zip(times, names, strict=True)]
        own_quarantine.reject(start // 3000 % 2, records)
    out = tmp_path / "out"
    about = (
        "--bootstrap",
        kafka_bootstrap,
        "--topic",
        own_quarantine.dead,
        "--policies",
        str(own_quarantine.file),
        "--fix",
        "unit",
    )
    replay = ("replay", *about, "--out", str(out), "--apply")
    (group,) = groups_of(Topics(kafka_bootstrap, (own_quarantine.dead,))).values()

    kill_once(lambda: any(replay_progress(kafka_bootstrap, group, own_quarantine.dead, 3)), tmp_path, *replay)

    reached = replay_progress(kafka_bootstrap, group, own_quarantine.dead, 3)
    assert 0 < sum(reached) < count
    run(*replay)

    back = read_back(kafka_bootstrap, own_quarantine.topic)
    good = {i for i in range(count) if i % 100 != 7}
    assert Counter(int(each.value or b"") for each in back) == dict.fromkeys(good, 1)
    assert all(each.headers == [("h", each.value)] for each in back)
    assert all(each.timestamp == now + int(each.value or b"") for each in back)
    assert summary(out)["written_by_this_run"] < len(good)
    remaining = spark.read.parquet(str(out / "remaining")).collect()
    assert len({(row["partition"], row["offset"]) for row in remaining}) == len(remaining) == count // 100


@for_quarantine_case("function")
def test_custom_function_corrects_records_and_remaining_records_are_listed(
    spark: SparkSession, kafka_bootstrap: str, own_quarantine: Quarantine, tmp_path: Path
) -> None:
    now = now_ms()
    own_quarantine.reject(
        0, [Rec(now, b"a", b'{"amount": 1}'), Rec(now, b"b", b"no json"), Rec(now, b"c", b'{"amount": 2}')]
    )

    found = run_replay(
        spark,
        kafka_bootstrap,
        own_quarantine.dead,
        own_quarantine.file,
        tmp_path / "out",
        by=f"{CORRECTIONS}:add_missing_tenant",
    )

    back = read_back(kafka_bootstrap, own_quarantine.topic)
    assert {each.key: json.loads(each.value or b"") for each in back} == {
        b"a": {"tenant": "a", "amount": 1},
        b"c": {"tenant": "a", "amount": 2},
    }
    assert len(back) == 2
    (remaining,) = found["remaining_records"]
    assert (remaining["reason"], remaining["kept_for"]) == ("omitted_by_function", "rule tenant")
    lies = read_back(kafka_bootstrap, own_quarantine.dead, remaining["partition"])[remaining["offset"]]
    assert (lies.key, lies.value) == (b"b", b"no json")


@for_quarantine_case("validated")
def test_invalid_correction_is_not_written(
    spark: SparkSession, kafka_bootstrap: str, own_quarantine: Quarantine, tmp_path: Path
) -> None:
    now = now_ms()
    own_quarantine.reject(0, [Rec(now, b"a", b'{"amount": 1}')])
    own_quarantine.reject(
        0, [Rec(now * NANOSECONDS, b"b", b'{"tenant": "b"}'), Rec(now * NANOSECONDS, b"c", b'{"amount": 2}')]
    )

    found = run_replay(
        spark,
        kafka_bootstrap,
        own_quarantine.dead,
        own_quarantine.policies(tmp_path, rules=TENANT_RULE),
        tmp_path / "out",
        fix="unit",
    )

    assert [each.key for each in read_back(kafka_bootstrap, own_quarantine.topic)] == [b"b"]
    assert {(row["kept_for"], row["reason"]): row["records"] for row in found["remaining"]} == {
        ("rule tenant", "rule tenant"): 1,
        ("timestamp_in_future", "rule tenant"): 1,
    }
    assert all("rule tenant" in row["reported"] for row in found["remaining"])


@for_quarantine_case("raises")
def test_an_error_of_a_custom_function_names_the_record_without_its_contents_and_writes_nothing(
    spark: SparkSession, kafka_bootstrap: str, own_quarantine: Quarantine, tmp_path: Path
) -> None:
    now = now_ms()
    own_quarantine.reject(1, [Rec(now * NANOSECONDS, b"k", b"secret %d" % i) for i in range(10)])
    where = rf"{own_quarantine.dead}-\d offset 7 \(for {own_quarantine.topic}-1\)"
    place = rf"{where}: {CORRECTIONS}:raise_for_one_record failed with KeyError"

    with pytest.raises(PySparkException, match=rf"{place} at corrections.py:\d+; fix") as raised:
        run_replay(
            spark,
            kafka_bootstrap,
            own_quarantine.dead,
            own_quarantine.file,
            tmp_path,
            by=f"{CORRECTIONS}:raise_for_one_record",
        )
    with pytest.raises(PySparkException, match="corrections:gives_text returned str, not a valid record"):
        run_replay(
            spark, kafka_bootstrap, own_quarantine.dead, own_quarantine.file, tmp_path, by=f"{CORRECTIONS}:gives_text"
        )

    assert "secret 7" not in str(raised.value)
    assert read_back(kafka_bootstrap, own_quarantine.topic) == []


def test_missing_custom_function_is_reported_before_output_folder_is_created(tmp_path: Path) -> None:
    file = tmp_path / "sluicegate.yaml"
    file.write_text("upstream: {bootstrap: ['127.0.0.1:9']}\nlisten: {bootstrap: '127.0.0.1:9', broker_port_base: 9}\n")
    about = ("--bootstrap", "127.0.0.1:9", "--topic", "t", "--policies", str(file), "--out", str(tmp_path / "out"))

    output = run("replay", *about, "--by", "nowhere.at_all:mend", status=1)

    assert output.startswith("sluicegate-spark: --by nowhere.at_all:mend: nowhere.at_all cannot be imported")
    assert not (tmp_path / "out").exists()


@for_quarantine_case("headers")
def test_replay_applies_fix_of_policy_file_and_keeps_proxy_headers_on_request(
    spark: SparkSession, kafka_bootstrap: str, own_quarantine: Quarantine, tmp_path: Path
) -> None:
    now = now_ms()
    own_quarantine.reject(0, [Rec(now * NANOSECONDS, b"k", b"v", [(b"a", b"1")])])
    fixing = own_quarantine.policies(
        tmp_path, fix={"timestamp": "unit"}, **{"message.timestamp.after.max.ms": 3_600_000}
    )

    run_replay(spark, kafka_bootstrap, own_quarantine.dead, fixing, tmp_path / "out", headers=Headers.ALL)

    (back,) = read_back(kafka_bootstrap, own_quarantine.topic)
    assert (back.timestamp, back.headers[0]) == (now, ("a", b"1"))
    report = dict(back.headers[1:])
    assert report["sluicegate.reason"] == b"timestamp_in_future"
    assert report["sluicegate.timestamp"] == str(now * NANOSECONDS).encode()


@for_quarantine_case("unwritable")
def test_unwritable_records_are_listed_as_remaining(
    spark: SparkSession, kafka_bootstrap: str, own_quarantine: Quarantine, tmp_path: Path
) -> None:
    now = now_ms()
    names = [b"\xff\xfe", b"a\0b", b"\xed\xa0\x80"]
    odd = [Rec(now, name, b'{"amount": 1}', [(name, b"1")]) for name in names]
    own_quarantine.reject(0, [*odd, Rec(0, b"zero", b'{"amount": 2}')])
    own_quarantine.reject(1, [Rec(now, b"plain", b'{"amount": 3}', [(b"", None), ("é".encode(), b"1")])])

    by = f"{CORRECTIONS}:add_missing_tenant"
    found = run_replay(spark, kafka_bootstrap, own_quarantine.dead, own_quarantine.file, tmp_path / "out", by=by)

    header, zero = "a header name that is not UTF-8 or contains a zero byte", "a timestamp of 0"
    assert [(row["reason"], row["reported"]) for row in found["remaining_records"]] == [
        ("unwritable_record", f"client libraries cannot write {each}") for each in (header, header, header, zero)
    ]
    assert found["written_by_this_run"] == 1
    (back,) = read_back(kafka_bootstrap, own_quarantine.topic)
    assert (back.partition, back.key, back.headers) == (1, b"plain", [("", None), ("é", b"1")])


@for_quarantine_case("stranger")
def test_records_without_proxy_headers_are_listed_as_remaining(
    spark: SparkSession, kafka_bootstrap: str, own_quarantine: Quarantine, tmp_path: Path
) -> None:
    write_foreign_records(kafka_bootstrap, own_quarantine.dead)

    found = run_replay(spark, kafka_bootstrap, own_quarantine.dead, own_quarantine.file, tmp_path / "out", fix="unit")

    assert [row["reason"] for row in found["remaining_records"]] == ["not_a_dead_letter"]
    assert read_back(kafka_bootstrap, own_quarantine.topic) == []


@for_quarantine_case("under-way")
def test_dry_run_does_not_disturb_running_replay(
    spark: SparkSession, kafka_bootstrap: str, own_quarantine: Quarantine, tmp_path: Path
) -> None:
    own_quarantine.reject(0, [Rec(now_ms() * NANOSECONDS, b"k", b"v")])
    topics = Topics(kafka_bootstrap, (own_quarantine.dead,))
    question = replay_request_of(own_quarantine.file, "unit", None)
    work = job.applied_work(spark, topics, Results(spark, str(tmp_path / "a")), question)
    listing = job.list_decisions(spark, work)

    job.list_decisions(spark, job.dry_run_work(spark, topics, Results(spark, str(tmp_path / "b")), question))

    assert [each.records for each in job.write_listed(spark, work, listing)] == [1]


def write_foreign_records(bootstrap: str, topic: str) -> None:
    """Write records of another client into a dead-letter topic."""
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(topic, b"mine", partition=0)
    assert producer.flush(60) == 0
