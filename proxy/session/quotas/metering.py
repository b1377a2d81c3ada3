"""Applies a client's quota to a session as a broker does (KIP-13, KIP-219).

The response reports a throttle time, and the proxy pauses the client for that time.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from functools import partial

from sluicegate.protocol.framing import Parts
from sluicegate.protocol.produce_request import ProduceRequest
from sluicegate.protocol.response_patches import with_throttle_time
from sluicegate.proxy.session.client.identity import ClientIdentity
from sluicegate.proxy.session.in_flight import Finish, InFlightRequest
from sluicegate.proxy.session.limit_names import QUOTA_CONNECTIONS
from sluicegate.proxy.session.outlets import LoopCalls, Timer
from sluicegate.proxy.session.pause_reason import Pausable, PauseReason
from sluicegate.proxy.session.quotas.shares import Quotas, QuotaShare, TopicShares, Wake
from sluicegate.proxy.session.reports import SessionCounts, SessionLines
from sluicegate.validation.policy import TopicPolicy
from sluicegate.validation.rules.rule import Client

_NO_TIME = 0
Names = Mapping[bytes, str]


class QuotaDecision(Enum):
    """A quota's effect on a session or a request."""

    PROCEED = "continue"
    WAIT = "wait until the quota allows it: `wait_for_turn`"
    REJECT = "close the connection: the quota's limit of connections or of waiting requests is reached"


class Metering:
    """Applies quotas to one session. Times are in seconds of one monotonic clock."""

    def __init__(
        self,
        client: Pausable,
        identity: ClientIdentity,
        quotas: Quotas,
        loop: LoopCalls,
        counts: SessionCounts,
        log: SessionLines,
        most_connections: int,
    ) -> None:
        self._client = client
        self._identity = identity
        self._quotas = quotas
        self._call_later = loop.call_later
        self._counts = counts
        self._log = log
        self._most_waiting = max(1, min(quotas.most_waiting, most_connections // 10))
        self._share: QuotaShare | None = None
        self._timer: Timer | None = None
        self._wait_ms = _NO_TIME
        self._in_line: tuple[QuotaShare, Wake] | None = None
        self._at_turn: tuple[QuotaShare, Wake] | None = None
        self._held_bytes = 0

    @property
    def is_on(self) -> bool:
        """Whether a quota applies to this client."""
        return self._share is not None

    @property
    def may_be_on(self) -> bool:
        """Whether any client has a quota."""
        return self._quotas.has_quotas

    def admit(self, client: Client) -> QuotaDecision:
        """Apply a client's quota after the client's identity has become known or has changed."""
        share = self._quotas.share_of(client) if self._quotas.has_quotas else None
        if share is self._share:
            return QuotaDecision.PROCEED
        self.end()
        if share is None:
            return QuotaDecision.PROCEED
        if share.is_crowded:
            most = f"the {share.quota.connections} connections on which quota {share.quota.name} allows it to produce"
            self._turn_away(f"{_shown(share)} has {most}")
            return QuotaDecision.REJECT
        makes_wait = share.makes_wait
        if makes_wait and share.requests_waiting >= self._most_waiting:
            self._turn_away(_too_many(share))
            return QuotaDecision.REJECT
        share.connections += 1
        self._share = share
        return QuotaDecision.WAIT if makes_wait else QuotaDecision.PROCEED

    def wait_for_turn(self, wake: Wake) -> None:
        """Call `wake` when it is this session's turn. Use this after `admit` has returned WAIT."""
        assert self._share is not None
        self._joins(self._share, wake)

    def _joins(self, share: QuotaShare, wake: Wake) -> None:
        def turn() -> None:
            self._at_turn, self._in_line = self._in_line, None
            wake()

        self._in_line = share, turn
        self._report(share, max(1, round(share.owed() * 1000)))
        share.line.join(turn)

    def take(self, size: int, requests: int = 1) -> None:
        """Charge `size` bytes of Produce requests.

        The next call of `with_throttle` must be for the last of these requests.
        """
        self._wait_ms = _NO_TIME
        if self._share is not None:
            self._wait(self._share, self._share.take(size, requests))

    def shares_of_topics(
        self, request: ProduceRequest, policy_of: Callable[[str], TopicPolicy], names: Names
    ) -> TopicShares:
        """Return how many bytes a request contains for each topic that has a quota.

        `names` maps topic ids to topic names.
        """
        found = []
        for topic in request.topics:
            name = topic.name_by(names)
            quota = None if name is None else policy_of(name).quota
            if name is not None and quota is not None:
                size = sum(max(0, part.records_end - part.records_at) for part in topic.partitions)
                found.append((self._quotas.share_of_topic(quota, name), size))
        return found

    def must_wait_for_topics(self, shares: TopicShares, size: int) -> QuotaDecision:
        """Return whether a request of `size` bytes has to wait for its topics' quotas."""
        share = next((share for share, _ in shares if share.makes_wait), None)
        if share is None:
            return QuotaDecision.PROCEED
        if not self._quotas.may_hold(size) or share.requests_waiting >= self._most_waiting:
            self._turn_away(_too_many(share))
            return QuotaDecision.REJECT
        return QuotaDecision.WAIT

    def wait_for_topics(self, shares: TopicShares, size: int, wake: Wake) -> None:
        """Call `wake` when it is the request's turn. Use this after `must_wait_for_topics` has returned WAIT."""
        share = max((share for share, _ in shares if share.makes_wait), key=QuotaShare.owed)
        self._quotas.held_bytes += size
        self._held_bytes = size

        def turn() -> None:
            self._gives_back()
            wake()

        self._joins(share, turn)

    def _gives_back(self) -> None:
        self._quotas.held_bytes -= self._held_bytes
        self._held_bytes = 0

    def charge_topics(self, shares: TopicShares) -> None:
        """Charge a request to its topics."""
        for share, size in shares:
            self._wait(share, share.take(size, 1))

    def _wait(self, share: QuotaShare, wait: float) -> None:
        """Pause the client for `wait` seconds because of `share`."""
        wait_ms = max(1, round(wait * 1000)) if wait > 0 else _NO_TIME
        if wait_ms <= self._wait_ms:
            return
        self._wait_ms = wait_ms
        self._client.pause(PauseReason.QUOTA)
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._call_later(wait, partial(self._is_over, share))
        self._report(share, self._wait_ms)

    def _report(self, share: QuotaShare, wait_ms: int) -> None:
        name = share.quota.name
        self._counts.throttled[name] += 1
        self._counts.throttled_ms[name] += wait_ms
        self._log.throttled(self._identity, name, wait_ms)

    def with_throttle(self, in_flight: InFlightRequest, version: int) -> InFlightRequest:
        """Add the throttle time, if there is one, to the response. Return the request that replaces `in_flight`."""
        if self._wait_ms == _NO_TIME:
            return in_flight
        if in_flight.response is not None:
            return InFlightRequest(
                response=bytes(with_throttle_time(bytearray(in_flight.response), version, self._wait_ms))
            )
        in_flight.finish_with(partial(_with_throttle_time, in_flight.finish, version, self._wait_ms))
        return in_flight

    def passed(self, size: int, requests: int, newest: InFlightRequest | None, version: int) -> None:
        """Charge requests that the fast path has forwarded, as `take` and `with_throttle` do."""
        self.take(size, requests)
        if newest is not None:
            self.with_throttle(newest, version)

    def end(self) -> None:
        """Clean up at the end of the session, or before its client changes."""
        if self._in_line is not None:
            share, turn = self._in_line
            self._in_line = None
            share.line.leave(turn)
            self._gives_back()
        self.pass_turn_on()
        if self._share is not None:
            self._share.connections -= 1
            self._share = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._client.resume(PauseReason.QUOTA)
        self._wait_ms = _NO_TIME

    def pass_turn_on(self) -> None:
        """Give the turn to the next session, because this session's client has disconnected."""
        if self._at_turn is not None:
            share, turn = self._at_turn
            self._at_turn = None
            share.line.leave(turn)

    def _is_over(self, share: QuotaShare) -> None:
        """End the client's wait.

        If the share is still in debt, the client resumes after the sessions that already wait.
        """
        self._timer = None
        if share.makes_wait and self._in_line is None:
            turn = self._has_its_turn
            self._in_line = share, turn
            share.line.join_again(turn)
        else:
            self._client.resume(PauseReason.QUOTA)

    def _has_its_turn(self) -> None:
        self._in_line = None
        self._client.resume(PauseReason.QUOTA)

    def _turn_away(self, reason: str) -> None:
        self._log.connection_rejected(self._identity.peer, QUOTA_CONNECTIONS, reason)
        self._counts.connections_rejected[QUOTA_CONNECTIONS] += 1


def _shown(share: QuotaShare) -> str:
    return " ".join(name or "a client without an id" for name in share.names) or "a client"


def _too_many(share: QuotaShare) -> str:
    return (
        f"{share.requests_waiting} connections of {_shown(share)} already wait for quota {share.quota.name}: raise "
        f"the quota, or send on fewer connections"
    )


def _with_throttle_time(finish: Finish | None, version: int, wait_ms: int, frame: bytearray) -> Parts | None:
    response = with_throttle_time(frame, version, wait_ms)
    return (response,) if finish is None else finish(response)
