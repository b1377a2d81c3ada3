"""Many equal events cause few lines; many different events cause bounded lines and memory; and no count misses an
event."""

import itertools
import tracemalloc
from typing import Any

from sluicegate.proxy.reporting.logs.aggregation import (
    LINES_A_SECOND,
    LINES_AT_ONCE,
    MANY,
    MAX_KINDS,
    MAX_WIDE_KINDS,
    AggregateKind,
    Aggregator,
    OnceAMinute,
)
from tests.clock import Clock

INTERVAL = 60
Told = tuple[str, str, int, int]


class AggregatedLines:
    """Kinds are (who, topic); wider ones keep the topic."""

    def __init__(self) -> None:
        self.written: list[Told] = []
        self.made = 0
        self.of = Aggregator(INTERVAL, self._emit, lambda key: AggregateKind(key[1], frozenset({"who"})))

    def _emit(self, details: dict[str, Any], times: int, records: int) -> None:
        self.written.append((details["who"], details["topic"], times, records))

    def _details(self, who: str, topic: str) -> dict[str, Any]:
        self.made += 1
        return {"who": who, "topic": topic}

    def note(self, who: str, now: float, records: int = 1, topic: str = "t") -> None:
        self.of.note((who, topic), records, now, self._details, who, topic)

    def logged_count(self) -> int:
        return sum(times for _, _, times, _ in self.written)


def test_first_line_is_written_immediately_and_repetitions_are_counted() -> None:
    lines = AggregatedLines()
    for second in range(30):
        lines.note("a", second, records=2)

    assert lines.written == [("a", "t", 1, 2)]
    lines.of.sweep(59)
    assert len(lines.written) == 1
    lines.of.sweep(60)
    assert lines.written[1] == ("a", "t", 29, 58)
    assert lines.made == 2, "details are made once for each line"


def test_lines_of_different_kinds_are_written_separately() -> None:
    lines = AggregatedLines()
    lines.note("a", 0)
    lines.note("b", 0)

    assert [who for who, *_ in lines.written] == ["a", "b"]


def test_line_after_quiet_interval_is_written_immediately() -> None:
    lines = AggregatedLines()
    lines.note("a", 0)
    lines.of.sweep(60)
    lines.note("a", 61)

    assert lines.written == [("a", "t", 1, 1)] * 2


def test_flush_writes_all_counted_lines() -> None:
    lines = AggregatedLines()
    lines.note("a", 0)
    lines.note("a", 1)
    lines.of.flush()

    assert lines.written == [("a", "t", 1, 1)] * 2


def test_many_clients_cause_bounded_lines_and_all_occurrences_are_counted() -> None:
    lines = AggregatedLines()
    for i in range(10_000):
        lines.note(f"client-{i}", 0)
    assert len(lines.written) <= LINES_AT_ONCE

    for second in range(1, 200):
        lines.of.sweep(second)
    assert lines.logged_count() == 10_000
    assert len(lines.written) <= MAX_KINDS + 3


def test_topic_is_logged_despite_many_clients_of_another_topic() -> None:
    lines = AggregatedLines()
    for i in range(10_000):
        lines.note(f"client-{i}", 0, topic="attacked")
    lines.note("billing", 0, records=7, topic="payments")

    lines.of.sweep(2)

    assert (MANY, "payments", 1, 7) in lines.written


def test_logs_at_most_two_thousand_lines_per_minute() -> None:
    lines = AggregatedLines()
    numbers = itertools.count()
    for second in range(60):
        for _ in range(500):
            lines.note(f"client-{next(numbers)}", second, topic=f"topic-{next(numbers)}")
        lines.of.sweep(second)

    assert len(lines.written) <= LINES_AT_ONCE + 60 * LINES_A_SECOND <= 2000
    lines.of.flush()
    assert lines.logged_count() == 30_000


def test_least_recently_used_line_kind_is_replaced() -> None:
    lines = AggregatedLines()
    for i in range(MAX_KINDS):
        lines.note(f"client-{i}", 0)
    for second in range(1, 60):
        lines.of.sweep(second)
    lines.note("new", 300)

    assert lines.written[-1] == ("new", "t", 1, 1)


def test_aggregated_lines_use_bounded_memory_for_any_names() -> None:
    lines = AggregatedLines()
    tracemalloc.start()
    try:
        for i in range(20_000):
            lines.note(f"{i}-" + "x" * 250, 0, topic=f"{i}-" + "y" * 250)
        lines.written.clear()
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert held < (MAX_KINDS + MAX_WIDE_KINDS) * 2500


def test_once_a_minute_returns_count_since_last_line() -> None:
    clock = Clock(0.0)
    once = OnceAMinute(clock)

    assert [once.due("a") for _ in range(5)] == [1, None, None, None, None]
    assert once.due("b") == 1
    clock.now = 60
    assert once.due("a") == 5


def test_once_a_minute_merges_excess_kinds_and_replaces_unused_ones() -> None:
    clock = Clock(0.0)
    once = OnceAMinute(clock)

    due = [once.due(f"kind-{i}") for i in range(1000)]

    assert len([times for times in due if times is not None]) <= 102
    clock.now = 61
    assert once.due("a new fault") == 1
