"""From the configuration to a topic's policy."""

import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from sluicegate.config.loading import load
from sluicegate.config.model import TopicKeys
from sluicegate.config.yaml_source import Source
from sluicegate.validation.cluster_settings import ClusterSettings
from sluicegate.validation.policies import MAX_FROM_CLUSTER, TopicPolicies, policies_of
from sluicegate.validation.policy import LONG_MAX, TimestampType, TopicPolicy
from sluicegate.validation.topic_patterns import TopicPatterns

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


def kept_bytes(policies: TopicPolicies, names: list[str]) -> int:
    """What asking for these names has left in memory."""
    tracemalloc.start()
    try:
        for name in names:
            policies.of(name)
        names.clear()
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def test_names_that_no_broker_has_get_the_defaults_and_are_not_kept() -> None:
    policies = TopicPolicies(TopicKeys(), [("*", TopicKeys(**{BEFORE: 5}))])  # type: ignore[arg-type]

    assert policies.of("x" * 249).before_max_ms == 5
    for name in ("", ".", "..", "a b", "\ud800", "x" * 250):
        assert policies.of(name).before_max_ms == LONG_MAX
    assert kept_bytes(policies, [f"{i}{'x' * 20_000}" for i in range(200)]) < 100_000


def test_names_without_end_cost_no_memory_without_end() -> None:
    policies = TopicPolicies(TopicKeys(), [])

    assert kept_bytes(policies, [f"{i:0249}" for i in range(40_000)]) < 8_000_000


def test_a_name_in_use_is_remembered_while_others_come_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    matched: list[str] = []
    monkeypatch.setattr(TopicPatterns, "first_match", lambda _, name: matched.append(name))
    policies = TopicPolicies(TopicKeys(), [])

    for i in range(30_000):
        policies.of(f"t{i}")
        policies.of("used")

    assert matched.count("used") == 1


def test_what_the_cluster_says_is_bounded_and_the_longest_unheard_of_goes_first() -> None:
    policies = TopicPolicies(TopicKeys(), [])
    said = ClusterSettings(before_max_ms=7)
    policies.learn("kept", said)
    for i in range(MAX_FROM_CLUSTER + 100):
        policies.learn(f"t{i}", said)
        policies.learn("kept", said)

    assert policies.of("kept").before_max_ms == 7
    assert policies.of(f"t{MAX_FROM_CLUSTER}").before_max_ms == 7
    assert policies.of("t0").before_max_ms == LONG_MAX


def test_what_is_learnt_counts_at_once_and_is_taken_back() -> None:
    policies = TopicPolicies(TopicKeys(), [("t*", TopicKeys(**{BEFORE: 5}))])  # type: ignore[arg-type]
    assert policies.of("t").before_max_ms == 5

    policies.learn("t", ClusterSettings(before_max_ms=3))
    assert policies.of("t").before_max_ms == 3
    policies.learn("t", ClusterSettings(before_max_ms=4))
    assert policies.of("t").before_max_ms == 4
    policies.learn("t", None)
    assert policies.of("t").before_max_ms == 5


def test_threads_that_ask_never_see_what_was_before_once_it_is_learnt() -> None:
    policies = TopicPolicies(TopicKeys(), [])

    def ask(first: int) -> None:
        for i in range(3000):
            policies.of(f"t{(first + i) % 7000}")

    with ThreadPoolExecutor(4) as threads:
        asking = [threads.submit(ask, 500 * i) for i in range(8)]
        for bound in range(1, 2000):
            policies.learn("t1", ClusterSettings(before_max_ms=bound))
            assert policies.of("t1").before_max_ms == bound
        for done in asking:
            done.result()
