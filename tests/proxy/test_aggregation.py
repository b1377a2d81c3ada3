"""Few lines for many equal things."""

from typing import Any

from proxy.aggregation import Aggregator


class Lines:
    def __init__(self) -> None:
        self.written: list[tuple[Any, int, int]] = []
        self.of = Aggregator(60, lambda details, times, records: self.written.append((details["who"], times, records)))

    def note(self, who: str, now: float, records: int = 1) -> None:
        self.of.note(who, {"who": who}, records, now)


def test_the_first_is_written_at_once_the_others_counted() -> None:
    lines = Lines()
    for second in range(30):
        lines.note("a", second, records=2)

    assert lines.written == [("a", 1, 2)]
    lines.of.sweep(59)
    assert len(lines.written) == 1
    lines.of.sweep(60)
    assert lines.written[1] == ("a", 29, 58)


def test_kinds_are_apart() -> None:
    lines = Lines()
    lines.note("a", 0)
    lines.note("b", 0)

    assert [who for who, *_ in lines.written] == ["a", "b"]


def test_after_a_quiet_interval_the_next_is_a_first_again() -> None:
    lines = Lines()
    lines.note("a", 0)
    lines.of.sweep(60)
    lines.note("a", 61)

    assert lines.written == [("a", 1, 1), ("a", 1, 1)]


def test_at_the_end_everything_is_written() -> None:
    lines = Lines()
    lines.note("a", 0)
    lines.note("a", 1)
    lines.of.flush()

    assert lines.written == [("a", 1, 1), ("a", 1, 1)]


def test_endless_kinds_become_one() -> None:
    lines = Lines()
    for i in range(10_500):
        lines.note(f"client-{i}", 0)

    assert lines.written[-1] == ("many different", 1, 1)
    assert len(lines.written) == 10_001
