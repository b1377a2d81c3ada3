"""Tracks how all of a client's sessions, or all of a topic's clients, use their quota together."""

from collections import OrderedDict, deque
from collections.abc import Callable, Sequence

from sluicegate.proxy.session.outlets import Timer
from sluicegate.proxy.session.quotas.token_bucket import TokenBucket
from sluicegate.validation.in_force import RulesInForce
from sluicegate.validation.requests.quota import QuotaLimits
from sluicegate.validation.rules.rule import Client

# A session may take this long to send its request in its turn.
_TURN_SECONDS = 0.1
# At most this many sessions resume in one loop iteration.
_WOKEN_AT_ONCE = 16

Wake = Callable[[], None]
"""Resumes a session. It is called once."""


class QuotaLine:
    """The queue of sessions that wait for one share.

    `owed` returns the seconds until the share has no debt. `requests` is the number of queued sessions with a partial
    request.
    """

    def __init__(self, owed: Callable[[], float], call_later: Callable[[float, Wake], Timer]) -> None:
        self._owed = owed
        self._call_later = call_later
        self._waiting: deque[tuple[Wake, bool]] = deque()
        self._timer: Timer | None = None
        self._at_turn: Wake | None = None
        self.requests = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def join(self, wake: Wake) -> None:
        """Join the queue with a partial request, which waits for a separate turn."""
        self.requests += 1
        self._joins(wake, has_request=True)

    def join_again(self, wake: Wake) -> None:
        """Join the queue again after a wait, because others are still in debt. The session may have no request."""
        self._joins(wake, has_request=False)

    def leave(self, wake: Wake) -> None:
        """Leave the queue. If it is this session's turn, the next session gets the turn immediately."""
        if wake is self._at_turn:
            self._restart_timer(0)
            return
        for entry in self._waiting:
            if entry[0] is wake:
                self._waiting.remove(entry)
                self.requests -= entry[1]
                return

    def taken(self) -> None:
        """Reschedule the next turn after the share was charged."""
        if self._timer is not None:
            self._restart_timer(self._owed())

    def _restart_timer(self, seconds: float) -> None:
        self._at_turn = None
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._call_later(seconds, self._next) if self._waiting else None

    def _joins(self, wake: Wake, has_request: bool) -> None:
        self._waiting.append((wake, has_request))
        if self._timer is None:
            self._timer = self._call_later(self._owed(), self._next)

    def _next(self) -> None:
        self._timer = self._at_turn = None
        owed = self._owed()
        if owed > 0:
            self._timer = self._call_later(owed, self._next) if self._waiting else None
            return
        for _ in range(min(_WOKEN_AT_ONCE, len(self._waiting))):
            wake, has_request = self._waiting.popleft()
            if has_request:
                self.requests -= 1
                self._timer = self._call_later(_TURN_SECONDS, self._next)
                self._at_turn = wake
                wake()
                return
            wake()
        if self._waiting:
            self._timer = self._call_later(0, self._next)


# Idle shares beyond this number are dropped. Clients and topics are counted separately, so that neither's names
# displace the other's.
_MOST_REMEMBERED = 10_000
# The maximum number of shares in use, about 30 MB. All further names have one share in common.
_MOST_SHARES = 50_000
_LOOKED_AT = 16
# At most this many bytes of complete requests may wait for their topics' quotas.
_MOST_HELD_BYTES = 32 << 20
_MOST_WAITING = 1000

_CallLater = Callable[[float, Callable[[], None]], Timer]


class QuotaShare:
    """One client's or topic's use of its quota.

    `names` identifies the client or the topic, and is empty for the common share of further names. `connections` is the
    client's current number of connections.
    """

    __slots__ = ("_bytes", "_call_later", "_line", "_now", "_requests", "connections", "names", "quota")

    def __init__(
        self, quota: QuotaLimits, names: tuple[str, ...], now: Callable[[], float], call_later: _CallLater
    ) -> None:
        """`now` returns monotonic seconds."""
        self.quota = quota
        self.names = names
        self.connections = 0
        self._line: QuotaLine | None = None
        self._now = now
        self._call_later = call_later
        rates = (quota.bytes_per_second, quota.requests_per_second)
        self._bytes, self._requests = (None if rate is None else TokenBucket(rate, now()) for rate in rates)

    def take(self, size: int, requests: int) -> float:
        """Charge `size` bytes in `requests` requests. Return for how many seconds the client must wait."""
        now = self._now()
        wait = 0.0 if self._bytes is None else self._bytes.take(size, now)
        wait = wait if self._requests is None else max(wait, self._requests.take(requests, now))
        if self._line is not None:
            self._line.taken()
        return wait

    def owed(self) -> float:
        """Return the number of seconds until the share has no debt."""
        now = self._now()
        return max(0.0 if bucket is None else bucket.owed(now) for bucket in (self._bytes, self._requests))

    @property
    def is_crowded(self) -> bool:
        """Whether the connection limit is reached."""
        most = self.quota.connections if self.names else None
        return most is not None and self.connections >= most

    @property
    def line(self) -> QuotaLine:
        """The queue of sessions that wait until the share has no debt."""
        if self._line is None:
            self._line = QuotaLine(self.owed, self._call_later)
        return self._line

    @property
    def requests_waiting(self) -> int:
        """The number of waiting sessions with a partial request."""
        return 0 if self._line is None else self._line.requests

    @property
    def makes_wait(self) -> bool:
        """Whether a session has to wait, because the share is in debt or others wait."""
        return bool(self._line) or self.owed() > 0

    @property
    def is_forgettable(self) -> bool:
        """Whether the share is in its initial state, so that it can be dropped."""
        return self.connections == 0 and not self.makes_wait


TopicShares = Sequence[tuple[QuotaShare, int]]
"""How many bytes a request contains for each topic that has a quota."""


class _Shares:
    """The shares of clients or of topics, by quota and names."""

    def __init__(self, now: Callable[[], float], call_later: _CallLater) -> None:
        self._now = now
        self._call_later = call_later
        self._known: OrderedDict[tuple[QuotaLimits, tuple[str, ...]], QuotaShare] = OrderedDict()

    def share_of(self, quota: QuotaLimits, names: tuple[str, ...]) -> QuotaShare:
        share = self._known.get((quota, names))
        if share is None:
            if len(self._known) >= _MOST_REMEMBERED:
                self._forget_one()
            if len(self._known) >= _MOST_SHARES:
                names = ()
                share = self._known.get((quota, names))
            if share is None:
                share = self._known[quota, names] = QuotaShare(quota, names, self._now, self._call_later)
        self._known.move_to_end((quota, names))
        return share

    def _forget_one(self) -> None:
        for _ in range(_LOOKED_AT):
            key, share = next(iter(self._known.items()))
            if share.is_forgettable:
                del self._known[key]
                return
            self._known.move_to_end(key)


class Quotas:
    """One proxy's shares for the current quotas.

    `held_bytes` is the size of requests that wait for topic quotas.
    """

    def __init__(
        self,
        rules: RulesInForce,
        now: Callable[[], float],
        call_later: _CallLater,
        most_waiting: int = _MOST_WAITING,
        most_held_bytes: int = _MOST_HELD_BYTES,
    ) -> None:
        """`now` returns monotonic seconds.

        `most_waiting` is how many sessions may wait for one share before their first request. Further sessions are
        rejected, so that many connections under one name leave room for other clients.
        """
        self.most_waiting = most_waiting
        self._most_held_bytes = most_held_bytes
        self._rules = rules
        self._clients = _Shares(now, call_later)
        self._topics = _Shares(now, call_later)
        self.held_bytes = 0

    @property
    def has_quotas(self) -> bool:
        """Whether any client has a quota."""
        return bool(self._rules.rulebook.in_file.quotas)

    def share_of(self, client: Client) -> QuotaShare | None:
        """Return the share of the first quota that applies to this client, or None."""
        for quota in self._rules.rulebook.in_file.quotas:
            names = quota.counted_names(client)
            if names is not None:
                return self._clients.share_of(quota, names)
        return None

    def share_of_topic(self, quota: QuotaLimits, topic: str) -> QuotaShare:
        """Return a topic's share for this quota."""
        return self._topics.share_of(quota, (topic,))

    def may_hold(self, size: int) -> bool:
        """Return whether a complete request of `size` bytes may wait in memory."""
        return self.held_bytes == 0 or self.held_bytes + size <= self._most_held_bytes
