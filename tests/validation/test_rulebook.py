"""A topic's policy is built from the configuration."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest

from sluicegate.config.files.source import Source
from sluicegate.config.loading import load, read_section
from sluicegate.config.topics import Topic, TopicKeys
from sluicegate.protocol.integers import LONG_MAX
from sluicegate.validation.cluster_settings import ClusterSettings
from sluicegate.validation.from_keys import compile_policies, rulebook_of
from sluicegate.validation.in_force import PolicyMemo, RulesInForce
from sluicegate.validation.policy import TimeFix, TimestampType, TopicPolicy
from sluicegate.validation.rulebook import NOTHING_SUSPENDED, Rulebook, SuspendedTopics
from sluicegate.validation.rules.rule import Mode

BEFORE, AFTER = "message.timestamp.before.max.ms", "message.timestamp.after.max.ms"
DIFFERENCE = "message.timestamp.difference.max.ms"


def policy(topic: str, defaults: dict[str, Any], *topics: dict[str, Any]) -> TopicPolicy:
    data = {
        "upstream": {"bootstrap": ["h:1"]},
        "listen": {"bootstrap": "127.0.0.1:2"},
        "defaults": defaults,
        "topics": list(topics),
    }
    return rulebook_of(load(Source("test", data), {}).config).policy_of(topic)


def test_default_policy_has_no_bounds() -> None:
    assert policy("t", {}) == TopicPolicy(TimestampType.CREATE_TIME, LONG_MAX, LONG_MAX, compacted=False)


def test_first_matching_topic_pattern_applies_and_inherits_the_defaults() -> None:
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
def test_topic_patterns_match_whole_names(pattern: str, topic: str, matches: bool) -> None:
    assert (policy(topic, {}, {"match": pattern, BEFORE: 5}).before_max_ms == 5) is matches


@pytest.mark.parametrize(("cleanup", "compacted"), [("compact", True), ("delete", False), ("compact, delete", True)])
def test_cleanup_policy_compact_marks_a_topic_as_compacted(cleanup: str, compacted: bool) -> None:
    assert policy("t", {"cleanup.policy": cleanup}).compacted is compacted


def test_deprecated_difference_applies_to_each_bound_that_is_not_set() -> None:
    """KIP-937: the deprecated key applies to each new key that has its default."""
    found = policy("t", {DIFFERENCE: 7, BEFORE: 3})

    assert (found.before_max_ms, found.after_max_ms) == (3, 7)


def test_policy_applies_message_timestamp_type() -> None:
    assert policy("t", {"message.timestamp.type": "LogAppendTime"}).timestamp_type is TimestampType.LOG_APPEND_TIME


def test_invalid_topic_name_gets_the_default_policy() -> None:
    rulebook = Rulebook(compile_policies(TopicKeys(), [("*", read_section(TopicKeys, {BEFORE: 5}))]))

    assert rulebook.policy_of("x" * 249).before_max_ms == 5
    for name in ("", ".", "..", "a b", "\ud800", "x" * 250):
        assert rulebook.policy_of(name).before_max_ms == LONG_MAX


def test_new_cluster_settings_create_a_new_rulebook_generation() -> None:
    first = Rulebook(compile_policies(TopicKeys(), [("t*", read_section(TopicKeys, {BEFORE: 5}))]))

    second = first.with_settings({"t": ClusterSettings(before_max_ms=3), "u": ClusterSettings(before_max_ms=9)})
    third = second.with_settings({"t": None})

    assert [book.policy_of("t").before_max_ms for book in (first, second, third)] == [5, 3, 5]
    assert [book.policy_of("u").before_max_ms for book in (first, second, third)] == [LONG_MAX, 9, 9]
    assert len({book.generation for book in (first, second, third)}) == 3


def test_equal_cluster_settings_create_no_new_rulebook_generation() -> None:
    told = {"t": ClusterSettings(before_max_ms=3)}
    book = Rulebook(compile_policies(TopicKeys())).with_settings(told)

    assert book.with_settings(told) is book
    assert book.with_settings({"never heard of": None}) is book


def test_a_new_configuration_keeps_the_clusters_settings() -> None:
    told = {"t": ClusterSettings(before_max_ms=3)}
    rules = RulesInForce(Rulebook(compile_policies(TopicKeys())).with_settings(told))
    before = rules.generation

    rules.adopt(compile_policies(read_section(TopicKeys, {BEFORE: 1, AFTER: 2})))

    assert rules.rulebook.policy_of("t") == TopicPolicy(before_max_ms=1, after_max_ms=2)
    assert rules.rulebook.policy_of("u") == TopicPolicy(before_max_ms=1, after_max_ms=2)
    assert rules.generation == rules.rulebook.generation != before


def test_request_is_validated_by_one_rulebook_despite_a_concurrent_reload() -> None:
    rules = RulesInForce(Rulebook(compile_policies(TopicKeys())))
    seen: set[tuple[int, int]] = set()
    asked = Event()

    def validate_repeatedly() -> None:
        memo = PolicyMemo()
        while len(seen) < 50:
            book = rules.rulebook
            policy_of = memo.policies_by(book)
            first, last = policy_of("t"), policy_of("u")
            seen.add((first.before_max_ms, last.before_max_ms))
            asked.set()

    with ThreadPoolExecutor(2) as threads:
        asking = [threads.submit(validate_repeatedly) for _ in range(2)]
        bound = 0
        while not all(done.done() for done in asking):
            bound += 1
            told = ClusterSettings(before_max_ms=bound)
            rules.learn({"t": told, "u": told})
            asked.wait(10)
            asked.clear()

    assert all(first == last for first, last in seen)


def test_suspended_enforcement_observes_in_every_mode() -> None:
    configured = {"a": {"fix": {"timestamp": "now"}}, "b": {"quarantine": "dead"}, "c": {}, "d": {"checks": "none"}}
    topics = [(name, read_section(Topic, {"match": name, **keys})) for name, keys in configured.items()]
    rules = RulesInForce(
        Rulebook(compile_policies(TopicKeys(), topics)).with_settings({"a": ClusterSettings(before_max_ms=1)})
    )
    before = rules.generation

    rules.suspend(SuspendedTopics(topics=frozenset({"a", "b"})))

    of = rules.rulebook.policy_of
    assert [of(name).mode for name in "abcd"] == [Mode.OBSERVE, Mode.OBSERVE, Mode.REJECT, Mode.REJECT]
    assert (of("a").fix, of("b").dead_letters) == (None, None)
    assert of("a").before_max_ms == 1
    assert rules.generation != before

    rules.adopt(compile_policies(TopicKeys(), topics))
    rules.suspend(SuspendedTopics(everywhere=True))

    assert {rules.rulebook.policy_of(name).mode for name in "abcd"} == {Mode.OBSERVE}
    assert not rules.rulebook.policy_of("d").checked

    rules.suspend(NOTHING_SUSPENDED)

    assert [rules.rulebook.policy_of(name).mode for name in "abc"] == [Mode.REJECT, Mode.QUARANTINE, Mode.REJECT]
    assert rules.rulebook.policy_of("a").fix is TimeFix.NOW
