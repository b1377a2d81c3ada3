"""Violation events: what they say, and that writing them never waits."""

import json
from pathlib import Path

from protocol.errors import ErrorCode
from proxy.identity import ClientIdentity
from proxy.metrics import Tally
from proxy.violations import ViolationFile, violation_event
from tests.broker.eventually import eventually
from validation.policy import TopicPolicy
from validation.verdict import BadRecord, Reason, Refused

NOW = 1_800_000_000_000
POLICY = TopicPolicy(before_max_ms=1000, after_max_ms=2000)


def refused(count: int) -> Refused:
    bad = [BadRecord(i, NOW * 1_000_000, Reason.TIMESTAMP_AFTER, "text") for i in range(count)]
    return Refused(ErrorCode.INVALID_TIMESTAMP, Reason.TIMESTAMP_AFTER, "message", tuple(bad), records=99)


def test_an_event_says_who_what_and_why() -> None:
    identity = ClientIdentity("127.0.0.1:5", "billing", "apache-kafka-java", "4.3.1", "User:alice")

    event = violation_event(identity, "payments", None, 3, refused(25), POLICY, NOW, max_records=2)

    assert event == {
        "version": 1,
        "time": "2027-01-15T08:00:00.000+00:00",
        "client_id": "billing",
        "software_name": "apache-kafka-java",
        "software_version": "4.3.1",
        "principal": "User:alice",
        "peer": "127.0.0.1:5",
        "topic": "payments",
        "topic_id": None,
        "partition": 3,
        "code": 32,
        "error": "INVALID_TIMESTAMP",
        "reason": "timestamp too far ahead",
        "message": "message",
        "records": 99,
        "bad_records": 25,
        "samples": [
            {
                "index": i,
                "timestamp": NOW * 1_000_000,
                "reason": "timestamp too far ahead",
                "earliest": NOW - 1000,
                "latest": NOW + 2000,
                "diagnosis": "looks like nanoseconds: as milliseconds it is 0.0 s ago",
            }
            for i in range(2)
        ],
    }


def test_the_document_names_every_field() -> None:
    text = (Path(__file__).parents[2] / "docs" / "violations.md").read_text()
    event = violation_event(ClientIdentity("p"), "t", None, 0, refused(1), POLICY, NOW, max_records=1)
    assert all(f"`{name}`" in text for name in [*event, *event["samples"][0]])
    assert all(reason.value in text for reason in Reason)


def test_events_are_lines_of_a_file_that_may_be_moved_away(tmp_path: Path) -> None:
    path = tmp_path / "violations.jsonl"
    sink = ViolationFile(path, 10, Tally())
    sink.write({"n": 1})
    eventually(lambda: path.read_text().count("\n") == 1)
    path.rename(tmp_path / "old.jsonl")
    sink.write({"n": 2})
    sink.close()

    assert [json.loads(line) for line in path.read_text().splitlines()] == [{"n": 2}]
    assert (tmp_path / "old.jsonl").read_text() == '{"n": 1}\n'


def test_a_full_queue_drops_and_counts(tmp_path: Path) -> None:
    tally = Tally()
    sink = ViolationFile(tmp_path / "v.jsonl", 1, tally)
    written = 5000
    for _ in range(written):
        sink.write({"padding": "x" * 1000})
    sink.close()

    lines = len((tmp_path / "v.jsonl").read_text().splitlines())
    assert lines + tally.violations_dropped == written


def test_a_folder_that_goes_away_loses_events_but_not_the_writer(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    tally = Tally()
    sink = ViolationFile(folder / "v.jsonl", 10, tally)
    (folder / "v.jsonl").unlink()
    folder.rmdir()
    sink.write({"n": 1})
    eventually(lambda: tally.violations_dropped == 1)
    folder.mkdir()
    sink.write({"n": 2})
    sink.close()

    assert json.loads((folder / "v.jsonl").read_text()) == {"n": 2}
