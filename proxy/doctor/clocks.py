"""Compares this machine's clock with the cluster's: both validate the same timestamps.

Kafka has no API for the time. But the leader of the metadata quorum reports when each replica was last caught up, and
for itself that is the current time by its own clock (DescribeQuorum since version 1, KIP-836). So the check reads the
active controller's clock without writing. The clocks of other brokers cannot be read.
"""

import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from functools import partial

from sluicegate.config.upstream import Upstream
from sluicegate.config.values.address import HostPort
from sluicegate.config.values.quantity import duration_text
from sluicegate.protocol.api import ApiKey
from sluicegate.protocol.errors import error_name
from sluicegate.protocol.messages.cluster import DESCRIBE_QUORUM_REQUEST, DESCRIBE_QUORUM_RESPONSE, METADATA_TOPIC
from sluicegate.protocol.messages.schema import Value
from sluicegate.proxy.cluster.broker_client import BrokerClient, NoBrokerResponses, ask_any_broker
from sluicegate.proxy.doctor.checks import Cluster, ClusterCheck
from sluicegate.proxy.doctor.finding import Finding, Level
from sluicegate.proxy.network.tls.contexts import TlsContext

_ABOUT = "clock"
_WITH_TIME_SINCE = 1
_REQUESTS = 3
WARNING_MS = 1000
"""From this offset on, records near a bound get another verdict here than from a broker."""
FAILURE_MS = 60_000
"""NTP keeps clocks within a second; from this offset on, a clock is not synchronised at all."""

_BY_HAND = "check NTP on this machine and on the brokers (chronyc tracking, timedatectl)"
_SYNCHRONISE = "synchronise both clocks by NTP: the proxy validates timestamps by this machine's clock"


@dataclass(frozen=True, slots=True)
class _Offset:
    """How far the clock of `leader` is ahead of this machine's, and the uncertainty (ms)."""

    leader: int
    ahead_ms: int
    within_ms: int


@dataclass(frozen=True, slots=True)
class _NoTime:
    """The cluster does not report its time."""

    reason: str


async def finding(
    upstream: Upstream, tls: TlsContext | None, asked: HostPort, now_ns: Callable[[], int] = time.time_ns
) -> Finding:
    """Compare `now_ns`, this machine's clock, with that of the active controller, as reported by the broker `asked`."""
    try:
        _, seen = await ask_any_broker(replace(upstream, bootstrap=(asked,)), tls, partial(_offset, now_ns))
    except NoBrokerResponses as error:
        seen = _NoTime(str(error).removeprefix(f"{asked}: "))
    if isinstance(seen, _NoTime):
        return Finding(_ABOUT, Level.NOT_CHECKED, seen.reason, _BY_HAND)
    way = "ahead of" if seen.ahead_ms >= 0 else "behind"
    off_ms = abs(seen.ahead_ms)
    found = (
        f"the active controller (node {seen.leader}) is {duration_text(off_ms)} {way} this machine, "
        f"within {duration_text(seen.within_ms)}"
    )
    certain_ms = off_ms - seen.within_ms
    if certain_ms >= WARNING_MS:
        return Finding(_ABOUT, Level.FAILURE if certain_ms >= FAILURE_MS else Level.WARNING, found, _SYNCHRONISE)
    return Finding(_ABOUT, Level.OK, f"{found}; the clocks of other brokers cannot be read")


async def _offset(now_ns: Callable[[], int], client: BrokerClient) -> _Offset | _NoTime:
    """Return the offset by the quickest of some responses."""
    if client.version_of(ApiKey.DESCRIBE_QUORUM) < _WITH_TIME_SINCE:
        return _NoTime("this broker reports no time: it has no DescribeQuorum v1 (Kafka 3.3 with KRaft)")
    partition = {"topic_name": METADATA_TOPIC, "partitions": [{"partition_index": 0}]}
    body = DESCRIBE_QUORUM_REQUEST.build({"topics": [partition]}, _WITH_TIME_SINCE)
    best: _Offset | None = None
    for _ in range(_REQUESTS):
        before = now_ns()
        response = await client.call(ApiKey.DESCRIBE_QUORUM, _WITH_TIME_SINCE, body)
        after = now_ns()
        time_of_leader = _leaders_time(DESCRIBE_QUORUM_RESPONSE.parse(response, _WITH_TIME_SINCE))
        if isinstance(time_of_leader, _NoTime):
            return time_of_leader
        leader, theirs_ms = time_of_leader
        within_ms = (after - before) // 2_000_000 + 1
        if best is None or within_ms < best.within_ms:
            best = _Offset(leader, theirs_ms - (before + after) // 2_000_000, within_ms)
    assert best is not None
    return best


def _leaders_time(response: Value) -> tuple[int, int] | _NoTime:
    """Return the leader's id and its clock (ms)."""
    partitions = [partition for topic in response["topics"] for partition in topic["partitions"]]
    codes = [response["error_code"], *(partition["error_code"] for partition in partitions)]
    rejected = next((code for code in codes if code), None)
    if rejected is not None:
        return _NoTime(_rejection(rejected))
    for partition in partitions:
        leader: int = partition["leader_id"]
        for replica in partition["current_voters"]:
            if replica["replica_id"] == leader and replica["last_caught_up_timestamp"] > 0:
                return leader, replica["last_caught_up_timestamp"]
    return _NoTime("the quorum has no leader that reports its time")


def _rejection(code: int) -> str:
    return f"the cluster does not report its time: {error_name(code)} (the proxy's login needs DESCRIBE on the cluster)"


async def _findings(cluster: Cluster) -> AsyncIterator[Finding]:
    yield await finding(cluster.config.upstream, cluster.tls, cluster.asked)


CHECK = ClusterCheck(10, (_ABOUT,), _findings)
