"""The first of many patterns that matches is found at once, even if RE2 runs out of memory."""

import random
from time import perf_counter

import pytest

from sluicegate.validation import topic_patterns
from sluicegate.validation.topic_patterns import TopicPatterns

MATCHES = ["orders.*", "payments", "/(?i)ORD[a-z]+/", "orders.eu", "*", "payments"]


@pytest.mark.parametrize("memory", [16 << 20, 1])
@pytest.mark.parametrize(
    ("name", "place"), [("orders.eu", 0), ("payments", 1), ("ordinary", 2), ("Orders", 2), ("other", 4)]
)
def test_first_match_returns_the_first_matching_topic_pattern(
    name: str, place: int, memory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic_patterns, "_MAX_BYTES", memory)

    assert TopicPatterns(MATCHES).first_match(name) == place


def test_first_match_returns_none_if_no_topic_pattern_matches() -> None:
    assert TopicPatterns(MATCHES[:4]).first_match("other") is None
    assert TopicPatterns([]).first_match("other") is None
    assert TopicPatterns(["a"]).first_match("b") is None


def test_matching_ten_thousand_topics_to_a_thousand_patterns_is_fast() -> None:
    """One request may have this many names. Regression: a loop over the patterns took up to 30 s."""
    patterns = TopicPatterns([f"team{i}.*.events-?" for i in range(1000)])
    chosen = random.Random(7)
    names = [f"team{chosen.randrange(1000)}.{chosen.getrandbits(60):x}.events-1" for _ in range(10_000)]
    started = perf_counter()

    found = [patterns.first_match(name) for name in names]

    assert perf_counter() - started < 3
    assert found == [int(name[4 : name.index(".")]) for name in names]
