"""Defines batches that brokers store and consumers read differently or not at all, and their correct counterparts.

Each is a batch of two records, "first" and another record, at offsets 0 and 1. test_consumers.py tests how real
consumers read them.
"""

import gzip
import struct
from collections.abc import Callable, Mapping

import lz4.frame
import zstandard

from tests.wire.batches import GZIP, LZ4, NONE, XERIAL, ZSTD, Rec, batch, compress, length_prefixed, record, varint

HIDDEN = b"hidden: not JSON, and 53 days old"
"""The value of a record that brokers do not see."""

EMPTY_BLOCK = struct.pack("<I", 0x8000_0000)
"""An uncompressed LZ4 block of 0 bytes."""

SECONDS_AGO = 7200
"""The age of the timestamps (s) in batches that are too old for a bound of an hour."""

_DAY = 86_400_000
_SKIPPABLE = struct.pack("<I", 0x184D_2A50)


def record_body(
    index: int, value: bytes | None, *, key: bytes = length_prefixed(b"k"), headers: bytes = varint(0)
) -> bytes:
    """Return a record's fields after its length, with the batch's timestamp."""
    return b"\0" + varint(0) + varint(index) + key + length_prefixed(value) + headers


def records_with_wrong_length(added: int) -> bytes:
    """Return two records; the stated length of the first is wrong by this many bytes."""
    first, second = record_body(0, b"first"), record_body(1, b"second")
    return varint(len(first) + added) + first + varint(len(second)) + second


def records_stating_length(length: int) -> bytes:
    """Return two records; the first states this length."""
    first, second = record_body(0, b"first"), record_body(1, b"second")
    return varint(length) + first + varint(len(second)) + second


def smuggled_record() -> bytes:
    """Return two records; by its stated length the first ends within the value of the second, where a third begins."""
    hidden = b"\0" + varint(-53 * _DAY) + varint(1) + length_prefixed(b"k") + length_prefixed(HIDDEN)
    # The header count of the second record, which is zero, is also the header count of the hidden record.
    cover = varint(len(hidden) + 1) + hidden
    second = record_body(1, cover)
    before_value = len(second) - len(cover) - 1
    first = record_body(0, b"first")
    head = varint(len(second))
    return varint(len(first) + len(head) + before_value) + first + head + second


def records_with_changed_fields(**changed: bytes) -> bytes:
    """Return two records; the first has other bytes for `length`, `time`, `offset`, `key`, `value` or `headers`."""
    fields = {
        "time": varint(0),
        "offset": varint(0),
        "key": length_prefixed(b"k"),
        "value": length_prefixed(b"first"),
        "headers": varint(0),
    }
    fields |= {name: data for name, data in changed.items() if name != "length"}
    first = b"\0" + b"".join(fields.values())
    second = record_body(1, b"second")
    return changed.get("length", varint(len(first))) + first + varint(len(second)) + second


def overlong_varint(value: int) -> bytes:
    """Return a varint of five bytes; the last has bits beyond an int32."""
    data = bytearray(padded_varint(value, 5))
    data[4] |= 0x10
    return bytes(data)


def padded_varint(value: int, size: int) -> bytes:
    """Return a varint in more bytes than necessary."""
    raw = (value << 1) ^ (value >> 63)
    return bytes([raw >> 7 * i & 0x7F | 0x80 for i in range(size - 1)] + [raw >> 7 * (size - 1) & 0x7F])


def plain_payload() -> bytes:
    """Two correct records."""
    return record(Rec(0, value=b"first"), 0, 0) + record(Rec(0, value=b"second"), 1, 0)


def batch_builder(payload: bytes, codec: int) -> Callable[[int], bytes]:
    """Return a function that builds the batch for a time (ms)."""
    return lambda now: batch([], codec, payload=payload, count=2, base_timestamp=now, max_timestamp=now)


def batch_with_payload(codec: int, compressed: bytes) -> Callable[[int], bytes]:
    """Return a function that builds the batch for a time (ms), from a compressed payload."""
    return lambda now: batch([], codec, compressed=compressed, count=2, base_timestamp=now, max_timestamp=now)


def hidden_record() -> bytes:
    """Return a third record, old and not JSON."""
    fields = b"\0" + varint(-53 * _DAY) + varint(2) + length_prefixed(b"k") + length_prefixed(HIDDEN) + varint(0)
    return varint(len(fields)) + fields


def lz4_blocks(*blocks: bytes, end: bytes = bytes(4)) -> bytes:
    """Return a frame of raw blocks."""
    head = lz4.frame.compress(b"x", block_linked=False, store_size=False)[:7]
    return head + b"".join(struct.pack("<I", 0x8000_0000 | len(block)) + block for block in blocks) + end


_TWO = plain_payload()
_GZIP, _LZ4, _ZSTD, _XERIAL = (compress(codec, _TWO) for codec in (GZIP, LZ4, ZSTD, XERIAL))
_CODECS = {"gzip": GZIP, "xerial": XERIAL, "lz4": LZ4, "zstd": ZSTD}
_LZ4_CHECKED = lz4.frame.compress(_TWO, block_linked=False, content_checksum=True)
_LZ4_CHECKED_BLOCKS = lz4.frame.compress(_TWO, block_linked=False, content_checksum=True, block_checksum=True)


def _with_content_size(size: int) -> bytes:
    whole = bytearray(lz4.frame.compress(_TWO, block_linked=False, store_size=True))
    whole[6:14] = struct.pack("<Q", size)
    whole[14] = xxh32(bytes(whole[4:14])) >> 8 & 0xFF
    return bytes(whole)


def xxh32(data: bytes) -> int:
    """Return XXH32 of fewer than 16 bytes, for the header checksum of an LZ4 frame (xxHash's specification)."""
    assert len(data) < 16
    primes = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1
    mask = 0xFFFFFFFF
    value = primes[4] + len(data)
    whole = len(data) // 4 * 4
    for (four,) in struct.iter_unpack("<I", data[:whole]):
        value = value + four * primes[2] & mask
        value = (value << 17 | value >> 15) * primes[3] & mask
    for byte in data[whole:]:
        value = value + byte * primes[4] & mask
        value = (value << 11 | value >> 21) * primes[0] & mask
    value = (value ^ value >> 15) * primes[1] & mask
    value = (value ^ value >> 13) * primes[2] & mask
    return value ^ value >> 16


AMBIGUOUS: Mapping[str, Callable[[int], bytes]] = {
    **{f"a record within a record, {name}": batch_builder(smuggled_record(), codec) for name, codec in _CODECS.items()},
    **{
        f"a length {by:+d}, {name}": batch_builder(records_with_wrong_length(by), codec)
        for by in (5, -2)
        for name, codec in _CODECS.items()
    },
    "a negative length, gzip": batch_builder(records_stating_length(-7), GZIP),
    "a length of 0, zstd": batch_builder(records_stating_length(0), ZSTD),
    "a length beyond the payload, lz4": batch_builder(records_stating_length(100_000), LZ4),
    "an empty raw block, lz4": batch_with_payload(LZ4, lz4_blocks(_TWO, b"", hidden_record())),
    "an empty raw block at the end, lz4": batch_with_payload(LZ4, lz4_blocks(_TWO, b"")),
    "an empty raw block for the end mark, lz4": batch_with_payload(LZ4, lz4_blocks(_TWO, end=EMPTY_BLOCK)),
    "a length of too many bits, zstd": batch_builder(
        records_with_changed_fields(length=overlong_varint(len(record_body(0, b"first")))), ZSTD
    ),
    **{
        f"a length of too many bytes, {name}": batch_builder(
            records_with_changed_fields(length=padded_varint(len(record_body(0, b"first")), 5)), codec
        )
        for name, codec in {"none": NONE, "zstd": ZSTD}.items()
    },
    "a key size of too many bits, zstd": batch_builder(
        records_with_changed_fields(key=overlong_varint(1) + b"k"), ZSTD
    ),
    "a key size of too many bits, none": batch_builder(
        records_with_changed_fields(key=overlong_varint(1) + b"k"), NONE
    ),
    "a value size of too many bits, none": batch_builder(
        records_with_changed_fields(value=overlong_varint(5) + b"first"), NONE
    ),
    "an offset of too many bits, none": batch_builder(records_with_changed_fields(offset=overlong_varint(0)), NONE),
    "an offset of too many bits, zstd": batch_builder(records_with_changed_fields(offset=overlong_varint(0)), ZSTD),
    "a time of too many bits, none": batch_builder(records_with_changed_fields(time=b"\x80" * 9 + b"\x02"), NONE),
    "a count of headers of too many bits, none": batch_builder(
        records_with_changed_fields(headers=overlong_varint(0)), NONE
    ),
    "a key size of -2, none": batch_builder(records_with_changed_fields(key=varint(-2)), NONE),
    "a value size of -2, none": batch_builder(records_with_changed_fields(value=varint(-2)), NONE),
    "a header's value size of -2, none": batch_builder(
        records_with_changed_fields(headers=varint(1) + length_prefixed(b"h") + varint(-2)), NONE
    ),
    "offset deltas 0 and 5, none": batch_builder(
        record(Rec(0, value=b"first"), 0, 0) + record(Rec(0, value=b"second"), 5, 0), NONE
    ),
    "offset deltas 0 and 0, none": batch_builder(
        record(Rec(0, value=b"first"), 0, 0) + record(Rec(0, value=b"second"), 0, 0), NONE
    ),
    "offset deltas 0 and -1, none": batch_builder(
        record(Rec(0, value=b"first"), 0, 0) + record(Rec(0, value=b"second"), -1, 0), NONE
    ),
}

UNREADABLE: Mapping[str, Callable[[int], bytes]] = {
    "a second frame, lz4": batch_with_payload(LZ4, _LZ4 + compress(LZ4, hidden_record())),
    "trailing bytes, lz4": batch_with_payload(LZ4, _LZ4 + b"xy"),
    "a skippable frame after it, lz4": batch_with_payload(LZ4, _LZ4 + _SKIPPABLE + struct.pack("<I", 3) + b"abc"),
    "garbage after it, gzip": batch_with_payload(GZIP, _GZIP + b"garbage"),
    "zeros after it, gzip": batch_with_payload(GZIP, _GZIP + bytes(7)),
    "a header's beginning after it, gzip": batch_with_payload(GZIP, _GZIP + _GZIP[:5]),
    "a bare magic after it, zstd": batch_with_payload(ZSTD, _ZSTD + _ZSTD[:4]),
    "half a skippable frame after it, zstd": batch_with_payload(
        ZSTD, _ZSTD + _SKIPPABLE + struct.pack("<I", 9) + b"abc"
    ),
    "two bytes after it, xerial": batch_with_payload(XERIAL, _XERIAL + b"xy"),
    "another stream after it, xerial": batch_with_payload(
        XERIAL, compress(XERIAL, _TWO[:20]) + compress(XERIAL, _TWO[20:])
    ),
    "another version, xerial": batch_with_payload(XERIAL, _XERIAL[:8] + struct.pack(">ii", 2, 2) + _XERIAL[16:]),
    "a wrong content checksum, lz4": batch_with_payload(LZ4, _LZ4_CHECKED[:-4] + b"oops"),
    "a wrong content checksum and block checksums, lz4": batch_with_payload(LZ4, _LZ4_CHECKED_BLOCKS[:-4] + b"oops"),
    "a wrong content size, lz4": batch_with_payload(LZ4, _with_content_size(len(_TWO) + 1)),
    "reserved flags, gzip": batch_with_payload(GZIP, _GZIP[:3] + bytes([_GZIP[3] | 0x80]) + _GZIP[4:]),
}

HONEST: Mapping[str, Callable[[int], bytes]] = {
    **{f"two records, {name}": batch_builder(_TWO, codec) for name, codec in {**_CODECS, "none": NONE}.items()},
    "two members, gzip": batch_with_payload(GZIP, gzip.compress(_TWO[:20]) + gzip.compress(_TWO[20:])),
    "two frames, zstd": batch_with_payload(ZSTD, zstandard.compress(_TWO[:20]) + zstandard.compress(_TWO[20:])),
    "a skippable frame after it, zstd": batch_with_payload(ZSTD, _ZSTD + _SKIPPABLE + struct.pack("<I", 3) + b"abc"),
    "a content checksum, lz4": batch_with_payload(LZ4, _LZ4_CHECKED),
    "a content checksum and block checksums, lz4": batch_with_payload(LZ4, _LZ4_CHECKED_BLOCKS),
    "no content size, lz4": batch_with_payload(LZ4, lz4.frame.compress(_TWO, block_linked=False, store_size=False)),
    "varints longer than they need be, none": batch_builder(
        records_with_changed_fields(key=padded_varint(1, 5) + b"k", offset=padded_varint(0, 3)), NONE
    ),
}
