"""From the configuration to a topic's policy."""

from typing import Any

import pytest

from config.loading import load
from config.yaml_source import Source
from validation.policies import policies_of
from validation.policy import LONG_MAX, TimestampType, TopicPolicy

BEFORE, AFTER = "message.timestamp.before.max.ms", "message.timestamp.after.max.ms"
DIFFERENCE = "message.timestamp.difference.max.ms"


def policy(topic: str, defaults: dict[str, Any], *topics: dict[str, Any]) -> TopicPolicy:
    data = {
        "upstream": {"bootstrap": ["h:1"]},
        "listen": {"bootstrap": "127.0.0.1:2"},
        "defaults": defaults,
        "topics": list(topics),
    }
    return policies_of(load(Source("test", data), {}).config).of(topic)


def test_without_any_key_nothing_is_bounded() -> None:
    assert policy("t", {}) == TopicPolicy(TimestampType.CREATE_TIME, LONG_MAX, LONG_MAX, compacted=False)


def test_the_first_pattern_that_matches_decides_and_inherits_the_defaults() -> None:
    rules = ({"match": "orders.*", BEFORE: 1}, {"match": "*", BEFORE: 2})

    assert policy("orders.eu", {AFTER: 9}, *rules) == TopicPolicy(before_max_ms=1, after_max_ms=9)
    assert policy("payments", {AFTER: 9}, *rules) == TopicPolicy(before_max_ms=2, after_max_ms=9)


@pytest.mark.parametrize(
    ("pattern", "topic", "matches"),
    [
        ("orders.*", "orders.eu", True),
        ("orders.*", "my-orders.eu", False),
        ("orders.*", "orders", False),
        ("a?c", "abc", True),
        ("/a+/", "aaa", True),
        ("/a+/", "aaab", False),
        ("ORDERS", "orders", False),
    ],
)
def test_patterns_match_whole_names(pattern: str, topic: str, matches: bool) -> None:
    assert (policy(topic, {}, {"match": pattern, BEFORE: 5}).before_max_ms == 5) is matches


@pytest.mark.parametrize(("cleanup", "compacted"), [("compact", True), ("delete", False), ("compact, delete", True)])
def test_cleanup_policy(cleanup: str, compacted: bool) -> None:
    assert policy("t", {"cleanup.policy": cleanup}).compacted is compacted


def test_the_deprecated_difference_stands_for_each_bound_that_is_still_open() -> None:
    """KIP-937: it applies where the new key is at its default."""
    found = policy("t", {DIFFERENCE: 7, BEFORE: 3})

    assert (found.before_max_ms, found.after_max_ms) == (3, 7)


def test_log_append_time() -> None:
    assert policy("t", {"message.timestamp.type": "LogAppendTime"}).timestamp_type is TimestampType.LOG_APPEND_TIME
