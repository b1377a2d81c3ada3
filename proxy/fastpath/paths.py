"""Creates the fast path if it was compiled. Without it, every frame takes the slow path, with the same result."""

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
    with suppress(ImportError):  # the compiled module is missing if there was no C compiler
        from sluicegate.proxy.fastpath import fast_path as fast_path  # noqa: PLC0414  # exported
        from sluicegate.validation import ordinary

        HAS_FAST_PATH = True

# The results for a request. Any other value means that the request is valid and gets no response (acks=0).
FALL_BACK, GOOD = (ordinary.FALL_BACK, ordinary.GOOD) if HAS_FAST_PATH else (0, 1)

FastPaths = tuple["FastRequests | None", "FastResponses | None"]
"""The fast paths for requests and for responses. Both are None without the compiled module."""

NO_FAST_PATHS: FastPaths = (None, None)


class PassThroughState(Protocol):
    """The session's state that the fast path reads."""

    @property
    def takes_ordinary(self) -> bool:
        """Whether ordinary requests may be forwarded."""

    def plain_finish(self, version: int) -> "Finish | None":
        """Return the function that finishes the response to an unchanged Produce request."""


def make_ordinary_requests(
    limits: ValidationLimits, max_partitions: int, now_ms: Callable[[], int], rules: RulesInForce
) -> "OrdinaryRequests | None":
    """Create the validation for the fast paths of one event loop. Return None without fast paths."""
    return ordinary.OrdinaryRequests(limits, max_partitions, now_ms, rules) if HAS_FAST_PATH else None


def make_path_counts(clock: "RequestClock", failed: Callable[[str, Exception], None]) -> "PathCounts | None":
    """Create the counters for the fast paths of one event loop. Return None without fast paths.

    `failed` reports an internal error and its client. The slow path then validates the request.
    """
    return fast_path.PathCounts(clock, failed) if HAS_FAST_PATH else None


def make_fast_path_buffer(total_bytes: int) -> "FastPathBuffer | None":
    """Create the memory for partial requests on one event loop's fast paths. Return None without fast paths."""
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
    """Create the fast paths of one session."""
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
