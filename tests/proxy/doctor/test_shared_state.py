"""What the doctor says about the state topic, its writers and the snapshot file."""

from dataclasses import replace
from pathlib import Path

from sluicegate.config.state import StateTopics
from sluicegate.proxy.doctor.check_result import CheckResult, Level
from sluicegate.proxy.doctor.shared_state import FoundTopic, check_snapshot_file, check_state_topic

KEYS = StateTopics(topic="gate-state")
OURS = "User:sluicegate"
GOOD = FoundTopic(1, 3, {"cleanup.policy": "compact", "min.insync.replicas": "2"}, frozenset({OURS}))


def levels_and_texts(topic: FoundTopic) -> list[tuple[Level, str]]:
    return [(each.level, each.found) for each in check_state_topic(KEYS, topic)]


def one_result(topic: FoundTopic, level: Level) -> CheckResult:
    (result,) = (each for each in check_state_topic(KEYS, topic) if each.level is level)
    return result


def test_a_topic_as_documented_is_ok_and_its_writer_is_named() -> None:
    assert levels_and_texts(GOOD) == [
        (Level.OK, "gate-state has one partition and is compacted"),
        (Level.OK, "ACLs let only User:sluicegate change gate-state"),
    ]


def test_a_topic_without_acls_may_be_open_to_everybody() -> None:
    assert "everybody may" in one_result(replace(GOOD, writers=frozenset()), Level.WARNING).found


def test_several_partitions_or_a_retention_are_failures() -> None:
    assert one_result(replace(GOOD, partitions=3), Level.FAILURE).found == "gate-state has 3 partitions"
    deleted = replace(GOOD, settings={**GOOD.settings, "cleanup.policy": "delete"})
    assert one_result(deleted, Level.FAILURE).advice == "set cleanup.policy=compact"
    both = replace(GOOD, settings={**GOOD.settings, "cleanup.policy": "compact,delete"})
    assert "suspensions can be deleted while they apply" in one_result(both, Level.FAILURE).found


def test_a_topic_that_one_broker_can_lose_is_a_warning() -> None:
    assert "1 replicas" in one_result(replace(GOOD, replicas=1), Level.WARNING).found
    one = replace(GOOD, settings={**GOOD.settings, "min.insync.replicas": "1"})
    assert "min.insync.replicas=1" in one_result(one, Level.WARNING).found


def test_other_writers_are_a_failure_and_unknown_ones_are_said_to_be_unknown() -> None:
    other = one_result(replace(GOOD, writers=frozenset({OURS, "User:team"})), Level.FAILURE)
    assert other.found == "ACLs let User:sluicegate, User:team change gate-state, and so switch enforcement off"

    unknown = replace(GOOD, writers=None, why_unknown="ACLs cannot be read: no authorizer")
    assert one_result(unknown, Level.NOT_CHECKED).found == "ACLs cannot be read: no authorizer"


def test_a_folder_that_is_missing_is_a_failure(tmp_path: Path) -> None:
    def level(path: Path) -> Level:
        (result,) = check_snapshot_file(StateTopics(topic="gate-state", snapshot_file=str(path)))
        return result.level

    assert level(tmp_path / "state.json") is Level.OK
    assert level(tmp_path / "missing" / "state.json") is Level.FAILURE
    assert list(check_snapshot_file(KEYS)) == []
