"""Builds requests field by field, so that any field can be false and large requests are built fast."""

import struct
from collections.abc import Iterable

from sluicegate.protocol.api import APIS
from tests.wire.batches import Rec, batch


def int16(value: int) -> bytes:
    return struct.pack(">h", value)


def int32(value: int) -> bytes:
    return struct.pack(">i", value)


def uvarint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def sized_frame(frame: bytes) -> bytes:
    return int32(len(frame)) + frame


def incomplete_frame(size: int, sent: bytes) -> bytes:
    """Return a frame that announces `size` bytes and has fewer."""
    return int32(size) + sent


def short_string(text: bytes) -> bytes:
    return int16(len(text)) + text


def compact_string(text: bytes) -> bytes:
    return uvarint(len(text) + 1) + text


def request_head(key: int, version: int, correlation_id: int = 1) -> bytes:
    return struct.pack(">hhi", key, version, correlation_id)


def request_header(
    key: int, version: int, correlation_id: int = 1, client_id: bytes = b"hostile", tags: bytes | None = None
) -> bytes:
    """Return a request's header; flexible versions get `tags`, by default none."""
    flexible = APIS[key].is_flexible(version) if key in APIS else True
    end = (b"\0" if tags is None else tags) if flexible else b""
    return request_head(key, version, correlation_id) + short_string(client_id) + end


def sized_request(key: int, version: int, body: bytes, correlation_id: int = 1, client_id: bytes = b"hostile") -> bytes:
    return sized_frame(request_header(key, version, correlation_id, client_id) + body)


def empty_tagged_fields(count: int) -> bytes:
    """Return `count` tagged fields of no bytes."""
    return uvarint(count) + b"".join(uvarint(tag) + b"\0" for tag in range(count))


def equal_tagged_fields(count: int) -> bytes:
    """Return the shortest encoding of `count` tagged fields; it repeats one tag, which no real client does."""
    return uvarint(count) + b"\x7f\0" * count


def one_large_tagged_field(size: int) -> bytes:
    return uvarint(1) + b"\x05" + uvarint(size) + bytes(size)


def endless_varint(size: int) -> bytes:
    return b"\xff" * size + b"\1"


class ProduceLayout:
    """The encoding of one version of Produce."""

    def __init__(self, version: int) -> None:
        self.version = version
        self.flexible = version >= 9

    def count(self, count: int) -> bytes:
        return uvarint(count + 1) if self.flexible else int32(count)

    @property
    def tags(self) -> bytes:
        return b"\0" if self.flexible else b""

    def topic_key(self, key: bytes) -> bytes:
        """Encode a topic's name, or from version 13 its id of 16 bytes."""
        if self.version >= 13:
            return key.ljust(16, b"\0")[:16]
        return compact_string(key) if self.flexible else short_string(key)

    def partition(self, index: int, records: bytes | None) -> bytes:
        if records is None:
            size = b"\0" if self.flexible else int32(-1)
            return int32(index) + size + self.tags
        size = uvarint(len(records) + 1) if self.flexible else int32(len(records))
        return int32(index) + size + records + self.tags

    def topic(self, key: bytes, partitions: Iterable[bytes]) -> bytes:
        parts = list(partitions)
        return self.topic_key(key) + self.count(len(parts)) + b"".join(parts) + self.tags

    def body(self, topics: Iterable[bytes], acks: int = 1) -> bytes:
        parts = list(topics)
        no_transactional_id = (b"\0" if self.flexible else int16(-1)) if self.version >= 3 else b""
        return no_transactional_id + int16(acks) + int32(1000) + self.count(len(parts)) + b"".join(parts) + self.tags


def sized_produce_request(
    version: int,
    topics: dict[bytes, list[tuple[int, bytes | None]]],
    acks: int = 1,
    correlation_id: int = 1,
    client_id: bytes = b"hostile",
) -> bytes:
    """Return a sized Produce request. `topics`: partitions and records by topic name, from version 13 by topic id."""
    layout = ProduceLayout(version)
    written = [
        layout.topic(key, (layout.partition(i, records) for i, records in parts)) for key, parts in topics.items()
    ]
    return sized_request(0, version, layout.body(written, acks), correlation_id, client_id)


def good_batch(now_ms: int, size: int = 10) -> bytes:
    return batch([Rec(now_ms, value=b"v" * size)])
