"""A thread caches the policies in use, and only a bounded number of others."""

import tracemalloc

import pytest

from sluicegate.config.loading import read_section
from sluicegate.config.topics import TopicKeys
from sluicegate.validation.from_keys import compile_policies
from sluicegate.validation.in_force import PolicyMemo
from sluicegate.validation.policy import TopicPolicy
from sluicegate.validation.rulebook import Rulebook
from sluicegate.validation.topic_patterns import TopicPatterns

BOOK = Rulebook(compile_policies(TopicKeys()))


def kept_bytes(names: list[str]) -> int:
    """Return the memory that look-ups of these names leave (bytes)."""
    policy_of = PolicyMemo().policies_by(BOOK)
    tracemalloc.start()
    try:
        for name in names:
            policy_of(name)
        names.clear()
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def test_policy_memo_does_not_keep_overlong_topic_names() -> None:
    assert kept_bytes([f"{i}{'x' * 20_000}" for i in range(200)]) < 100_000


def test_policy_memo_memory_is_bounded() -> None:
    assert kept_bytes([f"{i:0249}" for i in range(40_000)]) < 8_000_000


def test_policy_memo_keeps_recently_used_topic_names(monkeypatch: pytest.MonkeyPatch) -> None:
    matched: list[str] = []
    monkeypatch.setattr(TopicPatterns, "first_match", lambda _, name: matched.append(name))
    policy_of = PolicyMemo().policies_by(BOOK)

    for i in range(30_000):
        policy_of(f"t{i}")
        policy_of("used")

    assert matched.count("used") == 1


def test_policy_memo_is_reset_by_a_new_rulebook() -> None:
    key = "message.timestamp.before.max.ms"
    memo, other = PolicyMemo(), Rulebook(compile_policies(read_section(TopicKeys, {key: 7})))

    found = [memo.policies_by(book)("t") for book in (BOOK, other, BOOK)]

    assert found == [TopicPolicy(), TopicPolicy(before_max_ms=7), TopicPolicy()]
