"""Measures the offset between the proxy's clock and the cluster's clock every few seconds."""

import asyncio
from collections.abc import Callable
from functools import partial

from sluicegate.config.upstream import Upstream
from sluicegate.proxy.cluster.broker_client import NoBrokerResponses, ask_any_broker
from sluicegate.proxy.cluster.cluster_clock import ClockOffset, NotMeasured, measure_offset
from sluicegate.proxy.network.tls.contexts import TlsContext
from sluicegate.proxy.session.pass_through import ClusterLogin
from sluicegate.proxy.status.condition import Condition
from sluicegate.proxy.status.status import Status

_EVERY_SECONDS = 5.0
# The pause is long, because a broker logs each request that it denies.
_AFTER_DENIAL_SECONDS = 300.0
_TOO_FAR_MS = 10_000


def pause_after(found: ClockOffset | NotMeasured | None) -> float:
    """Return the time in seconds until the next measurement.

    This pause is short during a controller election, which ends soon. It is long after a denial, which persists.
    """
    is_denied = isinstance(found, NotMeasured) and found.is_denied
    return _AFTER_DENIAL_SECONDS if is_denied else _EVERY_SECONDS


class ClockWatch:
    """Measures the clock offset.

    One process of a proxy does this for all workers. `offset_seconds` is how far the proxy's clock is ahead of the
    active controller's clock. It is negative if the proxy's clock is behind, and None if it is not measured.
    """

    def __init__(
        self,
        upstream: Upstream,
        tls: TlsContext | None,
        login: ClusterLogin,
        mark: int,
        status: Status,
        now_ms: Callable[[], int],
    ) -> None:
        """`mark` is the correlation id that identifies this proxy's own requests.

        `now_ms` returns the proxy's time.
        """
        self.offset_seconds: float | None = None
        self._upstream = upstream
        self._tls = tls
        self._login = login
        self._mark = mark
        self._status = status
        self._now_ms = now_ms

    async def measure_again(self) -> None:
        """Measure the offset, then wait."""
        found = await self._measure()
        self.learn(found)
        await asyncio.sleep(pause_after(found))

    async def _measure(self) -> ClockOffset | NotMeasured | None:
        """Return the offset. Return None if no broker responds or a login is missing."""
        if self._upstream.sasl is None and self._login.is_wanted:
            return None
        measure = partial(measure_offset, lambda: self._now_ms() * 1_000_000, 1)
        try:
            _, found = await ask_any_broker(self._upstream, self._tls, measure, self._mark)
        except NoBrokerResponses:
            return None
        return found

    def learn(self, found: ClockOffset | NotMeasured | None) -> None:
        """Set the offset and the condition according to a result."""
        if not isinstance(found, ClockOffset):
            self.offset_seconds = None
            self._status.end(Condition.CLOCK_OFFSET)
            return
        self.offset_seconds = -found.ahead_ms / 1000
        detail = None
        if abs(found.ahead_ms) - found.within_ms >= _TOO_FAR_MS:
            way = "behind" if found.ahead_ms > 0 else "ahead of"
            detail = (
                f"the clock of the proxy's machine is {abs(found.ahead_ms) / 1000:.1f} s {way} that of the active "
                f"controller (node {found.leader})"
            )
        self._status.set(Condition.CLOCK_OFFSET, detail)
