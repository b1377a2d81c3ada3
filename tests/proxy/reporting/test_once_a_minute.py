"""Reports that nobody sweeps: at most one a minute for each kind, bounded kinds, honest counts."""

from sluicegate.proxy.reporting.once_a_minute import OnceAMinute


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_first_is_due_and_then_one_a_minute_with_the_count() -> None:
    clock = Clock()
    once = OnceAMinute(clock)

    assert [once.due("a") for _ in range(5)] == [1, None, None, None, None]
    assert once.due("b") == 1
    clock.now = 60
    assert once.due("a") == 5


def test_endless_kinds_are_one_and_quiet_ones_give_up_their_place() -> None:
    clock = Clock()
    once = OnceAMinute(clock)

    due = [once.due(f"kind-{i}") for i in range(1000)]

    assert len([times for times in due if times is not None]) <= 102
    clock.now = 61
    assert once.due("a new fault") == 1
