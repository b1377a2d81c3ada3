"""The doctor checks the topics of the shared state, their writers, and the snapshot file."""

from dataclasses import replace
from pathlib import Path

import pytest

from sluicegate.config.state import StateTopics
from sluicegate.proxy.doctor.check_result import CheckResult, Level
from sluicegate.proxy.doctor.shared_state import check_snapshot_file
from sluicegate.proxy.doctor.shared_topics import FoundTopic, check_topic
from sluicegate.proxy.state.topic_plan import TopicPlan, plans_of

KEYS = StateTopics(topic="gate-state")
OURS = "User:sluicegate"
STATE, HISTORY, PRESENCE = plans_of(KEYS)
GOOD = FoundTopic(1, 3, {"cleanup.policy": "compact", "min.insync.replicas": "2"}, frozenset({OURS}))
GOOD_HISTORY, GOOD_PRESENCE = (replace(GOOD, settings=dict(plan.settings)) for plan in (HISTORY, PRESENCE))
PLANNED = ((STATE, GOOD), (HISTORY, GOOD_HISTORY), (PRESENCE, GOOD_PRESENCE))


def one_result(plan: TopicPlan, topic: FoundTopic, level: Level) -> CheckResult:
    (result,) = (each for each in check_topic(plan, topic) if each.level is level)
    return result


def result_with(plan: TopicPlan, topic: FoundTopic, level: Level, **settings: str) -> str:
    """Return what is found if some settings differ."""
    changed = {name.replace("_", "."): value for name, value in settings.items()}
    return one_result(plan, replace(topic, settings={**topic.settings, **changed}), level).found


@pytest.mark.parametrize(("plan", "topic"), PLANNED)
def test_valid_state_topic_is_ok_and_lists_its_writer(plan: TopicPlan, topic: FoundTopic) -> None:
    assert [(each.about, each.level, each.found) for each in check_topic(plan, topic)] == [
        (
            plan.key,
            Level.OK,
            f"{plan.name} has suitable partitions, replicas and settings",
        ),
        (f"{plan.key}: who may write", Level.OK, f"ACLs allow only User:sluicegate to change {plan.name}"),
    ]


@pytest.mark.parametrize(("plan", "topic"), PLANNED)
def test_a_topic_without_acls_may_be_open_to_everybody(plan: TopicPlan, topic: FoundTopic) -> None:
    assert "every client may change it" in one_result(plan, replace(topic, writers=frozenset()), Level.WARNING).found


@pytest.mark.parametrize(
    ("plan", "topic", "effect"),
    [
        (*PLANNED[0], "switch enforcement off"),
        (*PLANNED[1], "forge what was changed"),
        (*PLANNED[2], "forge the view of the fleet"),
    ],
)
def test_unexpected_writers_are_a_failure_and_unknown_writers_are_not_checked(
    plan: TopicPlan, topic: FoundTopic, effect: str
) -> None:
    other = one_result(plan, replace(topic, writers=frozenset({OURS, "User:team"})), Level.FAILURE)
    assert other.found == f"ACLs allow User:sluicegate, User:team to change {plan.name}, and so to {effect}"

    unknown = replace(topic, writers=None, why_unknown="ACLs cannot be read: no authorizer")
    assert one_result(plan, unknown, Level.NOT_CHECKED).found == "ACLs cannot be read: no authorizer"


def test_a_state_topic_of_several_partitions_or_with_a_retention_is_a_failure() -> None:
    assert "gate-state has 3 partitions" in one_result(STATE, replace(GOOD, partitions=3), Level.FAILURE).found
    for cleanup in ("delete", "compact,delete"):
        found = result_with(STATE, GOOD, Level.FAILURE, cleanup_policy=cleanup)
        assert found == f"gate-state has cleanup.policy={cleanup}: suspensions can be deleted while they apply"


@pytest.mark.parametrize(("plan", "topic"), PLANNED[:2])
def test_a_topic_that_one_broker_can_lose_is_a_warning_and_one_that_cannot_be_written_a_failure(
    plan: TopicPlan, topic: FoundTopic
) -> None:
    assert "min.insync.replicas=1: " in result_with(plan, topic, Level.WARNING, min_insync_replicas="1")
    assert "cannot be written" in result_with(plan, topic, Level.FAILURE, min_insync_replicas="4")
    alone = replace(topic, replicas=1)
    assert "can be lost" in result_with(plan, alone, Level.WARNING, min_insync_replicas="1")


def test_a_history_that_is_compacted_or_shorter_than_what_is_shown_is_a_warning() -> None:
    several = replace(GOOD_HISTORY, partitions=3)  # entries contain ids and times, so their order does not matter
    assert {each.level for each in check_topic(HISTORY, several)} == {Level.OK}
    assert "keeps only one" in result_with(HISTORY, GOOD_HISTORY, Level.WARNING, cleanup_policy="compact")
    assert "kept for less" in result_with(HISTORY, GOOD_HISTORY, Level.WARNING, retention_ms="86400000")
    for_ever = replace(GOOD_HISTORY, settings={**GOOD_HISTORY.settings, "retention.ms": "-1"})
    assert {each.level for each in check_topic(HISTORY, for_ever)} == {Level.OK}


def test_a_presence_topic_that_grows_forgets_or_has_clients_times_is_a_warning() -> None:
    for changed in ({"cleanup_policy": "compact"}, {"retention_ms": "-1"}, {"retention_ms": "604800000"}):
        assert "17,280 records a day" in result_with(PRESENCE, GOOD_PRESENCE, Level.WARNING, **changed)
    assert "stale proxies vanish" in result_with(PRESENCE, GOOD_PRESENCE, Level.WARNING, retention_ms="60000")
    by_clients = result_with(PRESENCE, GOOD_PRESENCE, Level.WARNING, message_timestamp_type="CreateTime")
    assert "clocks cannot be compared" in by_clients
    assert "partitions" in one_result(PRESENCE, replace(GOOD_PRESENCE, partitions=2), Level.WARNING).found
    assert "no proxy shows the fleet" in one_result(PRESENCE, replace(GOOD_PRESENCE, replicas=1), Level.WARNING).found


def test_missing_state_folder_is_a_failure(tmp_path: Path) -> None:
    def level_of_file(path: Path) -> Level:
        (result,) = check_snapshot_file(StateTopics(topic="gate-state", snapshot_file=str(path)))
        return result.level

    assert level_of_file(tmp_path / "state.json") is Level.OK
    assert level_of_file(tmp_path / "missing" / "state.json") is Level.FAILURE
    assert list(check_snapshot_file(KEYS)) == []
