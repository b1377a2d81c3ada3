"""The API table: every request a client may send to a broker, and how far sluicegate understands it.

Keys, versions and first flexible versions are those of Kafka 4.3; a key or version that is not here is never
offered to a client (ApiVersions answers are cut down to this table), because its answer might carry addresses.
Two entries end below Kafka's own: Fetch at 15, because from 16 on node endpoints follow the records and could
only be rewritten by holding back whole answers (docs/design.md has the measurement); nothing but faster leader
discovery (KIP-951) is lost for consumers.
"""

from dataclasses import dataclass
from enum import Enum, IntEnum

NOT_FLEXIBLE = 32767
MAX_BYTES_BEFORE_LOGIN = 524_288
"""No broker takes more in one frame before a login (Kafka's default of sasl.server.max.receive.size, KIP-223)."""


class ApiKey(IntEnum):
    """API keys that the proxy treats in a way of their own, or that it or the pipeline asks."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    FIND_COORDINATOR = 10
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    INIT_PRODUCER_ID = 22
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_CONFIGS = 32
    SASL_AUTHENTICATE = 36
    DESCRIBE_QUORUM = 55
    DESCRIBE_CLUSTER = 60
    SHARE_FETCH = 78
    SHARE_ACKNOWLEDGE = 79


class Treatment(Enum):
    """What the proxy does with an API."""

    OPAQUE = "bytes pass as they come, both ways"
    JUDGE = "the request is gathered and judged; its answer may be merged"
    REWRITE = "the answer is gathered and the addresses in it are rewritten"
    WATCH = "request and answer are gathered and read, and pass unchanged"
    NEGOTIATE = "the answer is cut down to this table"


@dataclass(frozen=True, slots=True)
class Api:
    """One API: `max_version` is the highest version understood, `flexible_since` the first flexible one."""

    key: int
    name: str
    max_version: int
    flexible_since: int
    treatment: Treatment = Treatment.OPAQUE

    def is_flexible(self, version: int) -> bool:
        """Whether requests and answers of this version use compact types and tagged fields (KIP-482)."""
        return version >= self.flexible_since

    def request_header_version(self, version: int) -> int:
        """Header version of a request: 2 when flexible, else 1."""
        return 2 if self.is_flexible(version) else 1

    def response_header_version(self, version: int) -> int:
        """Header version of an answer: 1 when flexible, else 0; ApiVersions answers always have 0 (KIP-511)."""
        if self.key == ApiKey.API_VERSIONS:
            return 0
        return 1 if self.is_flexible(version) else 0


_JUDGE, _REWRITE, _WATCH = Treatment.JUDGE, Treatment.REWRITE, Treatment.WATCH

APIS: dict[int, Api] = {
    api.key: api
    for api in (
        Api(0, "Produce", 13, 9, _JUDGE),
        Api(1, "Fetch", 15, 12),
        Api(2, "ListOffsets", 11, 6),
        Api(3, "Metadata", 13, 9, _REWRITE),
        Api(8, "OffsetCommit", 10, 8),
        Api(9, "OffsetFetch", 10, 6),
        Api(10, "FindCoordinator", 6, 3, _REWRITE),
        Api(11, "JoinGroup", 9, 6),
        Api(12, "Heartbeat", 4, 4),
        Api(13, "LeaveGroup", 5, 4),
        Api(14, "SyncGroup", 5, 4),
        Api(15, "DescribeGroups", 6, 5),
        Api(16, "ListGroups", 5, 3),
        Api(17, "SaslHandshake", 1, NOT_FLEXIBLE, _WATCH),
        Api(18, "ApiVersions", 4, 3, Treatment.NEGOTIATE),
        Api(19, "CreateTopics", 7, 5),
        Api(20, "DeleteTopics", 6, 4),
        Api(21, "DeleteRecords", 2, 2),
        Api(22, "InitProducerId", 6, 2),
        Api(23, "OffsetForLeaderEpoch", 4, 4),
        Api(24, "AddPartitionsToTxn", 5, 3),
        Api(25, "AddOffsetsToTxn", 4, 3),
        Api(26, "EndTxn", 5, 3),
        Api(27, "WriteTxnMarkers", 2, 1),
        Api(28, "TxnOffsetCommit", 5, 3),
        Api(29, "DescribeAcls", 3, 2),
        Api(30, "CreateAcls", 3, 2),
        Api(31, "DeleteAcls", 3, 2),
        Api(32, "DescribeConfigs", 4, 4),
        Api(33, "AlterConfigs", 2, 2),
        Api(34, "AlterReplicaLogDirs", 2, 2),
        Api(35, "DescribeLogDirs", 5, 2),
        Api(36, "SaslAuthenticate", 2, 2, _WATCH),
        Api(37, "CreatePartitions", 3, 2),
        Api(38, "CreateDelegationToken", 3, 2),
        Api(39, "RenewDelegationToken", 2, 2),
        Api(40, "ExpireDelegationToken", 2, 2),
        Api(41, "DescribeDelegationToken", 3, 2),
        Api(42, "DeleteGroups", 2, 2),
        Api(43, "ElectLeaders", 2, 2),
        Api(44, "IncrementalAlterConfigs", 1, 1),
        Api(45, "AlterPartitionReassignments", 1, 0),
        Api(46, "ListPartitionReassignments", 0, 0),
        Api(47, "OffsetDelete", 0, NOT_FLEXIBLE),
        Api(48, "DescribeClientQuotas", 1, 1),
        Api(49, "AlterClientQuotas", 1, 1),
        Api(50, "DescribeUserScramCredentials", 0, 0),
        Api(51, "AlterUserScramCredentials", 0, 0),
        Api(55, "DescribeQuorum", 2, 0),
        Api(57, "UpdateFeatures", 2, 0),
        Api(60, "DescribeCluster", 2, 0, _REWRITE),
        Api(61, "DescribeProducers", 0, 0),
        Api(64, "UnregisterBroker", 0, 0),
        Api(65, "DescribeTransactions", 0, 0),
        Api(66, "ListTransactions", 2, 0),
        Api(68, "ConsumerGroupHeartbeat", 1, 0),
        Api(69, "ConsumerGroupDescribe", 1, 0),
        Api(71, "GetTelemetrySubscriptions", 0, 0),
        Api(72, "PushTelemetry", 0, 0),
        Api(74, "ListConfigResources", 1, 0),
        Api(75, "DescribeTopicPartitions", 0, 0),
        Api(76, "ShareGroupHeartbeat", 1, 0),
        Api(77, "ShareGroupDescribe", 1, 0),
        Api(78, "ShareFetch", 2, 0, _REWRITE),
        Api(79, "ShareAcknowledge", 2, 0, _REWRITE),
        Api(80, "AddRaftVoter", 1, 0),
        Api(81, "RemoveRaftVoter", 0, 0),
        Api(83, "InitializeShareGroupState", 0, 0),
        Api(84, "ReadShareGroupState", 0, 0),
        Api(85, "WriteShareGroupState", 1, 0),
        Api(86, "DeleteShareGroupState", 0, 0),
        Api(87, "ReadShareGroupStateSummary", 1, 0),
        Api(88, "StreamsGroupHeartbeat", 0, 0),
        Api(89, "StreamsGroupDescribe", 0, 0),
        Api(90, "DescribeShareGroupOffsets", 1, 0),
        Api(91, "AlterShareGroupOffsets", 0, 0),
        Api(92, "DeleteShareGroupOffsets", 0, 0),
    )
}


def understands(key: int, version: int) -> bool:
    """Whether this proxy knows the API `key` in `version`."""
    api = APIS.get(key)
    return api is not None and 0 <= version <= api.max_version
