"""Topic names are valid according to Kafka's org.apache.kafka.common.internals.Topic."""

import pytest

from sluicegate.protocol.topic_name import is_legal_topic_name


@pytest.mark.parametrize("name", ["a", "...", "..a", "Az09._-", "a" * 249, "__consumer_offsets"])
def test_accepts_legal_topic_names(name: str) -> None:
    assert is_legal_topic_name(name)


@pytest.mark.parametrize("name", ["", ".", "..", "a" * 250, "a b", "a/b", "é", "a\n", "\n", "٣", "a\0", "a" * 40_000])
def test_rejects_illegal_topic_names(name: str) -> None:
    assert not is_legal_topic_name(name)
