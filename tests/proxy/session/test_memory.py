"""Tests the budget for gathered frames, reserved as bytes arrive, in order, and never for only one connection."""

from collections import deque
from collections.abc import Callable

from sluicegate.proxy.session.memory import GatherBudget, Gathering, MemoryShare


class DeferredCalls:
    """The next steps of an event loop."""

    def __init__(self) -> None:
        self.steps: deque[Callable[[], None]] = deque()

    def __call__(self, step: Callable[[], None]) -> None:
        self.steps.append(step)

    def run(self) -> int:
        """Run all steps and those that they schedule; return their number."""
        count = 0
        while self.steps:
            self.steps.popleft()()
            count += 1
        return count


def share_with_deferred_calls(total: int) -> tuple[MemoryShare, DeferredCalls]:
    later = DeferredCalls()
    return MemoryShare(total, later), later


def gathering_that_notes(share: MemoryShare, served: list[str], name: str) -> Gathering:
    return Gathering(share, lambda: served.append(name))


def test_memory_is_granted_in_the_order_of_requests() -> None:
    share, later = share_with_deferred_calls(100)
    served: list[str] = []
    here, large, small = (gathering_that_notes(share, served, name) for name in ("here", "large", "small"))

    assert here.reserve(80)
    assert not large.reserve(50)
    assert not small.reserve(10)  # the frame would fit, but another frame is first in line
    here.settle()
    later.run()

    assert served == ["large", "small"]
    assert (large.held, small.held) == (50, 10)


def test_closed_session_releases_its_memory_and_gets_no_more() -> None:
    share, later = share_with_deferred_calls(100)
    served: list[str] = []
    all_of_it, gone, here = (gathering_that_notes(share, served, name) for name in ("all", "gone", "here"))
    all_of_it.reserve(100)
    gone.reserve(60)
    here.reserve(60)

    gone.leave()
    all_of_it.settle()
    later.run()

    assert served == ["here"]
    here.settle()
    assert gathering_that_notes(share, served, "next").reserve(100)


def test_partially_read_frames_do_not_deadlock_over_memory() -> None:
    share, later = share_with_deferred_calls(100)
    served: list[str] = []
    one, two = gathering_that_notes(share, served, "one"), gathering_that_notes(share, served, "two")
    assert one.reserve(50)
    assert two.reserve(50)

    assert not one.reserve(40)
    assert not two.reserve(40)
    later.run()
    assert served == ["one"]  # the first in line exceeds the share, and may continue to do so
    assert one.reserve(200)
    assert not later.run()
    assert served == ["one"]

    one.settle()
    later.run()
    assert served == ["one", "two"]


def test_thousands_of_waiting_frames_are_resumed_in_separate_loop_steps() -> None:
    share, later = share_with_deferred_calls(100)
    served: list[int] = []
    first = Gathering(share, lambda: None)
    first.reserve(100)
    depth = 0

    def note_granted(number: int) -> None:
        nonlocal depth
        depth += 1
        assert depth == 1
        served.append(number)
        waiters[number].settle()  # as a small request does, which is forwarded at once
        depth -= 1

    waiters = [Gathering(share, lambda number=number: note_granted(number)) for number in range(10_000)]
    for each in waiters:
        assert not each.reserve(60)

    first.settle()
    steps = later.run()

    assert served == list(range(10_000))
    assert steps > 500


def test_large_requests_leave_memory_for_small_requests_and_responses() -> None:
    budget = GatherBudget(512 << 20, 100 << 20, DeferredCalls())
    giants = [Gathering(budget.large, lambda: None) for _ in range(12)]
    for giant in giants:
        giant.reserve(100 << 20)

    assert Gathering(budget.small, lambda: None).reserve(budget.small_frame_bytes)
    assert Gathering(budget.small_responses, lambda: None).reserve(1 << 20)
    assert Gathering(budget.large_responses, lambda: None).reserve(1 << 20)
    assert sum(giant.held for giant in giants) <= 512 << 20


def test_large_responses_leave_memory_for_small_ones() -> None:
    budget = GatherBudget(512 << 20, 100 << 20, DeferredCalls())
    for _ in range(19):
        Gathering(budget.large_responses, lambda: None).reserve(60 << 20)

    assert Gathering(budget.small_responses, lambda: None).reserve(300)
