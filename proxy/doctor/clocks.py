"""Compares this machine's clock with the cluster's clock, because both validate the same timestamps."""

import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from functools import partial

from sluicegate.config.upstream import Upstream
from sluicegate.config.values.address import HostPort
from sluicegate.config.values.quantity import duration_text
from sluicegate.proxy.cluster.broker_client import NoBrokerResponses, ask_any_broker
from sluicegate.proxy.cluster.cluster_clock import NotMeasured, measure_offset
from sluicegate.proxy.doctor.check_result import CheckResult, Level
from sluicegate.proxy.doctor.checks import CheckedCluster, ClusterCheck
from sluicegate.proxy.network.tls.contexts import TlsContext

_ABOUT = "clock"
_REQUESTS = 3
WARNING_MS = 1000
"""At this offset or above, the proxy and a broker may decide differently about a record near a bound."""
FAILURE_MS = 60_000
"""NTP keeps clocks within a second. A clock with this offset or more is not synchronized at all."""

_BY_HAND = "check NTP on this machine and on the brokers (chronyc tracking, timedatectl)"
_SYNCHRONISE = "synchronise both clocks with NTP: the proxy validates timestamps by this machine's clock"


async def check_clock(
    upstream: Upstream, tls: TlsContext | None, asked: HostPort, now_ns: Callable[[], int] = time.time_ns
) -> CheckResult:
    """Compare `now_ns`, this machine's time, with the active controller's clock, which the broker `asked` reports."""
    try:
        alone = replace(upstream, bootstrap=(asked,))
        _, seen = await ask_any_broker(alone, tls, partial(measure_offset, now_ns, _REQUESTS))
    except NoBrokerResponses as error:
        seen = NotMeasured(str(error).removeprefix(f"{asked}: "))
    if isinstance(seen, NotMeasured):
        return CheckResult(_ABOUT, Level.NOT_CHECKED, seen.reason, _BY_HAND)
    way = "ahead of" if seen.ahead_ms >= 0 else "behind"
    off_ms = abs(seen.ahead_ms)
    found = (
        f"the active controller (node {seen.leader}) is {duration_text(off_ms)} {way} this machine, "
        f"within {duration_text(seen.within_ms)}"
    )
    certain_ms = off_ms - seen.within_ms
    if certain_ms >= WARNING_MS:
        return CheckResult(_ABOUT, Level.FAILURE if certain_ms >= FAILURE_MS else Level.WARNING, found, _SYNCHRONISE)
    return CheckResult(_ABOUT, Level.OK, f"{found}; the clocks of other brokers cannot be read")


async def _check(cluster: CheckedCluster) -> AsyncIterator[CheckResult]:
    yield await check_clock(cluster.config.upstream, cluster.tls, cluster.asked)


CHECK = ClusterCheck(10, (_ABOUT,), _check)
