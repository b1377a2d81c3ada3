"""Measures the offset between this machine's clock and the cluster's clock, because both validate the same records.

Kafka has no request for the time. However, the leader of the metadata quorum reports when each replica last caught up
(DescribeQuorum since version 1, KIP-836), and for itself it reports the current time. This reveals the active
controller's clock without a write. The clocks of other brokers cannot be read.
"""

from collections.abc import Callable
from dataclasses import dataclass

from sluicegate.protocol.api import ApiKey
from sluicegate.protocol.errors import error_name
from sluicegate.protocol.messages.cluster import DESCRIBE_QUORUM_REQUEST, DESCRIBE_QUORUM_RESPONSE, METADATA_TOPIC
from sluicegate.protocol.messages.schema import Value
from sluicegate.proxy.cluster.broker_client import BrokerClient
from sluicegate.proxy.cluster.response_bodies import read_response

_OFFERED_SINCE = 1
_CLUSTER_AUTHORIZATION_FAILED = 31


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """How far the clock of node `leader` is ahead of this machine's clock, and the possible error (ms)."""

    leader: int
    ahead_ms: int
    within_ms: int


@dataclass(frozen=True, slots=True)
class NotMeasured:
    """The cluster does not report its time. `is_denied` is true if the proxy's login may not ask for it."""

    reason: str
    is_denied: bool = False


async def measure_offset(now_ns: Callable[[], int], requests: int, client: BrokerClient) -> ClockOffset | NotMeasured:
    """Return the offset according to the fastest of several responses. `now_ns` returns this machine's time."""
    if client.version_of(ApiKey.DESCRIBE_QUORUM) < _OFFERED_SINCE:
        return NotMeasured("this broker does not report its time: it lacks DescribeQuorum v1 (Kafka 3.3 with KRaft)")
    partition = {"topic_name": METADATA_TOPIC, "partitions": [{"partition_index": 0}]}
    body = DESCRIBE_QUORUM_REQUEST.build({"topics": [partition]}, _OFFERED_SINCE)
    found_offsets = []
    for _ in range(requests):
        before = now_ns()
        response = await client.call(ApiKey.DESCRIBE_QUORUM, _OFFERED_SINCE, body)
        after = now_ns()
        found = _leaders_time(read_response(DESCRIBE_QUORUM_RESPONSE, response, _OFFERED_SINCE))
        if isinstance(found, NotMeasured):
            return found
        leader, theirs_ms = found
        within_ms = abs(after - before) // 2_000_000 + 1  # this machine's clock may be set back in between
        found_offsets.append(ClockOffset(leader, theirs_ms - (before + after) // 2_000_000, within_ms))
    return min(found_offsets, key=lambda offset: offset.within_ms)


def _leaders_time(response: Value) -> tuple[int, int] | NotMeasured:
    """Return the leader's node id and the time of its clock (ms)."""
    partitions = [partition for topic in response["topics"] for partition in topic["partitions"]]
    codes = [response["error_code"], *(partition["error_code"] for partition in partitions)]
    rejected = next((code for code in codes if code), None)
    if rejected is not None:
        return NotMeasured(_rejection(rejected), rejected == _CLUSTER_AUTHORIZATION_FAILED)
    for partition in partitions:
        leader: int = partition["leader_id"]
        for replica in partition["current_voters"]:
            if replica["replica_id"] == leader and replica["last_caught_up_timestamp"] > 0:
                return leader, replica["last_caught_up_timestamp"]
    return NotMeasured("the quorum's leader does not report its time")


def _rejection(code: int) -> str:
    return f"the cluster does not report its time: {error_name(code)} (the proxy's login needs DESCRIBE on the cluster)"
