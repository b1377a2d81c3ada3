"""Builds record batches field by field, so that any field can be false."""

import gzip
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from zlib import crc32

import cramjam
import lz4.frame
import zstandard
from crc32c import crc32c

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
XERIAL = 20  # Snappy in xerial's framing, Java's format
CODECS = {"none": NONE, "gzip": GZIP, "snappy": SNAPPY, "xerial": XERIAL, "lz4": LZ4, "zstd": ZSTD}


def varint(value: int) -> bytes:
    """Return a zig-zag varint of up to 64 bits."""
    raw = ((value << 1) ^ (value >> 63)) & 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while raw > 0x7F:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    out.append(raw)
    return bytes(out)


def length_prefixed(data: bytes | None) -> bytes:
    """Return bytes after a varint length, -1 for null."""
    return varint(-1) if data is None else varint(len(data)) + data


@dataclass(frozen=True)
class Rec:
    """One record: timestamp (ms), key, value, headers."""

    timestamp: int
    key: bytes | None = b"k"
    value: bytes | None = b"v"
    headers: Sequence[tuple[bytes, bytes | None]] = field(default=())


def record(rec: Rec, index: int, base_timestamp: int) -> bytes:
    """Return a v2 record with its length."""
    headers = b"".join(length_prefixed(name) + length_prefixed(value) for name, value in rec.headers)
    delta = rec.timestamp - base_timestamp
    delta = (delta + 2**63) % 2**64 - 2**63
    body = (
        b"\0"
        + varint(delta)
        + varint(index)
        + length_prefixed(rec.key)
        + length_prefixed(rec.value)
        + varint(len(rec.headers))
        + headers
    )
    return varint(len(body)) + body


def identical_records(rec: Rec, count: int, base_timestamp: int) -> bytes:
    """Return records that differ only in their offsets."""
    first = record(rec, 0, base_timestamp)
    delta = varint((rec.timestamp - base_timestamp + 2**63) % 2**64 - 2**63)
    fields = b"\0" + delta + b"\0"
    body = first[first.index(fields) :]
    before = 1 + len(delta)
    head, tail = body[:before], body[before + 1 :]
    heads = [varint(len(body) - 1 + size) + head for size in range(6)]
    assert heads[1] + body[before:] == first
    return b"".join(heads[len(offset)] + offset + tail for offset in map(varint, range(count)))


def compress(codec: int, data: bytes) -> bytes:
    """Compress with the reference implementation of each codec."""
    match codec:
        case 0:
            return data
        case 1:
            return gzip.compress(data)
        case 2:
            return bytes(cramjam.snappy.compress_raw(data))
        case 3:
            return lz4.frame.compress(data, block_linked=False)  # Kafka does not read linked blocks
        case 4:
            return zstandard.compress(data)
        case 20:
            blocks = [bytes(cramjam.snappy.compress_raw(data[i : i + 32768])) for i in range(0, len(data), 32768)]
            framed = b"".join(struct.pack(">i", len(block)) + block for block in blocks)
            return b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1) + framed
    return data


def batch(
    records: Sequence[Rec],
    codec: int = NONE,
    *,
    payload: bytes | None = None,
    compressed: bytes | None = None,
    base_offset: int = 0,
    length: int | None = None,
    leader_epoch: int = -1,
    magic: int = 2,
    crc: int | None = None,
    attributes: int | None = None,
    flags: int = 0,
    last_offset_delta: int | None = None,
    base_timestamp: int | None = None,
    max_timestamp: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    count: int | None = None,
    tail: bytes = b"",
) -> bytes:
    """Return a v2 batch. Each argument replaces the correct value of a field. `tail` is appended inside the batch."""
    if base_timestamp is None:
        base_timestamp = records[0].timestamp if records else 0
    if max_timestamp is None:
        max_timestamp = max((r.timestamp for r in records), default=-1)
    if payload is None:
        payload = b"".join(record(r, i, base_timestamp) for i, r in enumerate(records))
    body = (compress(codec, payload) if compressed is None else compressed) + tail
    count = len(records) if count is None else count
    codec_bits = SNAPPY if codec == XERIAL else codec
    covered = (
        struct.pack(
            ">hiqqqhii",
            (codec_bits | flags) if attributes is None else attributes,
            count - 1 if last_offset_delta is None else last_offset_delta,
            base_timestamp,
            max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            count,
        )
        + body
    )
    crc = crc32c(covered) if crc is None else crc
    length = len(covered) + 9 if length is None else length
    return struct.pack(">qiibI", base_offset, length, leader_epoch, magic, crc) + covered


def message(
    magic: int,
    value: bytes | None,
    *,
    key: bytes | None = b"k",
    timestamp: int = -1,
    codec: int = NONE,
    flags: int = 0,
    offset: int = 0,
    crc: int | None = None,
) -> bytes:
    """Return a message of magic 0 or 1 with its offset and size."""

    def int32_sized(data: bytes | None) -> bytes:
        return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data

    codec_bits = SNAPPY if codec == XERIAL else codec
    covered = struct.pack(">bb", magic, codec_bits | flags)
    if magic > 0:
        covered += struct.pack(">q", timestamp)
    covered += int32_sized(key) + int32_sized(value)
    crc = crc32(covered) if crc is None else crc
    return struct.pack(">qiI", offset, len(covered) + 4, crc) + covered


def wrapper(magic: int, inner: Sequence[bytes], codec: int, **changes: object) -> bytes:
    """Return a compressed message with `inner` messages; wrappers of magic 1 have the last inner offset."""
    offset = changes.pop("offset", len(inner) - 1)
    return message(magic, compress(codec, b"".join(inner)), key=None, codec=codec, offset=offset, **changes)
