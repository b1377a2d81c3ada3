"""Violation events have the right content, and their writer never waits, never stops and never tears a line."""

import json
import os
import subprocess
import sys
import textwrap
import threading
import time
from dataclasses import replace
from fcntl import LOCK_EX, LOCK_UN, flock
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from sluicegate.config.teams import Owner
from sluicegate.protocol.errors import ErrorCode
from sluicegate.proxy.reporting.bounded_text import cut
from sluicegate.proxy.reporting.events.violation_event import (
    EventOrigin,
    RehearsalEvent,
    ViolationEvent,
    event_of,
    violation_event,
)
from sluicegate.proxy.reporting.events.violation_writer import EventFile, ViolationFile
from sluicegate.proxy.reporting.metrics.counters import Counters
from sluicegate.proxy.reporting.write_health import WriteHealth
from sluicegate.proxy.session.client.client_details import ClientDetails, client_details
from sluicegate.proxy.session.client.identity import ClientIdentity
from sluicegate.proxy.session.produce.batch_outcome import BatchOutcome, ReportedFinding
from sluicegate.validation.cluster_settings import AFTER_MAX, BEFORE_MAX
from sluicegate.validation.from_keys import rulebook_of
from sluicegate.validation.outcome import Outcome
from sluicegate.validation.policy import TopicPolicy
from sluicegate.validation.rules.rule import Mode
from sluicegate.validation.timestamps import RehearsedBound
from sluicegate.validation.validated_request import ValidationBasis
from sluicegate.validation.verdict import BadRecord, Beginning, Finding, Reason, RecordSample
from tests.broker.eventually import eventually
from tests.config.reading import SMALLEST, load_text

NOW = 1_800_000_000_000
HELD_TO = ValidationBasis(TopicPolicy(before_max_ms=1000, after_max_ms=2000), NOW)
UNBOUNDED = 1 << 40
ORIGIN = EventOrigin("proxy:9092", "a-1")
REHEARSAL = RehearsalEvent(
    client_details(ClientIdentity("p", "c")),
    BatchOutcome("payments", None, 3, 9, 100, Outcome.ACCEPTED, 0),
    ((RehearsedBound(BEFORE_MAX, 10), 4), (RehearsedBound(AFTER_MAX, 60_000), 2)),
    NOW,
    ORIGIN,
)


def finding_with_bad_records(count: int) -> Finding:
    bad = [BadRecord(i, NOW * 1_000_000, Reason.TIMESTAMP_IN_FUTURE, "text") for i in range(count)]
    return Finding(ErrorCode.INVALID_TIMESTAMP, Reason.TIMESTAMP_IN_FUTURE, "message", tuple(bad), count, records=99)


def rejected_batch(topic: str, partition: int) -> BatchOutcome:
    """A rejected batch."""
    return BatchOutcome(topic, None, partition, 99, 500, Outcome.REJECTED, ErrorCode.INVALID_TIMESTAMP, basis=HELD_TO)


def one_violation(partition: int = 0, client_id: str = "c", topic: str = "t", bad: int = 1) -> ViolationEvent:
    client = client_details(ClientIdentity("127.0.0.1:5", client_id))
    return violation_event(
        client,
        rejected_batch(topic, partition),
        ReportedFinding(Mode.REJECT, finding_with_bad_records(bad)),
        ORIGIN,
        max_records=10,
    )


def violation_file_at(
    path: Path,
    counters: Counters,
    queue_size: int = 10_000,
    max_file_bytes: int = UNBOUNDED,
    health: WriteHealth | None = None,
) -> ViolationFile:
    return ViolationFile(path, queue_size, max_file_bytes, counters, WriteHealth() if health is None else health)


def partitions_in(path: Path) -> list[int]:
    """Return the partitions of a file's events, in order; every line must be complete."""
    return [json.loads(line)["partition"] for line in path.read_text().split("\n")[:-1]]


def test_event_contains_client_verdict_and_reason() -> None:
    identity = ClientIdentity("127.0.0.1:5", "billing", "apache-kafka-java", "4.3.1", "User:alice")
    finding = ReportedFinding(Mode.REJECT, finding_with_bad_records(25))
    kept = violation_event(client_details(identity), rejected_batch("payments", 3), finding, ORIGIN, max_records=2)
    identity.client_id = identity.principal = "what it says later"

    assert event_of(kept) == {
        "schema_version": 1,
        "id": "a-1",
        "proxy": "proxy:9092",
        "time": "2027-01-15T08:00:00.000+00:00",
        "client_id": "billing",
        "software_name": "apache-kafka-java",
        "software_version": "4.3.1",
        "principal": "User:alice",
        "client_address": "127.0.0.1:5",
        "topic": "payments",
        "topic_id": None,
        "partition": 3,
        "owner": None,
        "outcome": "rejected",
        "client_error": "INVALID_TIMESTAMP",
        "mode": "reject",
        "changes": [],
        "copies": None,
        "waiver": None,
        "code": 32,
        "error": "INVALID_TIMESTAMP",
        "reason": "timestamp_in_future",
        "reason_text": "timestamp too far in the future",
        "message": "message",
        "records": 99,
        "bad_records": 25,
        "samples": [
            {
                "index": i,
                "timestamp": NOW * 1_000_000,
                "reason": "timestamp_in_future",
                "earliest": NOW - 1000,
                "latest": NOW + 2000,
                "diagnosis": "looks like nanoseconds: as milliseconds it is 0.0 s ago",
            }
            for i in range(2)
        ],
        "bound": {
            "key": "message.timestamp.after.max.ms",
            "value": 2000,
            "source": "sluicegate default",
            "place": None,
            "path": None,
        },
    }


def test_an_event_names_the_owner_of_the_topic() -> None:
    owned = ValidationBasis(replace(HELD_TO.policy, owner=Owner(team="billing", contact="x" * 1000)), NOW)

    assert event_of(one_violation()._replace(basis=owned))["owner"] == {"team": "billing", "contact": cut("x" * 1000)}
    assert event_of(REHEARSAL._replace(policy=owned.policy))["owner"]["team"] == "billing"
    assert event_of(REHEARSAL)["owner"] is None


CLIENT_OWNERS = """
client_owners:
  - {principal: "User:billing-*", owner: {team: billing}}
  - {client_id: "shop-*", owner: {team: shop, contact: "#shop"}}
topics: [{match: orders, owner: {team: orders}}]
"""


@pytest.mark.parametrize(
    ("topic", "client_id", "principal", "is_verified", "team"),
    [
        ("plain", "shop-1", "User:billing-1", True, "billing"),
        ("plain", "shop-1", "User:billing-1", False, "shop"),
        ("plain", "shop-1", None, True, "shop"),
        ("plain", None, None, True, None),
        ("orders", "shop-1", None, True, "orders"),
    ],
)
def test_event_names_client_owner_if_topic_has_no_owner(
    topic: str, client_id: str | None, principal: str | None, is_verified: bool, team: str | None
) -> None:
    policy = rulebook_of(load_text(SMALLEST + CLIENT_OWNERS).config).policy_of(topic)
    client = ClientDetails("127.0.0.1:5", client_id, None, None, principal, is_verified)

    event = event_of(one_violation()._replace(client=client, basis=ValidationBasis(policy, NOW)))

    assert (None if event["owner"] is None else event["owner"]["team"]) == team
    of_client = event.get("client_owner", {}).get("team")
    assert of_client == ("shop" if topic == "orders" else team)


@pytest.mark.parametrize(
    ("part", "shown"),
    [
        (None, None),
        (Beginning(b"", 0), {"size": 0, "text": ""}),
        (Beginning("né\u20ac".encode(), 6), {"size": 6, "text": "né\u20ac"}),
        (Beginning(b"\x1b[2J\n\x9b\x00", 7), {"size": 7, "text": r"\x1b[2J\n\x9b\x00"}),
        (Beginning("\u202eabc\u2028".encode(), 9), {"size": 9, "text": r"\u202eabc\u2028"}),
        (Beginning(b"\\n \xff\xed\xa0\x80", 7), {"size": 7, "text": r"\\n \xff\xed\xa0\x80"}),
        (Beginning(b"cut off within: \xe2\x82", 90), {"size": 90, "text": "cut off within: "}),
        (Beginning(b"ends within: \xe2\x82", 15), {"size": 15, "text": r"ends within: \xe2\x82"}),
    ],
)
def test_record_samples_are_printable_text(part: Beginning | None, shown: object) -> None:
    bad = BadRecord(0, NOW, Reason.NULL_KEY, "text", contents=RecordSample(part, None))
    kept = one_violation()._replace(bad_records=(bad,))

    sample = event_of(kept)["samples"][0]

    assert (sample["key"], sample["value"]) == (shown, None)
    assert kept.size > one_violation()._replace(bad_records=(BadRecord(0, NOW, Reason.NULL_KEY, "text"),)).size


def test_violations_page_names_every_event_field() -> None:
    text = (Path(__file__).parents[4] / "docs" / "violations.md").read_text()
    event, tried = event_of(one_violation()), event_of(REHEARSAL)
    assert all(f"`{name}`" in text for name in [*event, *event["samples"][0], *tried, *tried["rehearsed"][0]])


def test_rehearsal_event_counts_bad_records_per_bound() -> None:
    event = event_of(REHEARSAL)

    assert (event["mode"], event["client_id"], event["topic"], event["records"]) == ("rehearse", "c", "payments", 9)
    assert event["rehearsed"] == [
        {"key": "message.timestamp.before.max.ms", "max_ms": 10, "bad_records": 4},
        {"key": "message.timestamp.after.max.ms", "max_ms": 60_000, "bad_records": 2},
    ]
    assert event["bad_records"] == 4


def test_event_lists_limited_number_of_bad_records_and_counts_all() -> None:
    finding = ReportedFinding(Mode.REJECT, finding_with_bad_records(1000))
    kept = violation_event(client_details(ClientIdentity("p")), rejected_batch("t", 0), finding, ORIGIN, max_records=10)

    assert len(kept.bad_records) == 10
    assert event_of(kept)["bad_records"] == 1000


def test_any_client_text_is_written_as_one_short_ascii_line(tmp_path: Path) -> None:
    counters = Counters()
    sink = violation_file_at(tmp_path / "v.jsonl", counters)
    texts = ["\ud800", "\udfff\ud800", "\x9b31m", "\u2028\u2029", "a\nb\r", "\x00\x1b", "x" * 1_000_000, "\U0001f600"]
    for partition, text in enumerate(texts):
        sink.write(one_violation(partition, client_id=text, topic=text))
    sink.close()

    data = (tmp_path / "v.jsonl").read_bytes()
    assert data.isascii()
    assert data.decode().isprintable() or set(data.decode()) - {"\n"} <= set(map(chr, range(32, 127)))
    assert partitions_in(tmp_path / "v.jsonl") == list(range(len(texts)))
    assert len(data) < 20_000
    assert (counters.violation_events_dropped, counters.violation_events_failed) == (0, 0)


def test_event_that_cannot_be_encoded_is_counted_and_next_events_are_written(tmp_path: Path) -> None:
    counters = Counters()
    sink = violation_file_at(tmp_path / "v.jsonl", counters)
    sink.write(one_violation(0)._replace(reason=None))
    sink.write(one_violation(1))
    sink.close()

    assert partitions_in(tmp_path / "v.jsonl") == [1]
    assert counters.violation_events_failed == 1


def test_events_are_written_to_new_file_after_rename(tmp_path: Path) -> None:
    path = tmp_path / "violations.jsonl"
    sink = violation_file_at(path, Counters())
    sink.write(one_violation(1))
    eventually(lambda: path.read_text().count("\n") == 1)
    path.rename(tmp_path / "old.jsonl")
    sink.write(one_violation(2))
    sink.close()

    assert partitions_in(path) == [2]
    assert partitions_in(tmp_path / "old.jsonl") == [1]


def test_a_full_queue_drops_events_and_counts_them(tmp_path: Path) -> None:
    counters = Counters()
    sink = violation_file_at(tmp_path / "v.jsonl", counters, queue_size=1)
    for _ in range(5000):
        sink.write(one_violation())
    sink.close()

    assert len(partitions_in(tmp_path / "v.jsonl")) + counters.violation_events_dropped == 5000
    assert counters.violation_events_dropped > 0


def test_event_queue_is_bounded_in_bytes(tmp_path: Path) -> None:
    counters = Counters()
    sink = violation_file_at(tmp_path / "v.jsonl", counters, queue_size=1_000_000)
    with (tmp_path / "v.jsonl").open("rb") as other:
        flock(other, LOCK_EX)
        large = one_violation()._replace(message="m" * 4000)
        for _ in range(5000):
            sink.write(large)
        flock(other, LOCK_UN)
    sink.close()

    assert counters.violation_events_dropped > 2000


def test_removed_folder_is_reported_as_failing_destination_until_next_write(tmp_path: Path) -> None:
    seconds = 100.0
    health = WriteHealth(lambda: seconds)
    folder, counters = tmp_path / "folder", Counters()
    folder.mkdir()
    path = folder / "violations.jsonl"
    file = violation_file_at(path, counters, health=health)
    path.unlink()
    folder.rmdir()
    file.write(one_violation())
    eventually(lambda: bool(health.failing()), what="a failure")
    (found,) = health.failing().items()
    assert (found[0], found[1].reason) == (f"violations.file {path}", "No such file or directory")

    folder.mkdir()
    seconds += 10
    file.write(one_violation())
    eventually(lambda: health.failing() == {}, what="the end of the failure")
    file.close()
    assert counters.violation_events_failed == 1


def test_writer_continues_after_deleted_folder_is_recreated(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    counters = Counters()
    sink = violation_file_at(folder / "v.jsonl", counters)
    (folder / "v.jsonl").unlink()
    folder.rmdir()
    with capture_logs() as lines:
        for _ in range(20):
            sink.write(one_violation(1))
        eventually(lambda: counters.violation_events_failed == 20)
    folder.mkdir()
    sink.write(one_violation(2))
    sink.close()

    assert partitions_in(folder / "v.jsonl") == [2]
    assert [(line["reason"], line["log_level"]) for line in lines] == [("No such file or directory", "error")]


def run_with_file_size_limit(path: Path, room: int, body: str) -> dict[str, Any]:
    """Run `body` in a process whose files may have at most `room` bytes, as on a full disk; return its JSON output."""
    program = f"""
        import json, resource, sys
        from pathlib import Path
        from sluicegate.proxy.reporting.metrics.counters import Counters
        from tests.broker.eventually import eventually
        from tests.proxy.reporting.events.test_violation_writer import one_violation, violation_file_at
        def room(size): resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
        path, counters = Path({str(path)!r}), Counters()
        sink = violation_file_at(path, counters)
        room({room})
        {textwrap.indent(textwrap.dedent(body), " " * 8).strip()}
        sink.close()
        print(json.dumps({{"failed": counters.violation_events_failed, "dropped": counters.violation_events_dropped}}))
        """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        check=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[4]), *sys.path])},
        timeout=60,
    )
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def test_a_full_disk_corrupts_no_line_and_counts_lost_events(tmp_path: Path) -> None:
    path = tmp_path / "v.jsonl"
    body = """
    for n in range(50): sink.write(one_violation(n))
    eventually(lambda: counters.violation_events_failed)
    eventually(lambda: counters.violation_events_failed + path.read_bytes().count(b"\\n") == 50)
    room(resource.RLIM_INFINITY)
    sink.write(one_violation(1000))
    """
    told = run_with_file_size_limit(path, 5000, body)

    written = partitions_in(path)
    assert written == [*range(len(written) - 1), 1000]
    assert told == {"failed": 51 - len(written), "dropped": 0}
    assert len(written) > 5


def test_next_event_starts_new_line_if_partial_line_cannot_be_removed(tmp_path: Path) -> None:
    """In a file that only allows appending, the partial line stays, and the next event starts a new line."""
    path = tmp_path / "v.jsonl"
    body = """
    import os, errno
    def rejects(*_): raise OSError(errno.EPERM, "only appending is allowed")
    os.ftruncate = rejects
    for n in range(50): sink.write(one_violation(n))
    failed = lambda: counters.violation_events_failed
    eventually(lambda: failed() and failed() + path.read_bytes().count(b"\\n") == 50)
    room(resource.RLIM_INFINITY)
    sink.write(one_violation(1000))
    """
    run_with_file_size_limit(path, 5000, body)

    *whole, piece, last = path.read_text().split("\n")[:-1]
    assert all(json.loads(line) for line in whole)
    assert json.loads(last)["partition"] == 1000
    with pytest.raises(json.JSONDecodeError):
        json.loads(piece)


def test_partial_line_of_another_process_is_terminated_before_next_event(tmp_path: Path) -> None:
    path = tmp_path / "v.jsonl"
    path.write_text('{"schema_version": 1, "ti')
    sink = violation_file_at(path, Counters())
    sink.write(one_violation(1))
    sink.close()

    piece, line = path.read_text().splitlines()
    assert piece == '{"schema_version": 1, "ti'
    assert json.loads(line)["partition"] == 1


def test_full_event_file_is_renamed_and_replaces_previous_one(tmp_path: Path) -> None:
    path, before = tmp_path / "v.jsonl", tmp_path / "v.jsonl.1"
    sink = violation_file_at(path, Counters(), max_file_bytes=2000)
    for n in range(100):
        sink.write(one_violation(n))
    sink.close()

    kept = [*partitions_in(before), *partitions_in(path)]
    assert kept == list(range(kept[0], 100))
    assert 2000 <= before.stat().st_size < 3000
    assert path.stat().st_size < 3000
    assert sorted(file.name for file in tmp_path.iterdir()) == ["v.jsonl", "v.jsonl.1"]


def test_concurrent_writers_rotate_event_file_without_losing_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test keeps all renamed files, which would otherwise replace each other, to count all events."""
    aside: list[Path] = []
    numbers = count()  # one file per process, even if two processes rename at the same time

    def replace(path: Path, target: str) -> Path:
        aside.append(path.rename(f"{target}.{next(numbers)}"))
        return aside[-1]

    monkeypatch.setattr(Path, "replace", replace)
    monkeypatch.setattr(
        "sluicegate.proxy.reporting.whole_lines._LOCK_SECONDS", 60
    )  # the test does not depend on the speed of the processes
    monkeypatch.setattr("sluicegate.proxy.reporting.events.violation_writer._AT_THE_END_SECONDS", 60)
    several = [Counters() for _ in range(4)]
    sinks = [violation_file_at(tmp_path / "v.jsonl", counters, max_file_bytes=20_000) for counters in several]
    threads = [
        threading.Thread(target=lambda sink=sink: [sink.write(one_violation(n)) for n in range(500)]) for sink in sinks
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for sink in sinks:
        sink.close()

    files = [*aside, tmp_path / "v.jsonl"]
    assert sorted(n for file in files for n in partitions_in(file)) == sorted([*range(500)] * 4)
    assert all(20_000 <= file.stat().st_size < 21_000 for file in aside)
    assert not any(counters.violation_events_failed or counters.violation_events_dropped for counters in several)


def test_close_waits_at_most_five_seconds_for_hanging_disk(tmp_path: Path) -> None:
    """A pipe that nobody reads stands for the disk."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    counters = Counters()
    sink = violation_file_at(path, counters)
    for n in range(3000):
        sink.write(one_violation(n))

    begin = time.monotonic()
    sink.close()

    assert time.monotonic() - begin < 5
    assert counters.violation_events_failed > 0
    os.close(reader)


def test_pipe_without_reader_is_rejected_at_start(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="No such device"):
        violation_file_at(tmp_path / "pipe", Counters())


def test_events_are_dropped_and_logged_while_another_process_locks_the_file(tmp_path: Path) -> None:
    counters = Counters()
    path = tmp_path / "v.jsonl"
    sink = violation_file_at(path, counters)
    with path.open("rb") as stranger, capture_logs() as lines:
        flock(stranger, LOCK_EX)
        sink.write(one_violation(1))
        eventually(lambda: counters.violation_events_failed == 1 and lines)
        flock(stranger, LOCK_UN)
    sink.write(one_violation(2))
    sink.close()

    assert partitions_in(path) == [2]
    assert "another process holds the file's lock" in [line.get("reason") for line in lines]


def test_other_users_cannot_read_the_event_file(tmp_path: Path) -> None:
    path = tmp_path / "violations.jsonl"
    before = os.umask(0)
    try:
        EventFile(path, 1000).close()
    finally:
        os.umask(before)

    assert path.stat().st_mode & 0o777 == 0o640
