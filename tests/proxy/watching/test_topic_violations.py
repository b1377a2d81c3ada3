"""`sluicegate who` reads event files, including damaged ones."""

import json
from pathlib import Path

import pytest

from sluicegate.config.teams import Owner
from sluicegate.proxy.live.live_state import ViolationGroupState
from sluicegate.proxy.live.live_view import LiveView
from sluicegate.proxy.reporting.events.violation_event import ViolationEvent, event_of
from sluicegate.proxy.reporting.metrics.counters import Counters
from sluicegate.proxy.watching.topic_violations import EventsUnreadable, lines_about, read_files
from sluicegate.proxy.watching.violation_counts import EventSelection, RecordedGroup, ViolationCounts
from sluicegate.validation.policy import TopicPolicy
from sluicegate.validation.requests.name_pattern import EnforcedClients, NamePattern, OwnedClients
from sluicegate.validation.rules.rule import Mode
from sluicegate.validation.validated_request import ValidationBasis
from sluicegate.validation.verdict import Reason
from tests.proxy.live.events import NOW, rejected_event

EVERYTHING = EventSelection()
KNOWN = "since 2027-01-15T07:00:00Z (event files)"
EVENTS = [
    rejected_event("billing"),
    rejected_event("billing", now_ms=NOW + 5000),
    rejected_event("billing", reason=Reason.NULL_KEY, mode=Mode.OBSERVE),
    rejected_event("billing", topic="another"),
    rejected_event(None, now_ms=NOW - 3_600_000, timestamp=0, reason=Reason.TIMESTAMP_TOO_OLD),
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "violations.jsonl"
    file.write_text("".join(json.dumps(event_of(event)) + "\n" for event in EVENTS))
    return file


def groups_of_topic(topic: str, *files: Path) -> list[RecordedGroup]:
    counts = ViolationCounts(EventSelection(topic))
    read_files(counts, files)
    return counts.groups()


def counted_groups(
    *events: ViolationEvent, wanted: EventSelection = EVERYTHING, ids: set[str] | None = None
) -> list[RecordedGroup]:
    counts = ViolationCounts(wanted, ids)
    for event in events:
        counts.take(json.dumps(event_of(event)).encode())
    return counts.groups()


def test_lines_show_reasons_times_and_an_example_for_each_client(file: Path) -> None:
    assert list(lines_about("payments", groups_of_topic("payments", file), KNOWN)) == [
        "payments: 2 clients with violations since 2027-01-15T07:00:00Z (event files)",
        "billing (lib 1.0, 192.0.2.1:5)",
        "  timestamp_in_future: 2 batches, 10 bad records, 2027-01-15T08:00:00Z to 2027-01-15T08:00:05Z; rejected",
        "    example: partition 0, record 3, timestamp 1800000000000000000: looks like nanoseconds: as milliseconds it "
        "is 5.0 s ago",
        "  null_key: 1 batch, 5 bad records, 2027-01-15T08:00:00Z to 2027-01-15T08:00:00Z; accepted",
        "    example: partition 0, record 3: null_key",
        "(no client id) (lib 1.0, 192.0.2.1:5)",
        "  timestamp_too_old: 1 batch, 5 bad records, 2027-01-15T07:00:00Z to 2027-01-15T07:00:00Z; rejected",
        "    example: partition 0, record 3, timestamp 0: is 0, probably never set",
    ]


def test_batches_that_full_enforcement_would_also_reject_are_counted() -> None:
    basis = ValidationBasis(TopicPolicy(mode=Mode.OBSERVE, enforced=EnforcedClients((), 10)), NOW)
    spared = rejected_event("shipping", mode=Mode.OBSERVE)._replace(basis=basis)
    groups = _violation_groups(rejected_event("billing"), spared, spared)

    lines = list(lines_about("payments", groups, KNOWN))

    assert lines[0] == f"payments: 2 clients with violations {KNOWN}"
    assert lines[1] == "  full enforcement would also reject or fix 2 batches, of 1 of these clients (enforce)"


def test_lines_name_the_client_owner_even_if_the_topic_has_another_owner(tmp_path: Path) -> None:
    owned = OwnedClients(None, NamePattern("bill*"), Owner(team="billing\n", contact="#billing"))
    basis = ValidationBasis(TopicPolicy(owner=Owner(team="payments"), client_owners=(owned,)), NOW)
    events = [rejected_event("billing")._replace(basis=basis), rejected_event("shipping")._replace(basis=basis)]
    (file := tmp_path / "e").write_text("".join(json.dumps(event_of(event)) + "\n" for event in events))

    lines = list(lines_about("payments", _violation_groups(*events), KNOWN))

    assert lines[1] == "billing (lib 1.0, 192.0.2.1:5), owner: billing\\n (#billing)"
    assert lines[4] == "shipping (lib 1.0, 192.0.2.1:5)"
    assert lines == list(lines_about("payments", groups_of_topic("payments", file), KNOWN))


def test_event_file_and_running_proxy_give_the_same_lines(file: Path) -> None:
    of_live = [group for group in _violation_groups(*EVENTS) if group["topic"] == "payments"]

    of_file = groups_of_topic("payments", file)

    assert list(lines_about("payments", of_file, KNOWN)) == list(lines_about("payments", of_live, KNOWN))


def test_lines_that_are_not_events_are_skipped_and_counted(file: Path) -> None:
    with file.open("a") as lines:
        lines.write(
            '{"schema_version": 1, "topic": "payments", "ti\n\n[1]\nnull\n{"topic": "payments", "schema_version": 1}\n'
        )
        lines.write(json.dumps({**event_of(EVENTS[0]), "schema_version": 2}) + "\n")
        lines.write("[" * 100_000 + "\n")

    reading = ViolationCounts(EventSelection("payments"))
    read_files(reading, [file, file])

    assert sum(one["batches"] for one in reading.groups()) == 8
    assert reading.skipped == 10


def test_who_command_escapes_control_sequences_in_names(tmp_path: Path) -> None:
    name = "x\x1b[31m\u202egnp.exe\n"
    lines = list(lines_about(name, _violation_groups(rejected_event(name, name)), KNOWN))

    assert all(line.isprintable() for line in lines)


def _violation_groups(*events: ViolationEvent) -> list[ViolationGroupState]:
    view = LiveView(Counters(), None, NOW)
    for event in events:
        view.write(event)
    return view.violation_groups.state(10)


def test_a_topic_without_violations_is_reported(file: Path) -> None:
    (line,) = lines_about("quiet", groups_of_topic("quiet", file), KNOWN)

    assert line == f"quiet: no violations recorded {KNOWN}"


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(EventsUnreadable, match=r"nowhere\.jsonl cannot be read: No such file"):
        groups_of_topic("t", tmp_path / "nowhere.jsonl")


def test_events_are_counted_by_owner_and_rule_and_filtered_by_both() -> None:
    owned = ValidationBasis(TopicPolicy(owner=Owner(team="payments")), NOW)
    ruled = rejected_event("billing", reason=Reason.RULE_VIOLATED)._replace(basis=owned, rules=(("amount", 3),))

    def group_rows(wanted: EventSelection, ids: set[str] | None = None) -> list[tuple[str, str | None, int]]:
        groups = counted_groups(ruled, ruled, rejected_event("billing"), wanted=wanted, ids=ids)
        return [(group["reason"], group["rule"], group["batches"]) for group in groups]

    of_rule, of_bound = ("rule_violated", "amount", 2), ("timestamp_in_future", None, 1)
    assert group_rows(EventSelection()) == [of_rule, of_bound]
    for wanted in (
        EventSelection(owner="payments"),
        EventSelection(rule="amount"),
        EventSelection(rule="rule_violated"),
    ):
        assert group_rows(wanted) == [of_rule]
    assert group_rows(EventSelection(rule="timestamp_in_future", topic="payments", client="billing")) == [of_bound]
    assert group_rows(EventSelection(client="shipping")) == group_rows(EventSelection(owner="nobody")) == []
    assert group_rows(EventSelection(rule="amount"), set()) == [
        ("rule_violated", "amount", 1)
    ]  # a record that occurs twice
