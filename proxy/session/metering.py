"""Holds one session to its client's quota, as a broker does (KIP-13, KIP-219): what came is taken, its answer tells for
how long the client should wait, and for so long nothing more is read of it.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from sluicegate.protocol.framing import Parts
from sluicegate.protocol.produce_request import ProduceRequest
from sluicegate.protocol.produce_throttle import with_throttle_time
from sluicegate.proxy.session.hold import Hold
from sluicegate.proxy.session.in_flight import Exchange, Finish
from sluicegate.proxy.session.needs import SessionNeeds
from sluicegate.proxy.session.outlets import Timer
from sluicegate.proxy.session.quotas import Share
from sluicegate.validation.policy import TopicPolicy
from sluicegate.validation.rules.rule import Client

if TYPE_CHECKING:
    from sluicegate.proxy.session.session import Session

CONNECTIONS = "quotas[].connections"
_NO_TIME = 0

Names = Mapping[bytes, str]


class Metering:
    """Of one session. Seconds are of one monotonic clock."""

    def __init__(self, session: "Session", needs: SessionNeeds) -> None:
        self._session = session
        self._quotas = needs.requests.quotas
        self._call_later = needs.loop.call_later
        self._seconds = needs.requests.gate.clock.now
        self._counts = needs.counts
        self._log = needs.log
        self._share: Share | None = None
        self._timer: Timer | None = None
        self._wait_ms = _NO_TIME

    @property
    def is_on(self) -> bool:
        """Whether anything of this client is counted."""
        return self._share is not None

    def meet(self, client: Client) -> bool:
        """Who it is has become known, or may be judged otherwise from now on. Whether it may stay: not when it has as
        many connections as it may.
        """
        share = self._quotas.share_of(client, self._seconds()) if self._quotas.are_there else None
        if share is self._share:
            return True
        self.end()
        if share is None:
            return True
        if share.is_crowded:
            self._turn_away(share)
            return False
        share.connections += 1
        self._share = share
        return True

    def take(self, size: int, requests: int = 1) -> None:
        """So many bytes of Produce requests have come. The next `told` is for the last of them."""
        self._wait_ms = _NO_TIME
        if self._share is not None:
            self._wait(self._share, self._share.take(size, requests, self._seconds()))

    def take_of_topics(self, request: ProduceRequest, policy_of: Callable[[str], TopicPolicy], names: Names) -> None:
        """What a request that has come brings each topic; `names` are the topics' by id."""
        now = self._seconds()
        for topic in request.topics:
            name = topic.name if topic.name is not None else names.get(topic.topic_id or b"")
            quota = None if name is None else policy_of(name).quota
            if name is not None and quota is not None:
                size = sum(max(0, part.records_end - part.records_at) for part in topic.partitions)
                share = self._quotas.share_of_topic(quota, name, now)
                self._wait(share, share.take(size, 1, now))

    def _wait(self, share: Share, wait: float) -> None:
        wait_ms = max(1, round(wait * 1000)) if wait > 0 else _NO_TIME
        if wait_ms <= self._wait_ms:
            return
        self._wait_ms = wait_ms
        self._session.client.hold(Hold.QUOTA)
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._call_later(wait, self._is_over)
        name = share.quota.name
        self._counts.throttled[name] += 1
        self._counts.throttled_ms[name] += self._wait_ms
        self._log.throttled(self._session.identity, name, self._wait_ms)

    def told(self, exchange: Exchange, version: int) -> Exchange:
        """The same, and its answer says for how long the client should wait, where it should."""
        if self._wait_ms == _NO_TIME:
            return exchange
        if exchange.answer is not None:
            return Exchange(answer=bytes(with_throttle_time(bytearray(exchange.answer), version, self._wait_ms)))
        exchange.finish_with(partial(_told, exchange.finish, version, self._wait_ms))
        return exchange

    def passed(self, size: int, requests: int, newest: Exchange | None, version: int) -> None:
        """The same as `take` and `told`, of requests that the fast lane has forwarded."""
        self.take(size, requests)
        if newest is not None:
            self.told(newest, version)

    def end(self) -> None:
        """The session is over, or is somebody else's."""
        if self._share is not None:
            self._share.connections -= 1
            self._share = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._session.client.release(Hold.QUOTA)
        self._wait_ms = _NO_TIME

    def _is_over(self) -> None:
        self._timer = None
        self._session.client.release(Hold.QUOTA)

    def _turn_away(self, share: Share) -> None:
        quota = share.quota
        who = " ".join(share.names)
        reason = f"{who} has the {quota.connections} connections already on which quota {quota.name} lets it produce"
        self._log.turned_away(self._session.identity.peer, CONNECTIONS, reason)
        self._counts.connections_refused[CONNECTIONS] += 1


def _told(finish: Finish | None, version: int, wait_ms: int, frame: bytearray) -> Parts | None:
    answer = with_throttle_time(frame, version, wait_ms)
    return (answer,) if finish is None else finish(answer)
