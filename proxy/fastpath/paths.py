"""The fast lane where it was compiled. Where it was not, every frame takes the slow one; nothing else is different."""

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from sluicegate.protocol.records.scan import is_compiled
from sluicegate.validation.in_force import RulesInForce
from sluicegate.validation.policy import JudgementLimits

if TYPE_CHECKING:
    from sluicegate.proxy.fastpath.fast_path import FastAnswers, FastRequests
    from sluicegate.proxy.fastpath.loop_state import LaneCounts, LaneRoom
    from sluicegate.proxy.session.in_flight import Finish, InFlightQueue
    from sluicegate.proxy.session.pacing import LoopTurn
    from sluicegate.proxy.session.request_clock import RequestClock
    from sluicegate.validation.ordinary import OrdinaryRequests

HAS_FAST_LANE = False
if is_compiled():
    with suppress(ImportError):  # of what is native this alone could not be compiled
        from sluicegate.proxy.fastpath import fast_path as fast_lane
        from sluicegate.proxy.fastpath import loop_state
        from sluicegate.validation import ordinary

        HAS_FAST_LANE = True

# What the fast lane says of a request; anything else is good, and answered by nobody (acks=0).
LOOK_CLOSER, GOOD = (ordinary.LOOK_CLOSER, ordinary.GOOD) if HAS_FAST_LANE else (0, 1)

Lanes = tuple["FastRequests | None", "FastAnswers | None"]
"""Towards the broker, and back."""

NO_LANES: Lanes = (None, None)


class Ordinary(Protocol):
    """What the fast path asks about its session."""

    @property
    def takes_ordinary(self) -> bool:
        """Whether requests that nobody has to see may pass."""

    def plain_finish(self, version: int) -> "Finish | None":
        """Return what the response to a Produce request needs that was forwarded as it came."""


def judge_of_ordinary(
    limits: JudgementLimits, max_partitions: int, now_ms: Callable[[], int], rules: RulesInForce
) -> "OrdinaryRequests | None":
    """What judges on the fast lanes of one event loop; None: there are none."""
    return ordinary.OrdinaryRequests(limits, max_partitions, now_ms, rules) if HAS_FAST_LANE else None


def counts_of_lanes(clock: "RequestClock", failed: Callable[[str, Exception], None]) -> "LaneCounts | None":
    """What all fast lanes of one event loop count into; None: there are none. `failed` is told of faults of their own
    and of the client over whose request it was; the slow lane judges that one.
    """
    return loop_state.LaneCounts(clock, failed) if HAS_FAST_LANE else None


def room_of_lanes(total_bytes: int) -> "LaneRoom | None":
    """Where all fast lanes of one event loop keep what has come of a request; None: there are none."""
    return loop_state.LaneRoom(total_bytes) if HAS_FAST_LANE else None


def lanes_of(
    judge: "OrdinaryRequests | None",
    counts: "LaneCounts | None",
    room: "LaneRoom | None",
    side: "Ordinary",
    queue: "InFlightQueue",
    max_in_flight: int,
    max_frame_bytes: int,
    turn: "LoopTurn",
    client_buffer: memoryview,
    wider_buffer: memoryview,
    broker_buffer: memoryview,
) -> "Lanes":
    """The fast lanes of one session."""
    if judge is None or counts is None or room is None:
        return NO_LANES
    return (
        fast_lane.FastRequests(
            judge, counts, room, side, queue, max_in_flight, max_frame_bytes, turn, client_buffer, wider_buffer
        ),
        fast_lane.FastAnswers(counts, queue, broker_buffer),
    )
