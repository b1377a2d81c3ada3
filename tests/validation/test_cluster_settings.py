"""A cluster's settings are combined with the file's settings."""

from sluicegate.protocol.integers import LONG_MAX
from sluicegate.validation.cluster_settings import ClusterSettings, settings_from, stricter_of
from sluicegate.validation.policy import TimestampType, TopicPolicy


def test_reads_cluster_settings_of_a_kafka_4_topic() -> None:
    values = {
        "message.timestamp.type": "LogAppendTime",
        "message.timestamp.before.max.ms": str(LONG_MAX),
        "message.timestamp.after.max.ms": "3600000",
        "cleanup.policy": "compact,delete",
        "max.message.bytes": "1048588",
    }

    assert settings_from(values) == ClusterSettings(TimestampType.LOG_APPEND_TIME, LONG_MAX, 3_600_000, True, 1_048_588)


def test_the_difference_setting_of_kafka_3_replaces_default_bounds() -> None:
    old = settings_from({"message.timestamp.difference.max.ms": "500"})
    both = settings_from(
        {
            "message.timestamp.difference.max.ms": "500",
            "message.timestamp.before.max.ms": "7",
            "cleanup.policy": "delete",
        }
    )

    none_at_all = settings_from({"message.timestamp.difference.max.ms": "0"})

    assert (old.before_max_ms, old.after_max_ms) == (500, 500)
    assert (none_at_all.before_max_ms, none_at_all.after_max_ms) == (0, 0)
    assert (both.before_max_ms, both.after_max_ms, both.compacted) == (7, 500, False)


def test_stricter_of_configured_and_cluster_settings_applies() -> None:
    file = TopicPolicy(before_max_ms=10, after_max_ms=1000, max_message_bytes=50)
    cluster = ClusterSettings(TimestampType.CREATE_TIME, 100, 100, True, 500)

    found = stricter_of(file, cluster)

    assert found == TopicPolicy(TimestampType.CREATE_TIME, 10, 100, True, 50)
    assert stricter_of(file, ClusterSettings()) == file


def test_cluster_timestamp_type_setting_applies() -> None:
    claimed = TopicPolicy(TimestampType.LOG_APPEND_TIME)

    assert stricter_of(claimed, ClusterSettings(TimestampType.CREATE_TIME)).timestamp_type is TimestampType.CREATE_TIME
    assert stricter_of(claimed, ClusterSettings()).timestamp_type is TimestampType.LOG_APPEND_TIME
