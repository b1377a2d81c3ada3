"""The doctor reports differences between file and cluster, and missing permissions, each with what to do."""

import pytest

from sluicegate.config.loading import config_of
from sluicegate.config.model import Config
from sluicegate.protocol.integers import LONG_MAX
from sluicegate.proxy.cluster.topics import MetadataTopic
from sluicegate.proxy.doctor.check_result import CheckResult, Level
from sluicegate.proxy.doctor.topics import differences, permissions, unused_entries
from sluicegate.validation.cluster_settings import ClusterSettings
from sluicegate.validation.policy import TimestampType

HOUR, DAY = 3_600_000, 86_400_000
READ, WRITE, DESCRIBE, DESCRIBE_CONFIGS = (1 << code for code in (3, 4, 8, 10))  # Kafka's AclOperation
PLAIN = ClusterSettings(TimestampType.CREATE_TIME, LONG_MAX, HOUR, False, 1_048_588)


def topics_config(**sections: object) -> Config:
    given = {"upstream": {"bootstrap": "h:1"}, "listen": {"bootstrap": "127.0.0.1:19092"}, **sections}
    return config_of(given)


def topic_results(file: Config, **settings: ClusterSettings) -> list[CheckResult]:
    return list(differences(file, settings))


def test_matching_settings_are_one_ok_result() -> None:
    file = topics_config(defaults={"message.timestamp.after.max.ms": HOUR})

    (result,) = topic_results(file, a=PLAIN, b=PLAIN)

    assert result.level is Level.OK
    assert "2 topics" in result.found


def test_a_file_stricter_than_the_cluster_is_one_note_for_equal_topics() -> None:
    file = topics_config(defaults={"message.timestamp.after.max.ms": HOUR, "message.timestamp.before.max.ms": DAY})

    (result,) = topic_results(file, **{f"t{i}": PLAIN for i in range(500)})

    assert result.level is Level.NOTE
    assert result.about == "500 topics: t0, t1, t2 and 497 more"
    assert "message.timestamp.before.max.ms is 1 d (86400000 ms) in the file, not set on the cluster" in result.found


@pytest.mark.parametrize(
    ("read", "word"), [(True, "stricter and applies"), (False, "the broker rejects batches that the proxy forwards")]
)
def test_a_file_looser_than_the_cluster_is_a_warning(read: bool, word: str) -> None:
    upstream = {"bootstrap": "h:1", "topic_settings": read}
    told = {"message.timestamp.after.max.ms": 2 * HOUR, "max.message.bytes": PLAIN.max_message_bytes}
    file = topics_config(upstream=upstream, defaults=told)

    (result,) = topic_results(file, t=PLAIN)

    assert (result.level, result.about) == (Level.WARNING, "topic t")
    assert word in result.found
    assert result.advice


def test_compaction_configured_on_one_side_only_is_a_finding() -> None:
    compacted = ClusterSettings(TimestampType.CREATE_TIME, LONG_MAX, HOUR, True, 1_048_588)
    told = {"message.timestamp.after.max.ms": HOUR}

    ours = topic_results(topics_config(defaults={**told, "cleanup.policy": "compact"}), t=PLAIN)
    theirs = topic_results(
        topics_config(upstream={"bootstrap": "h:1", "topic_settings": "false"}, defaults=told), t=compacted
    )

    assert [result.level for result in ours] == [Level.NOTE]
    assert any("the broker rejects null keys that the proxy forwards" in result.found for result in theirs)
    read = topic_results(topics_config(defaults=told), t=compacted)  # the proxy reads cleanup.policy from the broker
    assert [result.level for result in read] == [Level.OK]


def test_topics_without_checks_are_ok() -> None:
    assert topic_results(topics_config(defaults={"checks": "none"}), t=PLAIN)[0].level is Level.OK


def test_an_entry_without_a_topic_is_a_warning() -> None:
    file = topics_config(topics=[{"match": "orders.*"}, {"match": "order.eu"}])

    (result,) = unused_entries(file, ["orders.eu", "orders.us"])

    assert (result.about, result.level) == ("topics[1]", Level.WARNING)
    assert result.found.startswith("order.eu ")


def test_missing_permissions_and_topics_of_the_proxys_login_are_results() -> None:
    file = topics_config(violations={"topic": "bad"}, topics=[{"match": "a", "quarantine": "kept"}])
    shown = [
        MetadataTopic("a", False, READ | DESCRIBE | DESCRIBE_CONFIGS),
        MetadataTopic("bad", False, DESCRIBE | DESCRIBE_CONFIGS),
        MetadataTopic("kept", False, WRITE | DESCRIBE),
    ]

    results = {result.about: result for result in permissions(file, shown)}

    assert results["permissions"].level is Level.WARNING
    assert "DESCRIBE_CONFIGS is not allowed on kept" in results["permissions"].found
    assert results["violations.topic"].level is Level.FAILURE
    assert results["quarantine of a"].level is Level.OK
    (unread,) = [
        f for f in permissions(topics_config(violations={"topic": "kept"}), shown) if f.about == "violations.topic"
    ]
    assert (unread.level, "who --days" in unread.found) == (Level.NOTE, True)
    (gone,) = [f for f in permissions(file, shown[:1]) if f.about == "violations.topic"]
    assert gone.level is Level.FAILURE
    assert "topic bad does not exist" in gone.found
