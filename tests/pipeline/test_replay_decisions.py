"""The proxy's own configuration decides each dead letter."""

from dataclasses import replace
from typing import Any

import pytest

from sluicegate.config.files.yaml_source import read_yaml
from sluicegate.config.loading import load
from sluicegate.config.topics import Fix
from sluicegate.pipeline.jobs.replay.dead_letter import DeadLetter, ReplayRecord
from sluicegate.pipeline.jobs.replay.decisions import (
    FunctionFails,
    RemainingLetter,
    ReplayDecider,
    Replayed,
    Validation,
)
from sluicegate.pipeline.jobs.replay.request import replay_policies
from sluicegate.pipeline.kafka.cluster import TopicPartition
from sluicegate.validation.cluster_settings import ClusterSettings

NOW = 1_790_000_000_000
HOUR = 3_600_000
FILE = """
upstream: {bootstrap: ["kafka:9092"]}
listen: {bootstrap: "127.0.0.1:19092"}
"""
QUARANTINED = FILE + "topics: [{match: orders, message.timestamp.after.max.ms: 1h, quarantine: dead}]\n"
LETTER = DeadLetter(
    TopicPartition("dead", 0),
    40,
    "orders",
    1,
    ReplayRecord(NOW * 1_000_000, b"k", b"v", (("a", None),)),
    "timestamp_in_future",
    (),
    (),
)


def decision_of(
    letter: DeadLetter = LETTER,
    text: str = QUARANTINED,
    fix: Any = None,
    by: str | None = None,
    settings: ClusterSettings | None = None,
) -> Replayed | RemainingLetter:
    config = load(read_yaml(text, "sluicegate.yaml"), {}).config
    report = {} if settings is None else {"orders": settings}
    policies = replay_policies(config, report, None if fix is None else Fix(timestamp=fix))
    return ReplayDecider(Validation(policies, {"orders": 3}, by, NOW)).decide(letter)


def letter_with_time(timestamp: int) -> DeadLetter:
    return replace(LETTER, record=replace(LETTER.record, timestamp=timestamp))


def test_record_that_is_still_invalid_remains_with_diagnosis() -> None:
    found = decision_of()

    assert isinstance(found, RemainingLetter)
    assert found.reason == "timestamp_in_future"
    assert "nanoseconds" in found.message


def test_a_copy_of_a_stored_record_is_not_replayed_even_if_it_can_be_corrected() -> None:
    found = decision_of(replace(LETTER, proxy_headers=(("sluicegate.copy", b"true"),)), fix="unit")

    assert isinstance(found, RemainingLetter)
    assert found.reason == "copy_of_stored_record"


def test_a_unit_fix_changes_only_the_timestamp() -> None:
    assert decision_of(fix="unit") == Replayed(replace(LETTER.record, timestamp=NOW), corrected=True)


def test_record_that_has_become_valid_is_written_unchanged() -> None:
    letter = letter_with_time(NOW + HOUR)

    assert decision_of(letter) == Replayed(letter.record, corrected=False)


def test_default_fix_applies_to_dead_letters_and_option_overrides_it() -> None:
    text = QUARANTINED + "defaults: {fix: {timestamp: now}}\n"
    day_ahead = letter_with_time(NOW + 24 * HOUR)

    assert decision_of(day_ahead, text) == Replayed(replace(LETTER.record, timestamp=NOW), corrected=True)
    assert isinstance(decision_of(day_ahead, text, fix="unit"), RemainingLetter)


def test_fix_option_overrides_fix_of_topic_entry() -> None:
    text = FILE + "topics: [{match: orders, message.timestamp.after.max.ms: 1h, fix: {timestamp: now}}]\n"

    found = decision_of(letter_with_time(NOW + 24 * HOUR), text, fix="clamp")

    assert isinstance(found, Replayed)
    assert NOW < found.record.timestamp <= NOW + HOUR


@pytest.mark.parametrize("where", ["topics: [{match: orders, mode: observe, %s}]", "defaults: {mode: observe, %s}"])
def test_dead_letters_with_observed_violations_are_not_replayed(where: str) -> None:
    text = FILE + where % "message.timestamp.after.max.ms: 1h" + "\n"

    assert isinstance(decision_of(text=text), RemainingLetter)


def test_replay_applies_the_stricter_of_cluster_settings_and_policy_file() -> None:
    letter = letter_with_time(NOW + HOUR)

    assert isinstance(decision_of(letter, settings=ClusterSettings(after_max_ms=HOUR // 2)), RemainingLetter)
    assert isinstance(decision_of(letter, settings=ClusterSettings(max_message_bytes=20)), RemainingLetter)


@pytest.mark.parametrize(
    ("letter", "reason"),
    [
        (replace(LETTER, topic="missing"), "no_such_partition"),
        (replace(LETTER, partition=3), "no_such_partition"),
        (replace(LETTER, partition=-1), "no_such_partition"),
    ],
)
def test_dead_letters_without_a_destination_are_not_replayed(letter: DeadLetter, reason: str) -> None:
    found = decision_of(letter)

    assert isinstance(found, RemainingLetter)
    assert found.reason == reason


@pytest.mark.parametrize(("name", "timestamp"), [("a\0b", NOW), ("\udcff", NOW), ("a", 0)])
def test_a_record_that_client_libraries_cannot_write_is_not_replayed(name: str, timestamp: int) -> None:
    found = decision_of(replace(LETTER, record=ReplayRecord(timestamp, b"k", b"v", ((name, b"1"),))))

    assert isinstance(found, RemainingLetter)
    assert found.reason == "unwritable_record"


def test_a_function_runs_first_and_its_result_is_fixed_and_validated() -> None:
    letter = replace(LETTER, record=replace(LETTER.record, value=b"{}"))

    found = decision_of(letter, fix="unit", by="tests.pipeline.corrections:add_missing_tenant")

    assert found == Replayed(replace(LETTER.record, timestamp=NOW, value=b'{"tenant": "a"}'), corrected=True)
    assert isinstance(decision_of(letter, by="tests.pipeline.corrections:add_missing_tenant"), RemainingLetter)


def test_a_function_that_returns_an_undecodable_header_name_fails() -> None:
    with pytest.raises(FunctionFails, match="return_invalid_header_name returned ReplayRecord, not a valid record"):
        decision_of(by="tests.pipeline.corrections:return_invalid_header_name")
