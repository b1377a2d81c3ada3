"""Defines the API table: every request that a client may send to a broker, and how the proxy handles it.

Keys, versions and first flexible versions are those of Kafka 4.4. The proxy never offers a client a key or version that
is missing from this table, because its response might contain addresses. (ApiVersions responses are reduced to this
table.)

Fetch ends at version 15. From version 16 on, node endpoints follow the records, so the proxy could rewrite them only by
buffering whole responses (docs/design.md contains the measurement). All that consumers lose is faster leader discovery
(KIP-951).
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum, IntEnum

from sluicegate.protocol.layout import (
    ADDRESS,
    BYTES,
    ERROR,
    INT8,
    INT16,
    INT32,
    INT64,
    MAX_COORDINATORS,
    NODE_ENDPOINTS,
    REST,
    STRING,
    UUID,
    LayoutField,
    array,
    flaw_in,
    nodes,
    since,
    struct,
    until,
)

NOT_FLEXIBLE = 32767
MAX_BYTES_BEFORE_LOGIN = 524_288
"""The largest frame that a broker accepts before a login: Kafka's default sasl.server.max.receive.size (KIP-223)."""


class ApiKey(IntEnum):
    """API keys that the proxy handles specially, or that the proxy or the pipeline sends."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    FIND_COORDINATOR = 10
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    INIT_PRODUCER_ID = 22
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    SASL_AUTHENTICATE = 36
    INCREMENTAL_ALTER_CONFIGS = 44
    DESCRIBE_QUORUM = 55
    DESCRIBE_CLUSTER = 60
    SHARE_FETCH = 78
    SHARE_ACKNOWLEDGE = 79


class ApiHandling(Enum):
    """How the proxy handles an API."""

    OPAQUE = "bytes are forwarded in both directions"
    GUARD = "as OPAQUE, except that changes of the proxies' own topics are refused, and topic settings are stored"
    DESCRIBE = "as OPAQUE, except that topic settings which sluicegate stores are added to the response"
    HEARTBEAT = "as OPAQUE, except that heartbeats are rejected in front of a mock cluster (`sluicegate sandbox`)"
    VALIDATE = "the request is gathered and validated; its response may be merged"
    REWRITE = "the response is gathered and the addresses in it are rewritten"
    WATCH = "request and response are gathered, read and forwarded unchanged"
    NEGOTIATE = "the response is reduced to this table"


@dataclass(frozen=True, slots=True)
class CodeAt:
    """The position of an error code at the start of a response, in versions `since` to `until`.

    From version `throttled` on, a throttle time precedes the code.
    """

    since: int
    throttled: int
    until: int = NOT_FLEXIBLE


_FIRST, _AFTER_THROTTLE = CodeAt(0, NOT_FLEXIBLE), CodeAt(0, 0)
"""The code at the very start of the response, and the code after a throttle time."""


@dataclass(frozen=True, slots=True)
class Api:
    """An API. `max_version` is the highest supported version, `flexible_since` the first flexible version.

    `code` is the position of the error code for the whole request. It is None if the response has no such code, or one
    per topic or partition. `codes` is the layout of a response with such codes, up to the last code. `layout` contains
    the fields of a response that the proxy rewrites (see `rewritten`).
    """

    key: int
    name: str
    max_version: int
    flexible_since: int
    handling: ApiHandling = ApiHandling.OPAQUE
    code: CodeAt | None = None
    codes: tuple[LayoutField, ...] = ()
    layout: tuple[LayoutField, ...] = ()

    def is_flexible(self, version: int) -> bool:
        """Return whether this version uses compact types and tagged fields (KIP-482)."""
        return version >= self.flexible_since

    def request_header_version(self, version: int) -> int:
        """Return the header version of a request: 2 if flexible, otherwise 1."""
        return 2 if self.is_flexible(version) else 1

    def response_header_version(self, version: int) -> int:
        """Return the header version of a response: 1 if flexible, otherwise 0.

        For ApiVersions, it is always 0 (KIP-511).
        """
        if self.key == ApiKey.API_VERSIONS:
            return 0
        return 1 if self.is_flexible(version) else 0


_VALIDATE, _WATCH, _GUARD = ApiHandling.VALIDATE, ApiHandling.WATCH, ApiHandling.GUARD


def rewritten(api: Api, *layout: LayoutField) -> Api:
    """Return an API whose responses the proxy rewrites: the proxy's addresses replace those in `layout`.

    Raises ValueError if the layout does not allow this.
    """
    flaw = flaw_in(layout)
    if flaw is not None:
        raise ValueError(f"layout of {api.name}: {flaw}")
    return replace(api, handling=ApiHandling.REWRITE, layout=layout)


_PRODUCE_CODES = (
    array(
        until(12, STRING),
        since(13, UUID),
        array(
            *(INT32, ERROR, INT64),  # partition, base offset
            *(since(2, INT64), since(5, INT64)),  # append time, log start
            *(since(8, array(INT32, STRING)), since(8, STRING)),  # record errors, message
        ),
    ),
    REST,
)
_FETCH_CODES = (
    *(since(1, INT32), since(7, ERROR), since(7, INT32)),  # throttle time, session
    array(
        until(12, STRING),
        since(13, UUID),
        array(
            *(INT32, ERROR, INT64),  # partition, high watermark
            *(since(4, INT64), since(5, INT64)),  # last stable offset, log start
            since(4, array(INT64, INT64)),  # aborted transactions
            *(since(11, INT32), BYTES),  # preferred replica, records
        ),
    ),
    REST,
)
_LIST_OFFSETS_CODES = (
    since(2, INT32),  # throttle time
    array(
        STRING,
        array(INT32, ERROR, until(0, array(INT64)), since(1, INT64), since(1, INT64), since(4, INT32)),
    ),
    REST,
)
_OFFSET_COMMIT_CODES = (
    since(3, INT32),  # throttle time
    array(until(9, STRING), since(10, UUID), array(INT32, ERROR)),
    REST,
)
_TXN_OFFSET_COMMIT_CODES = (INT32, array(until(5, STRING), since(6, UUID), array(INT32, ERROR)), REST)


def apis_by_key(apis: Iterable[Api]) -> dict[int, Api]:
    """Return the APIs by key. Raises ValueError if two have the same key."""
    found: dict[int, Api] = {}
    for api in apis:
        if api.key in found:
            raise ValueError(f"{found[api.key].name} and {api.name} have the same key, {api.key}")
        found[api.key] = api
    return found


APIS = apis_by_key(
    (
        Api(0, "Produce", 13, 9, _VALIDATE, codes=_PRODUCE_CODES),
        Api(1, "Fetch", 15, 12, code=CodeAt(7, 7), codes=_FETCH_CODES),
        Api(2, "ListOffsets", 11, 6, codes=_LIST_OFFSETS_CODES),
        rewritten(
            Api(3, "Metadata", 13, 9),
            # Throttle time, followed by the brokers with their racks; topics come later.
            since(3, INT32),
            nodes(ADDRESS, since(1, STRING)),
            REST,
        ),
        Api(8, "OffsetCommit", 10, 8, codes=_OFFSET_COMMIT_CODES),
        Api(9, "OffsetFetch", 10, 6),
        rewritten(
            Api(10, "FindCoordinator", 6, 3, code=CodeAt(0, 1, 3)),
            since(1, INT32),  # throttle time
            until(3, ERROR),
            until(3, since(1, STRING)),
            until(3, ADDRESS),
            since(4, nodes(STRING, ADDRESS, ERROR, STRING, most=MAX_COORDINATORS)),
        ),
        Api(11, "JoinGroup", 9, 6, code=CodeAt(0, 2)),
        Api(12, "Heartbeat", 4, 4, code=CodeAt(0, 1)),
        Api(13, "LeaveGroup", 5, 4, code=CodeAt(0, 1)),
        Api(14, "SyncGroup", 5, 4, code=CodeAt(0, 1)),
        Api(15, "DescribeGroups", 6, 5),
        Api(16, "ListGroups", 5, 3, code=CodeAt(0, 1)),
        Api(17, "SaslHandshake", 1, NOT_FLEXIBLE, _WATCH, code=_FIRST),
        Api(18, "ApiVersions", 5, 3, ApiHandling.NEGOTIATE, code=_FIRST),
        Api(19, "CreateTopics", 7, 5, _GUARD),
        Api(20, "DeleteTopics", 6, 4, _GUARD),
        Api(21, "DeleteRecords", 2, 2, _GUARD),
        Api(22, "InitProducerId", 6, 2, code=_AFTER_THROTTLE),
        Api(23, "OffsetForLeaderEpoch", 4, 4),
        Api(24, "AddPartitionsToTxn", 5, 3, _GUARD, code=CodeAt(4, 4)),
        Api(25, "AddOffsetsToTxn", 4, 3, code=_AFTER_THROTTLE),
        Api(26, "EndTxn", 5, 3, code=_AFTER_THROTTLE),
        Api(27, "WriteTxnMarkers", 2, 1, _GUARD),
        Api(28, "TxnOffsetCommit", 6, 3, codes=_TXN_OFFSET_COMMIT_CODES),
        Api(29, "DescribeAcls", 3, 2, code=_AFTER_THROTTLE),
        Api(30, "CreateAcls", 3, 2),
        Api(31, "DeleteAcls", 3, 2),
        Api(32, "DescribeConfigs", 4, 4, ApiHandling.DESCRIBE),
        Api(33, "AlterConfigs", 2, 2, _GUARD),
        Api(34, "AlterReplicaLogDirs", 2, 2, _GUARD),
        Api(35, "DescribeLogDirs", 5, 2, code=CodeAt(3, 3)),
        Api(36, "SaslAuthenticate", 2, 2, _WATCH, code=_FIRST),
        Api(37, "CreatePartitions", 3, 2, _GUARD),
        Api(38, "CreateDelegationToken", 3, 2, code=_FIRST),
        Api(39, "RenewDelegationToken", 2, 2, code=_FIRST),
        Api(40, "ExpireDelegationToken", 2, 2, code=_FIRST),
        Api(41, "DescribeDelegationToken", 3, 2, code=_FIRST),
        Api(42, "DeleteGroups", 3, 2),
        Api(43, "ElectLeaders", 2, 2, _GUARD, code=CodeAt(1, 1)),
        Api(44, "IncrementalAlterConfigs", 1, 1, _GUARD),
        Api(45, "AlterPartitionReassignments", 1, 0, _GUARD, code=CodeAt(0, 0, 0)),
        Api(46, "ListPartitionReassignments", 0, 0, code=_AFTER_THROTTLE),
        Api(47, "OffsetDelete", 0, NOT_FLEXIBLE, code=_FIRST),
        Api(48, "DescribeClientQuotas", 1, 1, code=_AFTER_THROTTLE),
        Api(49, "AlterClientQuotas", 1, 1),
        Api(50, "DescribeUserScramCredentials", 0, 0, code=_AFTER_THROTTLE),
        Api(51, "AlterUserScramCredentials", 0, 0),
        Api(55, "DescribeQuorum", 2, 0, code=_FIRST),
        Api(57, "UpdateFeatures", 2, 0, code=_AFTER_THROTTLE),
        rewritten(
            Api(60, "DescribeCluster", 2, 0, code=_AFTER_THROTTLE),
            *(INT32, INT16, STRING),  # throttle time, error code and message
            since(1, INT8),
            *(STRING, INT32),  # cluster id, controller
            nodes(ADDRESS, STRING, since(2, INT8)),
            INT32,
        ),
        Api(61, "DescribeProducers", 0, 0),
        Api(64, "UnregisterBroker", 0, 0, code=_AFTER_THROTTLE),
        Api(65, "DescribeTransactions", 0, 0),
        Api(66, "ListTransactions", 2, 0, code=_AFTER_THROTTLE),
        Api(68, "ConsumerGroupHeartbeat", 1, 0, ApiHandling.HEARTBEAT, code=_AFTER_THROTTLE),
        Api(69, "ConsumerGroupDescribe", 1, 0),
        Api(71, "GetTelemetrySubscriptions", 0, 0, code=_AFTER_THROTTLE),
        Api(72, "PushTelemetry", 0, 0, code=_AFTER_THROTTLE),
        Api(74, "ListConfigResources", 1, 0, code=_AFTER_THROTTLE),
        Api(75, "DescribeTopicPartitions", 0, 0),
        Api(76, "ShareGroupHeartbeat", 1, 0, ApiHandling.HEARTBEAT, code=_AFTER_THROTTLE),
        Api(77, "ShareGroupDescribe", 1, 0),
        rewritten(
            Api(78, "ShareFetch", 2, 0, code=_AFTER_THROTTLE),
            *(INT32, INT16, STRING, since(1, INT32)),  # throttle time, error code and message, lock timeout
            array(
                UUID,
                array(
                    *(INT32, INT16, STRING, INT16, STRING, struct(INT32, INT32), BYTES),
                    array(INT64, INT64, INT16),
                ),
            ),
            NODE_ENDPOINTS,
        ),
        rewritten(
            Api(79, "ShareAcknowledge", 2, 0, code=_AFTER_THROTTLE),
            *(INT32, INT16, STRING, since(2, INT32)),  # throttle time, error code and message, lock timeout
            array(UUID, array(INT32, INT16, STRING, struct(INT32, INT32))),
            NODE_ENDPOINTS,
        ),
        Api(80, "AddRaftVoter", 1, 0, code=_AFTER_THROTTLE),
        Api(81, "RemoveRaftVoter", 0, 0, code=_AFTER_THROTTLE),
        Api(83, "InitializeShareGroupState", 0, 0),
        Api(84, "ReadShareGroupState", 0, 0),
        Api(85, "WriteShareGroupState", 1, 0),
        Api(86, "DeleteShareGroupState", 0, 0),
        Api(87, "ReadShareGroupStateSummary", 1, 0),
        Api(88, "StreamsGroupHeartbeat", 1, 0, code=_AFTER_THROTTLE),
        Api(89, "StreamsGroupDescribe", 1, 0),
        Api(90, "DescribeShareGroupOffsets", 1, 0),
        Api(91, "AlterShareGroupOffsets", 0, 0, code=_AFTER_THROTTLE),
        Api(92, "DeleteShareGroupOffsets", 0, 0, code=_AFTER_THROTTLE),
        Api(93, "StreamsGroupTopologyDescriptionUpdate", 0, 0, code=_AFTER_THROTTLE),
        Api(94, "UnregisterController", 0, 0, code=_AFTER_THROTTLE),
    )
)
