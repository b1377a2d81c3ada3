"""Finds the ACLs that a login lacks before anything is written.

A broker checks ACLs before the rest of a request. Each ACL is therefore tested with a request that the broker rejects
for another reason if the ACL exists. None of these requests writes, creates or commits anything.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from struct import Struct

from sluicegate.pipeline.kafka.cluster import KafkaCluster
from sluicegate.pipeline.kafka.connection import BrokerConnection
from sluicegate.protocol.api import ApiKey
from sluicegate.protocol.messages.cluster import DESCRIBE_CONFIGS_REQUEST, DESCRIBE_CONFIGS_RESPONSE
from sluicegate.protocol.messages.produce import PRODUCE_REQUEST, PRODUCE_RESPONSE
from sluicegate.protocol.messages.transactions import INIT_PRODUCER_ID_REQUEST, INIT_PRODUCER_ID_RESPONSE

_HEARTBEAT, _CREATE_TOPICS = 12, 19
_CREATE_TOPICS_VERSION, _PRODUCE_VERSION = 2, 3
_TOPIC_RESOURCE = 2
_DENIED = frozenset({29, 30, 31, 53})
"""TOPIC, GROUP, CLUSTER and TRANSACTIONAL_ID_AUTHORIZATION_FAILED."""
_INT16, _INT32 = Struct(">h"), Struct(">i")
_NO_TIME_MS = -1  # rejected as a transaction timeout, after the ACLs are checked


class BrokerOperation(Enum):
    """Operations and their names in `kafka-acls`."""

    READ = "Read"
    WRITE = "Write"
    CREATE = "Create"
    DESCRIBE_CONFIGS = "DescribeConfigs"


class Resource(Enum):
    """Resource types and their options in `kafka-acls`."""

    TOPIC = "topic"
    GROUP = "group"
    TRANSACTIONAL_ID = "transactional-id"


@dataclass(frozen=True, slots=True)
class RequiredAcl:
    """An ACL for an operation on a resource.

    `prefix` is the prefix of the name if the whole name is not known yet, otherwise "".
    """

    resource: Resource
    name: str
    operation: BrokerOperation
    prefix: str = ""

    def in_words(self, principal: str) -> str:
        """Return a sentence about the missing ACL, with the command that adds it."""
        named, pattern = (self.prefix, " --resource-pattern-type prefixed") if self.prefix else (self.name, "")
        return (
            f"{self.operation.name} on {self.resource.value} {named}{'*' if self.prefix else ''} is missing: "
            f"kafka-acls --bootstrap-server HOST:PORT --add --allow-principal {principal} "
            f"--operation {self.operation.value} --{self.resource.value} {named}{pattern}"
        )


def find_missing_acls(cluster: KafkaCluster, required: Iterable[RequiredAcl]) -> list[RequiredAcl]:
    """Return the ACLs that the login lacks, in order. Raises BrokerUnreachable."""
    return [acl for acl in required if _code(cluster, acl) in _DENIED]


def _code(cluster: KafkaCluster, acl: RequiredAcl) -> int:
    probe = _PROBES[acl.resource, acl.operation]
    return cluster.ask_any(lambda broker: probe(broker, acl.name))


def _read_group(broker: BrokerConnection, group: str) -> int:
    """Send a heartbeat from an unknown member."""
    response = broker.send_raw(_HEARTBEAT, 0, _text(group) + _INT32.pack(0) + _text("no-member"))
    return int(_INT16.unpack_from(response, 0)[0])


def _write_transactional_id(broker: BrokerConnection, transactional_id: str) -> int:
    """Initialize a producer with an invalid transaction timeout."""
    body = {"transactional_id": transactional_id, "transaction_timeout_ms": _NO_TIME_MS}
    response = broker.call(ApiKey.INIT_PRODUCER_ID, INIT_PRODUCER_ID_REQUEST, INIT_PRODUCER_ID_RESPONSE, body)
    return int(response["error_code"])


def _create_topic(broker: BrokerConnection, topic: str) -> int:
    """Create a topic with validate_only."""
    nothing, only_check = _INT32.pack(0), b"\1"
    wanted = _INT32.pack(1) + _text(topic) + _INT32.pack(1) + _INT16.pack(1) + nothing + nothing
    body = wanted + _INT32.pack(int(broker.timeout_seconds * 1000)) + only_check
    response = broker.send_raw(_CREATE_TOPICS, _CREATE_TOPICS_VERSION, body)
    return int(_INT16.unpack_from(response, 2 * _INT32.size + len(_text(topic)))[0])


def _write_topic(broker: BrokerConnection, topic: str) -> int:
    """Produce an empty record set."""
    partition = {"index": 0, "records": b""}
    body = {"acks": 1, "timeout_ms": 1000, "topic_data": [{"name": topic, "partition_data": [partition]}]}
    response = broker.call(ApiKey.PRODUCE, PRODUCE_REQUEST, PRODUCE_RESPONSE, body, _PRODUCE_VERSION)
    return int(response["responses"][0]["partition_responses"][0]["error_code"])


def _read_topic(broker: BrokerConnection, topic: str) -> int:
    """Fetch from an invalid offset."""
    partition = {"partition": 0, "fetch_offset": -1, "partition_max_bytes": 1}
    topics = [{"topic": topic, "partitions": [partition]}]
    code, found = broker.fetch(
        {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 1, "isolation_level": 0, "topics": topics}
    )
    return code or (found.error_code if found is not None else 0)


def _describe_configs(broker: BrokerConnection, topic: str) -> int:
    """Read one setting."""
    one = {"resource_type": _TOPIC_RESOURCE, "resource_name": topic, "configuration_keys": ["retention.ms"]}
    response = broker.call(
        ApiKey.DESCRIBE_CONFIGS,
        DESCRIBE_CONFIGS_REQUEST,
        DESCRIBE_CONFIGS_RESPONSE,
        {"resources": [one]},
        max(DESCRIBE_CONFIGS_REQUEST.versions),
    )
    return int(response["results"][0]["error_code"])


def _text(text: str) -> bytes:
    encoded = text.encode()
    return _INT16.pack(len(encoded)) + encoded


_PROBES: dict[tuple[Resource, BrokerOperation], Callable[[BrokerConnection, str], int]] = {
    (Resource.GROUP, BrokerOperation.READ): _read_group,
    (Resource.TRANSACTIONAL_ID, BrokerOperation.WRITE): _write_transactional_id,
    (Resource.TOPIC, BrokerOperation.CREATE): _create_topic,
    (Resource.TOPIC, BrokerOperation.WRITE): _write_topic,
    (Resource.TOPIC, BrokerOperation.READ): _read_topic,
    (Resource.TOPIC, BrokerOperation.DESCRIBE_CONFIGS): _describe_configs,
}
