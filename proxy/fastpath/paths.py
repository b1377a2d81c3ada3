"""The fast path where it was compiled. Where it was not, every frame takes the slow one; nothing else is different."""

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from sluicegate.protocol.records.scan import is_compiled
from sluicegate.validation.in_force import RulesInForce
from sluicegate.validation.policy import ValidationLimits

if TYPE_CHECKING:
    from sluicegate.proxy.fastpath.fast_path import FastPathBuffer, FastRequests, FastResponses, PathCounts
    from sluicegate.proxy.session.in_flight import Finish, InFlightQueue
    from sluicegate.proxy.session.pacing import LoopLateness
    from sluicegate.proxy.session.request_clock import RequestClock
    from sluicegate.validation.ordinary import OrdinaryRequests

HAS_FAST_PATH = False
if is_compiled():
    with suppress(ImportError):  # the only native module that may be missing
        from sluicegate.proxy.fastpath import fast_path as fast_path  # noqa: PLC0414  # exported
        from sluicegate.validation import ordinary

        HAS_FAST_PATH = True

# What the fast path says of a request; anything else is good, and answered by nobody (acks=0).
FALL_BACK, GOOD = (ordinary.FALL_BACK, ordinary.GOOD) if HAS_FAST_PATH else (0, 1)

FastPaths = tuple["FastRequests | None", "FastResponses | None"]
"""Towards the broker, and back."""

NO_FAST_PATHS: FastPaths = (None, None)


class PassThroughState(Protocol):
    """What the fast path asks about its session."""

    @property
    def takes_ordinary(self) -> bool:
        """Whether requests that nobody has to see may pass."""

    def plain_finish(self, version: int) -> "Finish | None":
        """Return what the response to a Produce request needs that was forwarded as it came."""


def make_ordinary_requests(
    limits: ValidationLimits, max_partitions: int, now_ms: Callable[[], int], rules: RulesInForce
) -> "OrdinaryRequests | None":
    """What validates on the fast paths of one event loop; None: there are none."""
    return ordinary.OrdinaryRequests(limits, max_partitions, now_ms, rules) if HAS_FAST_PATH else None


def make_path_counts(clock: "RequestClock", failed: Callable[[str, Exception], None]) -> "PathCounts | None":
    """What all fast paths of one event loop count into; None: there are none. `failed` is told of faults of their own
    and of the client over whose request it was; the slow path validates that one.
    """
    return fast_path.PathCounts(clock, failed) if HAS_FAST_PATH else None


def make_fast_path_buffer(total_bytes: int) -> "FastPathBuffer | None":
    """Where all fast paths of one event loop keep what has come of a request; None: there are none."""
    return fast_path.FastPathBuffer(total_bytes) if HAS_FAST_PATH else None


def make_fast_paths(
    validate: "OrdinaryRequests | None",
    counts: "PathCounts | None",
    room: "FastPathBuffer | None",
    pass_through: "PassThroughState",
    queue: "InFlightQueue",
    max_in_flight: int,
    max_frame_bytes: int,
    lateness: "LoopLateness",
    client_buffer: memoryview,
    wider_buffer: memoryview,
    broker_buffer: memoryview,
) -> "FastPaths":
    """The fast paths of one session."""
    if validate is None or counts is None or room is None:
        return NO_FAST_PATHS
    return (
        fast_path.FastRequests(
            validate,
            counts,
            room,
            pass_through,
            queue,
            max_in_flight,
            max_frame_bytes,
            lateness,
            client_buffer,
            wider_buffer,
        ),
        fast_path.FastResponses(counts, queue, broker_buffer),
    )
