"""Matching a header cannot be interrupted, so its cost is bounded before it begins, for any pattern."""

import time
from random import Random

import pytest

from sluicegate.validation.rules.headers import MatchedHeader
from sluicegate.validation.rules.rule import INLINE_STEPS
from tests.bounds.machine import slowness
from tests.validation.rules.records import record
from tests.validation.rules.steps import steps_of

MIB = 1 << 20
STEP_SECONDS = 100e-9
COSTLY = ["/[ab]*a[ab]{200}c/", "/.*a.{300}/", "/(.*a.{20}){10}/", r"/[\p{L}]*(a[ab]{90}|b[ab]{80}|[ab]{70}c)+/"]
"""Patterns for which RE2 leaves its fast engine: 2 to 6 s per MiB."""


def seconds_of(rule: MatchedHeader, *values: bytes) -> float:
    begun = time.thread_time()
    rule.fault(record(headers=tuple((b"h", value) for value in values)))
    return time.thread_time() - begun


@pytest.mark.parametrize("pattern", [*COSTLY, "*", "a*", "/[ab]{1,1000}/"])
@pytest.mark.parametrize(
    "values", [[b"a" * 16 * MIB], [bytes(Random(1).choices(b"ab", k=20_000))], [b"a" * i for i in range(3_000)]]
)
def test_matching_a_header_stays_within_the_inline_time(pattern: str, values: list[bytes]) -> None:
    rule = MatchedHeader("h", pattern)

    found = min(seconds_of(rule, *values) for _ in range(2))

    assert found < 3 * INLINE_STEPS * STEP_SECONDS * slowness()


@pytest.mark.parametrize("pattern", COSTLY)
def test_header_rule_time_stays_within_its_declared_cost(pattern: str) -> None:
    rule = MatchedHeader("h", pattern)
    of = record(headers=((b"h", b"ab" * 1_000),))

    assert 3 * steps_of(rule.fault, of) * STEP_SECONDS * slowness() >= min(
        seconds_of(rule, b"ab" * 1_000) for _ in range(3)
    )


def test_header_value_too_costly_to_match_is_a_violation() -> None:
    found = MatchedHeader("h", COSTLY[1]).fault(record(headers=((b"h", b"a" * MIB),)))

    assert found == "header h is too costly to match with /.*a.{300}/; send a shorter value"


def test_long_header_values_match_ordinary_patterns() -> None:
    for pattern in ("*", "/[a-z]+/", "/[A-Za-z0-9_-]+/"):
        assert MatchedHeader("h", pattern).fault(record(headers=((b"h", b"a" * 200_000),))) is None
