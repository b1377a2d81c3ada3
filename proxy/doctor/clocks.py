"""How far this machine's clock and the cluster's are apart: both validate the same records.

Kafka has no question for the time. But the leader of the metadata quorum says when each replica was last caught up, and
of itself that is now, by its own clock (DescribeQuorum since version 1, KIP-836). So the active controller's clock can
be read without writing anything; a broker that is not it has to be trusted to keep the same time.
"""

import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from functools import partial

from sluicegate.config.upstream import Upstream
from sluicegate.config.values.address import HostPort
from sluicegate.protocol.api import ApiKey
from sluicegate.protocol.errors import error_name
from sluicegate.protocol.messages.cluster import DESCRIBE_QUORUM_REQUEST, DESCRIBE_QUORUM_RESPONSE, METADATA_TOPIC
from sluicegate.protocol.messages.schema import Value
from sluicegate.proxy.cluster.broker_client import BrokerClient, NoBrokerResponses, ask_any_broker
from sluicegate.proxy.doctor.checks import Cluster, ClusterCheck
from sluicegate.proxy.doctor.finding import Finding, Level
from sluicegate.proxy.network.tls.contexts import TlsContext

_ABOUT = "clock"
_TELLS_SINCE = 1
_QUESTIONS = 3
TOO_FAR_MS = 1000
"""From here on records near a bound get another verdict than a broker's."""

_OTHERWISE = "look at NTP (chronyc tracking, timedatectl) on this machine and on the brokers yourself"


@dataclass(frozen=True, slots=True)
class _Offset:
    """How far the clock of `leader` is ahead of ours, and how far that may be wrong (ms)."""

    leader: int
    ahead_ms: int
    within_ms: int


@dataclass(frozen=True, slots=True)
class _NotTold:
    """The cluster does not tell its time."""

    reason: str


async def finding(
    upstream: Upstream, tls: TlsContext | None, asked: HostPort, now_ns: Callable[[], int] = time.time_ns
) -> Finding:
    """By what the broker at `asked` says of its cluster's controller; `now_ns` is this machine's clock."""
    try:
        _, seen = await ask_any_broker(replace(upstream, bootstrap=(asked,)), tls, partial(_offset, now_ns))
    except NoBrokerResponses as error:
        seen = _NotTold(str(error).removeprefix(f"{asked}: "))
    if isinstance(seen, _NotTold):
        return Finding(_ABOUT, Level.UNSEEN, seen.reason, _OTHERWISE)
    way = "ahead of" if seen.ahead_ms >= 0 else "behind"
    far = f"{abs(seen.ahead_ms)} ms {way} this machine, give or take {seen.within_ms} ms"
    said = f"the active controller (node {seen.leader}) is {far}"
    if abs(seen.ahead_ms) - seen.within_ms >= TOO_FAR_MS:
        advice = "set both by NTP: a time near a bound is validated by this machine's clock here, by the broker's there"
        return Finding(_ABOUT, Level.WARNING, said, advice)
    return Finding(_ABOUT, Level.GOOD, f"{said}; of the other brokers' clocks nothing can be read without writing")


async def _offset(now_ns: Callable[[], int], client: BrokerClient) -> _Offset | _NotTold:
    """By the quickest of some answers."""
    if client.version_of(ApiKey.DESCRIBE_QUORUM) < _TELLS_SINCE:
        return _NotTold("this broker tells no clock: it has no DescribeQuorum v1 (Kafka 3.3 with KRaft)")
    partition = {"topic_name": METADATA_TOPIC, "partitions": [{"partition_index": 0}]}
    body = DESCRIBE_QUORUM_REQUEST.build({"topics": [partition]}, _TELLS_SINCE)
    best: _Offset | None = None
    for _ in range(_QUESTIONS):
        before = now_ns()
        answer = await client.call(ApiKey.DESCRIBE_QUORUM, _TELLS_SINCE, body)
        after = now_ns()
        told = _leaders_time(DESCRIBE_QUORUM_RESPONSE.parse(answer, _TELLS_SINCE))
        if isinstance(told, _NotTold):
            return told
        leader, theirs_ms = told
        within_ms = (after - before) // 2_000_000 + 1
        if best is None or within_ms < best.within_ms:
            best = _Offset(leader, theirs_ms - (before + after) // 2_000_000, within_ms)
    assert best is not None
    return best


def _leaders_time(answer: Value) -> tuple[int, int] | _NotTold:
    """The leader's id and its clock (ms)."""
    partitions = [partition for topic in answer["topics"] for partition in topic["partitions"]]
    codes = [answer["error_code"], *(partition["error_code"] for partition in partitions)]
    rejected = next((code for code in codes if code), None)
    if rejected is not None:
        return _NotTold(_rejection(rejected))
    for partition in partitions:
        leader: int = partition["leader_id"]
        for replica in partition["current_voters"]:
            if replica["replica_id"] == leader and replica["last_caught_up_timestamp"] > 0:
                return leader, replica["last_caught_up_timestamp"]
    return _NotTold("the quorum has no leader that tells its time")


def _rejection(code: int) -> str:
    return f"the cluster does not tell its time: {error_name(code)} (the proxy's login needs DESCRIBE on the cluster)"


async def _findings(cluster: Cluster) -> AsyncIterator[Finding]:
    yield await finding(cluster.config.upstream, cluster.tls, cluster.asked)


CHECK = ClusterCheck(10, (_ABOUT,), _findings)
