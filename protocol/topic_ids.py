"""Topic ids and names out of Metadata answers v10 to v13, without building the rest of the answer.

Held to `protocol.messages.metadata.RESPONSE` by a test. v10: topic ids; v12: names may be null; v11 and later end
without cluster operations. All are flexible.
"""

from collections.abc import Iterator
from struct import Struct
from struct import error as StructError

from protocol.errors import MalformedMessage
from protocol.headers import skip_tagged_fields
from protocol.varint import read_unsigned_varint

SINCE = 10
_INT16 = Struct(">h")
_UUID_BYTES = 16
_NO_ID = bytes(_UUID_BYTES)
_INT32_BYTES = 4
_CONTROLLER_ID_BYTES = 4
_OPERATIONS_BYTES = 4
_PARTITION_FIXED_BYTES = 2 + 4 + 4 + 4  # error code, index, leader, leader epoch
_LISTS_OF_A_PARTITION = 3  # replicas, in-sync replicas, offline replicas


def topic_names_by_id(frame: bytes | bytearray | memoryview, behind_brokers: int) -> Iterator[tuple[bytes, str]]:
    """(topic id, name) of every topic that has both; `behind_brokers` is where the brokers' array ends.

    Raises MalformedMessage when the answer does not follow the schema.
    """
    try:
        yield from _topics(frame, behind_brokers)
    except (StructError, IndexError) as error:
        raise MalformedMessage("a Metadata answer ends too early") from error


def _topics(frame: bytes | bytearray | memoryview, position: int) -> Iterator[tuple[bytes, str]]:
    cluster_id_size, position = read_unsigned_varint(frame, position)
    position += max(0, cluster_id_size - 1) + _CONTROLLER_ID_BYTES
    count, position = read_unsigned_varint(frame, position)
    for _ in range(count - 1):
        (error_code,) = _INT16.unpack_from(frame, position)
        name_size, position = read_unsigned_varint(frame, position + _INT16.size)
        name_at, position = position, position + max(0, name_size - 1)
        topic_id = bytes(frame[position : position + _UUID_BYTES])
        if not error_code and name_size > 1 and topic_id != _NO_ID:
            yield topic_id, bytes(frame[name_at:position]).decode()
        position = _skip_partitions(frame, position + _UUID_BYTES + 1)
        position = skip_tagged_fields(frame, position + _OPERATIONS_BYTES)


def _skip_partitions(frame: bytes | bytearray | memoryview, position: int) -> int:
    count, position = read_unsigned_varint(frame, position)
    for _ in range(count - 1):
        position += _PARTITION_FIXED_BYTES
        for _ in range(_LISTS_OF_A_PARTITION):
            nodes, position = read_unsigned_varint(frame, position)
            position += max(0, nodes - 1) * _INT32_BYTES
        position = skip_tagged_fields(frame, position)
    return position
