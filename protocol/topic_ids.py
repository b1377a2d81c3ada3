"""Topic ids and names out of Metadata answers of all versions, without building the rest of the answer.

Held to `sluicegate.protocol.messages.metadata.RESPONSE` by a test. 1: racks, controller, internal topics.
2: cluster id. 3: throttle time. 5: offline replicas. 7: leader epochs. 8: authorized operations. 9: flexible.
10: topic ids. 12: names may be null. Compiled with the types in topic_ids.pxd where a C compiler was at hand.
"""

from sluicegate.protocol.api import APIS, ApiKey
from sluicegate.protocol.errors import MalformedMessage
from sluicegate.protocol.walk import MAX_TAGGED_FIELDS, Walk

_BROKER_RACK_SINCE = 1
_CONTROLLER_SINCE = 1
_INTERNAL_SINCE = 1
_CLUSTER_ID_SINCE = 2
_THROTTLE_SINCE = 3
_OFFLINE_REPLICAS_SINCE = 5
_LEADER_EPOCH_SINCE = 7
_OPERATIONS_SINCE = 8
_FLEXIBLE_SINCE = APIS[ApiKey.METADATA].flexible_since
_TOPIC_ID_SINCE = 10
_INT32_BYTES = 4
_UUID_BYTES = 16
_NO_ID = bytes(_UUID_BYTES)
_PARTITION_BYTES = 2 + 4 + 4  # error code, index, leader
_MAX_ELEMENTS = 200_000


def topics_told(frame: bytes | bytearray, version: int, body_at: int) -> list[tuple[bytes | None, str]]:
    """(topic id or None, name) of every topic that the answer says exists (error code 0) and names.

    Raises MalformedMessage when the answer does not follow the schema up to its topics' end.
    """
    walk = _Walk()
    walk.begin(frame, version, version >= _FLEXIBLE_SINCE, body_at, _MAX_ELEMENTS, MAX_TAGGED_FIELDS)
    try:
        return walk.topics()
    except MalformedMessage as error:
        raise MalformedMessage(f"Metadata answer v{version}: {error}") from error


class _Walk(Walk):
    def topics(self) -> list[tuple[bytes | None, str]]:
        if self.version >= _THROTTLE_SINCE:
            self.skip(_INT32_BYTES)
        self.skip_brokers()
        if self.version >= _CLUSTER_ID_SINCE:
            self.skip_string()
        if self.version >= _CONTROLLER_SINCE:
            self.skip(_INT32_BYTES)
        found: list[tuple[bytes | None, str]] = []
        left = self.count()
        while left > 0:
            self.topic(found)
            left -= 1
        return found

    def skip_brokers(self) -> None:
        left = self.count()
        while left > 0:
            self.skip(_INT32_BYTES)
            self.skip_string()
            self.skip(_INT32_BYTES)
            if self.version >= _BROKER_RACK_SINCE:
                self.skip_string()
            self.skip_tags()
            left -= 1

    def topic(self, found: list[tuple[bytes | None, str]]) -> None:
        exists = self.int16() == 0
        topic_id = None
        if not exists:
            self.skip_string()
            if self.version >= _TOPIC_ID_SINCE:
                self.skip(_UUID_BYTES)
        else:
            name = self.string()
            if self.version >= _TOPIC_ID_SINCE:
                topic_id = self.bytes_of(_UUID_BYTES)
                if topic_id == _NO_ID:
                    topic_id = None
            if name:
                found.append((topic_id, name))
        if self.version >= _INTERNAL_SINCE:
            self.skip(1)
        self.skip_partitions()
        if self.version >= _OPERATIONS_SINCE:
            self.skip(_INT32_BYTES)
        self.skip_tags()

    def skip_partitions(self) -> None:
        left = self.count()
        while left > 0:
            self.skip(_PARTITION_BYTES)
            if self.version >= _LEADER_EPOCH_SINCE:
                self.skip(_INT32_BYTES)
            self.skip_int32s()  # replicas
            self.skip_int32s()  # those in sync
            if self.version >= _OFFLINE_REPLICAS_SINCE:
                self.skip_int32s()
            self.skip_tags()
            left -= 1
