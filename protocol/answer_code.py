"""Where an answer says whether its request as a whole succeeded: the error code at its head, behind the throttle time.

Only APIs whose answers have such a code; Produce, Metadata and their like have one for each topic or partition instead.
Versions of Kafka 4.3; held to Kafka's own definitions by a test.
"""

from struct import Struct

from sluicegate.protocol.errors import MalformedMessage
from sluicegate.protocol.produce_response import walk_produce_answer

_CODE = Struct(">h")
_THROTTLE_BYTES = 4
_ALWAYS, _NEVER = 0, 32767
_PRODUCE = 0
_MOST_ENTRIES = 10_000

_FIRST_AND_THROTTLED_SINCE: dict[int, tuple[int, int]] = {
    1: (7, 7),  # Fetch
    10: (_ALWAYS, 1),  # FindCoordinator, up to version 3
    11: (_ALWAYS, 2),  # JoinGroup
    12: (_ALWAYS, 1),  # Heartbeat
    13: (_ALWAYS, 1),  # LeaveGroup
    14: (_ALWAYS, 1),  # SyncGroup
    16: (_ALWAYS, 1),  # ListGroups
    17: (_ALWAYS, _NEVER),  # SaslHandshake
    18: (_ALWAYS, _NEVER),  # ApiVersions
    22: (_ALWAYS, _ALWAYS),  # InitProducerId
    24: (4, 4),  # AddPartitionsToTxn
    25: (_ALWAYS, _ALWAYS),  # AddOffsetsToTxn
    26: (_ALWAYS, _ALWAYS),  # EndTxn
    29: (_ALWAYS, _ALWAYS),  # DescribeAcls
    35: (3, 3),  # DescribeLogDirs
    36: (_ALWAYS, _NEVER),  # SaslAuthenticate
    38: (_ALWAYS, _NEVER),  # CreateDelegationToken
    39: (_ALWAYS, _NEVER),  # RenewDelegationToken
    40: (_ALWAYS, _NEVER),  # ExpireDelegationToken
    41: (_ALWAYS, _NEVER),  # DescribeDelegationToken
    43: (1, 1),  # ElectLeaders
    45: (_ALWAYS, _ALWAYS),  # AlterPartitionReassignments, version 0
    46: (_ALWAYS, _ALWAYS),  # ListPartitionReassignments
    47: (_ALWAYS, _NEVER),  # OffsetDelete
    48: (_ALWAYS, _ALWAYS),  # DescribeClientQuotas
    50: (_ALWAYS, _ALWAYS),  # DescribeUserScramCredentials
    55: (_ALWAYS, _NEVER),  # DescribeQuorum
    57: (_ALWAYS, _ALWAYS),  # UpdateFeatures
    60: (_ALWAYS, _ALWAYS),  # DescribeCluster
    64: (_ALWAYS, _ALWAYS),  # UnregisterBroker
    66: (_ALWAYS, _ALWAYS),  # ListTransactions
    68: (_ALWAYS, _ALWAYS),  # ConsumerGroupHeartbeat
    71: (_ALWAYS, _ALWAYS),  # GetTelemetrySubscriptions
    72: (_ALWAYS, _ALWAYS),  # PushTelemetry
    74: (_ALWAYS, _ALWAYS),  # ListConfigResources
    76: (_ALWAYS, _ALWAYS),  # ShareGroupHeartbeat
    78: (_ALWAYS, _ALWAYS),  # ShareFetch
    79: (_ALWAYS, _ALWAYS),  # ShareAcknowledge
    80: (_ALWAYS, _ALWAYS),  # AddRaftVoter
    81: (_ALWAYS, _ALWAYS),  # RemoveRaftVoter
    88: (_ALWAYS, _ALWAYS),  # StreamsGroupHeartbeat
    91: (_ALWAYS, _ALWAYS),  # AlterShareGroupOffsets
    92: (_ALWAYS, _ALWAYS),  # DeleteShareGroupOffsets
}
"""API key: the first version with a code, and the first in which the throttle time stands before it."""

_LAST = {10: 3, 45: 0}
"""The last version with a code, where later ones have none."""


def code_at(api_key: int, version: int) -> int | None:
    """Where the code stands in an answer's body (bytes); None where there is none."""
    first, throttled_since = _FIRST_AND_THROTTLED_SINCE.get(api_key, (_NEVER, _NEVER))
    if not first <= version <= _LAST.get(api_key, _NEVER):
        return None
    return _THROTTLE_BYTES if version >= throttled_since else 0


def codes_in(api_key: int, version: int, answer: bytes, body_at: int) -> tuple[int, ...]:
    """The codes of an answer, of each kind one: of all partitions for Produce. Empty where it has none, or is cut."""
    if api_key == _PRODUCE:
        try:
            entries = walk_produce_answer(answer, version, body_at, _MOST_ENTRIES).entries
        except MalformedMessage:
            return ()
        return tuple(sorted({entry.code for entry in entries}))
    at = code_at(api_key, version)
    if at is None or body_at + at + _CODE.size > len(answer):
        return ()
    return (_CODE.unpack_from(answer, body_at + at)[0],)
