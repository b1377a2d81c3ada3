"""Checks the deadlines of a connection's waits about once a second, without a timer for each wait.

A deadline applies to a wait whatever its cause. For example, a partial request keeps its deadline while the proxy
itself is not reading.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Protocol

from sluicegate.proxy.session.connection import Connection
from sluicegate.proxy.session.limit_names import FRAME_SECONDS, GATHERED_BYTES, IDLE_SECONDS
from sluicegate.proxy.session.pause_reason import PauseReason

# A request that arrives more slowly than this is disconnected: after one second while other connections wait for
# memory, and otherwise after frame_timeout_seconds.
_LEAST_BYTES_A_SECOND = 32 * 1024
# A slow request is disconnected once other connections have waited for memory this long.
_PRESSED_SECONDS = 1.0
_UNREAD_SECONDS = 2.0
# A random part of the maximum age, as in gRPC (MAX_CONNECTION_AGE), so that connections that were opened together do
# not end together.
_AGE_JITTER = 0.1
_STILL_ARRIVING = (
    ", although it was still arriving; for slow links, raise limits.frame_timeout_seconds, or let the producer send "
    "smaller requests (max.request.size, batch.size)"
)


@dataclass(frozen=True, slots=True)
class Overdue:
    """A wait that exceeded its limit. `limit` is the configuration key, and `text` describes the wait."""

    limit: str
    text: str


@dataclass(frozen=True, slots=True)
class DeadlineSnapshot:
    """A connection's current waits. A field is None if there is no such wait.

    Equal values in two snapshots mean the same wait. `request` is a partial frame from the client, and `arrived` is the
    number of bytes that the client has sent. `held_of_request` equals `request` if others wait for memory that the
    request holds. `response` is a partial frame from the broker. `dealt_with` is a request that the proxy is handling.
    `unsent` is output that the broker does not accept. Its deadline is shorter if others wait for memory
    (`other_connections_wait`). `unread` is output that the client does not read while others wait for memory. `moved`
    is the number of bytes received from both sides.
    """

    request: Hashable | None
    held_of_request: int | None
    response: Hashable | None
    dealt_with: Hashable | None
    unsent: Hashable | None
    other_connections_wait: bool
    unread: Hashable | None
    moved: int
    arrived: int = 0


class _Wait:
    """Measures one kind of wait over several snapshots."""

    def __init__(self) -> None:
        self._mark: Hashable | None = None
        self._since = 0.0

    def seconds_unchanged(self, mark: Hashable | None, now: float) -> float:
        """Return for how many seconds the current wait, identified by `mark`, has lasted."""
        if mark is None or mark != self._mark:
            self._mark = mark
            self._since = now
        return now - self._since


class _Arrival:
    """Measures how fast successive requests arrive, over several snapshots."""

    def __init__(self, least_bytes: int) -> None:
        self._least_bytes = least_bytes
        self._wait = _Wait()
        self._request: Hashable | None = None
        self._counted = self._steps = 0

    def seconds_too_slow(self, request: Hashable | None, arrived: int, now: float) -> float:
        """Return for how many seconds a partial request has received fewer than `least_bytes` further bytes."""
        if request != self._request:
            self._request, self._counted = request, arrived
        elif arrived - self._counted >= self._least_bytes:
            self._counted = arrived
            self._steps += 1
        return self._wait.seconds_unchanged(None if request is None else (request, self._steps), now)


class Deadlines:
    """One connection's deadlines. Times are in seconds."""

    def __init__(self, frame_timeout_seconds: float, idle_timeout_seconds: float) -> None:
        self._frame_seconds = frame_timeout_seconds
        self._idle_seconds = idle_timeout_seconds
        self._least_bytes = int(_LEAST_BYTES_A_SECOND * frame_timeout_seconds)
        self._request = _Arrival(self._least_bytes)
        self._response, self._dealt_with, self._unsent = (_Wait() for _ in range(3))
        self._unread, self._idle = _Wait(), _Wait()
        self._pressed_at: float | None = None
        self._pressed_bytes = 0
        self._moved = 0

    def overdue(self, snapshot: DeadlineSnapshot, now: float) -> Overdue | None:
        """Return the wait that is overdue at `now` (monotonic), or None."""
        most = self._frame_seconds
        moves, self._moved = snapshot.moved != self._moved, snapshot.moved
        if self._request.seconds_too_slow(snapshot.request, snapshot.arrived, now) > most:
            text = (
                f"a request has not arrived completely, and less than {self._least_bytes} bytes of it "
                f"came in {most:g} s"
            )
            return Overdue(FRAME_SECONDS, text + (_STILL_ARRIVING if moves else ""))
        if self._is_slow(snapshot.held_of_request, now):
            text = "a request arrived so slowly that other clients had to wait for its memory"
            return Overdue(GATHERED_BYTES, text)
        if self._response.seconds_unchanged(snapshot.response, now) > most:
            return Overdue(FRAME_SECONDS, f"the broker sent nothing more of a response for {most:g} s")
        if self._dealt_with.seconds_unchanged(snapshot.dealt_with, now) > 2 * most:
            return Overdue(FRAME_SECONDS, f"a request was not processed within {2 * most:g} s")
        if (lasts := self._unsent.seconds_unchanged(snapshot.unsent, now)) > (
            most if snapshot.other_connections_wait else 2 * most
        ):
            return Overdue(FRAME_SECONDS, f"the broker read nothing of a request for {lasts:.0f} s")
        if self._unread.seconds_unchanged(snapshot.unread, now) > _UNREAD_SECONDS:
            text = "the client does not read a response, and other clients wait for the memory of the response"
            return Overdue(GATHERED_BYTES, text)
        if self._idle.seconds_unchanged(snapshot.moved, now) > self._idle_seconds:
            return Overdue(IDLE_SECONDS, f"nothing was sent in either direction for {self._idle_seconds:g} s")
        return None

    def _is_slow(self, held: int | None, now: float) -> bool:
        if held is None:
            self._pressed_at = None
            return False
        if self._pressed_at is None:
            self._pressed_at, self._pressed_bytes = now, held
            return False
        lasts = now - self._pressed_at
        if lasts < _PRESSED_SECONDS:
            return False
        arrived = held - self._pressed_bytes
        self._pressed_at, self._pressed_bytes = now, held
        return arrived < _LEAST_BYTES_A_SECOND * lasts


class RequestWaits(Protocol):
    """A client's waiting requests, and the waits that they cause for other connections."""

    @property
    def holds_what_others_wait_for(self) -> bool: ...

    @property
    def other_connections_wait(self) -> bool: ...


class ResponseWaits(Protocol):
    """The waits that a broker's responses cause for other connections."""

    @property
    def other_connections_wait(self) -> bool: ...


def snapshot_of(
    client: Connection, broker: Connection, requests: RequestWaits, responses: ResponseWaits, busy_with: int | None
) -> DeadlineSnapshot:
    """Return a session's current waits.

    `busy_with` is the number of the request that the proxy is handling, or None if there is none.
    """
    response: tuple[bool, int] | None = None
    if broker.mid_frame and not broker.is_paused:
        response = (True, broker.frames_ended) if broker.is_gathering else (False, broker.bytes_in)
    # If a quota pauses the client, its request's deadline starts when reading resumes.
    waits = PauseReason.QUOTA in client.pause_reasons or PauseReason.QUOTA_QUEUE in client.pause_reasons
    return DeadlineSnapshot(
        request=client.frames_ended if client.mid_frame and not waits else None,
        held_of_request=client.bytes_in if requests.holds_what_others_wait_for and not waits else None,
        response=response,
        dealt_with=busy_with,
        unsent=broker.unsent_bytes if broker.is_full else None,
        other_connections_wait=requests.other_connections_wait,
        unread=client.unsent_bytes if client.is_full and responses.other_connections_wait else None,
        moved=client.bytes_in + broker.bytes_in,
        arrived=client.bytes_in,
    )


class ConnectionAge:
    """Measures one connection's age.

    Old connections are closed so that clients spread over replicas that were added later. `most` is the maximum age in
    seconds, or None for no maximum.
    """

    def __init__(self, most: float | None, chance: Callable[[], float]) -> None:
        """`chance` returns a random number from 0 to 1."""
        self._most = None if most is None else most * (1 + _AGE_JITTER * chance())
        self._began: float | None = None

    def is_reached(self, now: float) -> bool:
        """Return whether the connection is older than its maximum age. The first call starts the measurement."""
        if self._most is None:
            return False
        if self._began is None:
            self._began = now
        return now - self._began > self._most
