"""Where a file and a cluster say different things of topics, and what a login may do, in words that say what to do."""

import pytest

from sluicegate.config.loading import config_of
from sluicegate.config.model import Config
from sluicegate.protocol.integers import LONG_MAX
from sluicegate.proxy.cluster.topics import MetadataTopic
from sluicegate.proxy.doctor.finding import CheckResult, Level
from sluicegate.proxy.doctor.topics import differences, permissions, unused_entries
from sluicegate.validation.cluster_settings import ClusterSettings
from sluicegate.validation.policy import TimestampType

HOUR, DAY = 3_600_000, 86_400_000
READ, WRITE, DESCRIBE, DESCRIBE_CONFIGS = (1 << code for code in (3, 4, 8, 10))  # Kafka's AclOperation
PLAIN = ClusterSettings(TimestampType.CREATE_TIME, LONG_MAX, HOUR, False, 1_048_588)


def config(**sections: object) -> Config:
    given = {"upstream": {"bootstrap": "h:1"}, "listen": {"bootstrap": "127.0.0.1:19092"}, **sections}
    return config_of(given)


def found(file: Config, **settings: ClusterSettings) -> list[CheckResult]:
    return list(differences(file, settings))


def test_matching_settings_are_one_ok_result() -> None:
    file = config(defaults={"message.timestamp.after.max.ms": HOUR})

    (finding,) = found(file, a=PLAIN, b=PLAIN)

    assert finding.level is Level.OK
    assert "2 topics" in finding.found


def test_a_stricter_file_is_worth_a_note_and_topics_alike_share_it() -> None:
    file = config(defaults={"message.timestamp.after.max.ms": HOUR, "message.timestamp.before.max.ms": DAY})

    (finding,) = found(file, **{f"t{i}": PLAIN for i in range(500)})

    assert finding.level is Level.NOTE
    assert finding.about == "500 topics: t0, t1, t2 and 497 more"
    assert "message.timestamp.before.max.ms is 1 d (86400000 ms) in the file, not set on the cluster" in finding.found


@pytest.mark.parametrize(
    ("read", "word"), [(True, "stricter and applies"), (False, "the broker rejects batches that the proxy forwards")]
)
def test_a_file_that_is_looser_than_the_cluster_promises_too_much(read: bool, word: str) -> None:
    upstream = {"bootstrap": "h:1", "topic_settings": read}
    told = {"message.timestamp.after.max.ms": 2 * HOUR, "max.message.bytes": PLAIN.max_message_bytes}
    file = config(upstream=upstream, defaults=told)

    (finding,) = found(file, t=PLAIN)

    assert (finding.level, finding.about) == (Level.WARNING, "topic t")
    assert word in finding.found
    assert finding.advice


def test_compaction_that_only_one_of_them_knows() -> None:
    compacted = ClusterSettings(TimestampType.CREATE_TIME, LONG_MAX, HOUR, True, 1_048_588)
    told = {"message.timestamp.after.max.ms": HOUR}

    ours = found(config(defaults={**told, "cleanup.policy": "compact"}), t=PLAIN)
    theirs = found(config(upstream={"bootstrap": "h:1", "topic_settings": "false"}, defaults=told), t=compacted)

    assert [finding.level for finding in ours] == [Level.NOTE]
    assert any("the broker rejects null keys that the proxy forwards" in finding.found for finding in theirs)
    assert [finding.level for finding in found(config(defaults=told), t=compacted)] == [Level.OK]  # it is read


def test_topics_that_are_not_validated_cannot_differ() -> None:
    assert found(config(defaults={"checks": "none"}), t=PLAIN)[0].level is Level.OK


def test_an_entry_that_no_topic_comes_to_is_told() -> None:
    file = config(topics=[{"match": "orders.*"}, {"match": "order.eu"}])

    (finding,) = unused_entries(file, ["orders.eu", "orders.us"])

    assert (finding.about, finding.level) == ("topics[1]", Level.WARNING)
    assert finding.found.startswith("order.eu ")


def test_a_login_that_may_not_read_settings_or_write_events_is_told_what_it_lacks() -> None:
    file = config(violations={"topic": "bad"}, topics=[{"match": "a", "quarantine": "kept"}])
    shown = [
        MetadataTopic("a", False, READ | DESCRIBE | DESCRIBE_CONFIGS),
        MetadataTopic("bad", False, DESCRIBE | DESCRIBE_CONFIGS),
        MetadataTopic("kept", False, WRITE | DESCRIBE),
    ]

    findings = {finding.about: finding for finding in permissions(file, shown)}

    assert findings["permissions"].level is Level.WARNING
    assert "DESCRIBE_CONFIGS is not allowed on kept" in findings["permissions"].found
    assert findings["violations.topic"].level is Level.FAILURE
    assert findings["quarantine of a"].level is Level.OK
    (gone,) = [f for f in permissions(file, shown[:1]) if f.about == "violations.topic"]
    assert gone.level is Level.FAILURE
    assert "topic bad does not exist" in gone.found
