"""In a topic with sensitive fields, only validated bytes are stored, in every mode and for every client.

The batches are those that real consumers read in tests/framing, with a sensitive field in the part that brokers skip.
"""

import gzip
import struct
import zlib
from collections.abc import Callable, Mapping

import pytest
import zstandard

from sluicegate.validation.policy import Framing
from sluicegate.validation.validated_request import ValidatedRequest
from tests.framing.cases import (
    AMBIGUOUS,
    HONEST,
    UNREADABLE,
    batch_with_payload,
    padded_varint,
    records_with_changed_fields,
)
from tests.validation.dispositions.test_masking import MODES, NOW, SECRET, read, validate_by_policy
from tests.validation.dispositions.test_masking import policy_of as policy_with
from tests.wire.batches import (
    CODECS,
    GZIP,
    NONE,
    XERIAL,
    ZSTD,
    Rec,
    batch,
    compress,
    length_prefixed,
    record,
    varint,
)

_TWO = record(Rec(0, value=b"{}"), 0, 0) + record(Rec(0, value=b"{}"), 1, 0)
_SKIPPABLE = struct.pack("<II", 0x184D_2A50, len(SECRET)) + SECRET
_DEFLATED = gzip.compress(_TWO, mtime=0)[10:]


def _gzip_head(flags: int, *fields: bytes) -> bytes:
    """Return a member's header (RFC 1952) with these flags and optional fields."""
    return b"\x1f\x8b\x08" + bytes([flags]) + bytes(6) + b"".join(fields)


_EXTRA = struct.pack("<H", len(SECRET)) + SECRET
_WITH_CRC = _gzip_head(0x0A, SECRET + b"\0")
_CODECS = {name: codec for name, codec in CODECS.items() if codec != XERIAL}  # the message has Snappy's codec id
_WITH_ATTRIBUTES = _TWO[:1] + b"s" + _TWO[2:]
_CHOSEN = b"\xde\xad\xbe\xef"
"""The time in a gzip header, which a client can choose."""
_EMPTY = gzip.compress(b"", mtime=0)
_EMPTY_MEMBERS = b"".join(_EMPTY[:4] + SECRET[at : at + 4].ljust(4) + _EMPTY[8:] for at in range(0, len(SECRET), 4))


def _zstd_block(kind: int, size: int, data: bytes, *, is_last: bool = False) -> bytes:
    """Return a block (RFC 8878, section 3.1.1.2): 0 is raw, 1 repeats a byte `size` times."""
    return struct.pack("<I", size << 3 | kind << 1 | is_last)[:3] + data


_EMPTY_BLOCKS = b"".join(_zstd_block(1, 0, bytes([byte])) for byte in SECRET)
UNREAD: Mapping[str, Callable[[int], bytes]] = {
    "a skippable frame before it, zstd": batch_with_payload(ZSTD, _SKIPPABLE + zstandard.compress(_TWO)),
    "a skippable frame after it, zstd": batch_with_payload(ZSTD, zstandard.compress(_TWO) + _SKIPPABLE),
    "a skippable frame between two, zstd": batch_with_payload(
        ZSTD, zstandard.compress(_TWO[:5]) + _SKIPPABLE + zstandard.compress(_TWO[5:])
    ),
    "blocks that repeat a byte no times, zstd": batch_with_payload(
        ZSTD, b"\x28\xb5\x2f\xfd\0\x58" + _EMPTY_BLOCKS + _zstd_block(0, len(_TWO), _TWO, is_last=True)
    ),
    "extra bytes, gzip": batch_with_payload(GZIP, _gzip_head(0x04, _EXTRA) + _DEFLATED),
    "a name, gzip": batch_with_payload(GZIP, _gzip_head(0x08, SECRET + b"\0") + _DEFLATED),
    "a comment, gzip": batch_with_payload(GZIP, _gzip_head(0x10, SECRET + b"\0") + _DEFLATED),
    "a name and a checksum, gzip": batch_with_payload(
        GZIP, _WITH_CRC + struct.pack("<H", zlib.crc32(_WITH_CRC) & 0xFFFF) + _DEFLATED
    ),
    "a comment in an empty second member, gzip": batch_with_payload(
        GZIP, gzip.compress(_TWO) + _gzip_head(0x10, SECRET + b"\0") + gzip.compress(b"", mtime=0)[10:]
    ),
    "a time, gzip": batch_with_payload(GZIP, b"\x1f\x8b\x08\0" + _CHOSEN + b"ab" + _DEFLATED),
    "times of empty further members, gzip": batch_with_payload(GZIP, gzip.compress(_TWO, mtime=0) + _EMPTY_MEMBERS),
}
"""Batches with stored bytes that no consumer reads as records."""

ATTRIBUTES: Mapping[str, Callable[[int], bytes]] = {
    f"attributes of a record, {name}": batch_with_payload(codec, compress(codec, _WITH_ATTRIBUTES))
    for name, codec in _CODECS.items()
}
"""Batches with bytes within a record that no consumer reads."""


def _with(codec: int = NONE, payload: bytes = _TWO, **fields: int) -> Callable[[int], bytes]:
    return lambda now: batch([], codec, payload=payload, count=2, base_timestamp=now, max_timestamp=now, **fields)


def _with_fields(**changed: bytes) -> bytes:
    """Return two records that are JSON; the first has other bytes for these fields."""
    first = records_with_changed_fields(**({"value": length_prefixed(b"{}")} | changed)).removesuffix(
        record(_SECOND, 1, 0)
    )
    return first + record(Rec(0, value=b"{}"), 1, 0)


_SECOND = Rec(0, value=b"second")
_PADDED = {
    "time": padded_varint(0, 2),
    "offset": padded_varint(0, 2),
    "key": padded_varint(1, 2) + b"k",
    "value": padded_varint(2, 2) + b"{}",
    "headers": padded_varint(0, 2),
}
_PADDED_HEADERS = {
    "name": varint(1) + padded_varint(1, 2) + b"h" + length_prefixed(b""),
    "header's value": varint(1) + length_prefixed(b"h") + padded_varint(0, 2),
}
UNUSED: Mapping[str, Callable[[int], bytes]] = {
    **{
        f"bit {bit} of a batch's attributes, {name}": _with(codec, flags=1 << bit if bit < 15 else -(1 << 15))
        for bit in (3, *range(6, 16))
        for name, codec in (("none", NONE), ("zstd", ZSTD))
    },
    "an epoch, but no producer id": _with(producer_epoch=0x6162),
    "a sequence, but no producer id": _with(base_sequence=0x61626364),
    "a negative producer id": _with(producer_id=-5, producer_epoch=0, base_sequence=0),
    **{
        f"{field} in more bytes than necessary, {name}": _with(codec, _with_fields(**{field: data}))
        for field, data in _PADDED.items()
        for name, codec in _CODECS.items()
    },
    **{
        f"a {field} in more bytes than necessary": _with(payload=_with_fields(headers=data))
        for field, data in _PADDED_HEADERS.items()
    },
}
"""Batches that a broker (4.3.1) stores byte for byte, with values in fields that no producer uses."""
_FROM_PRODUCERS = {
    "sarama and kafkajs, not idempotent": _with(producer_epoch=0, base_sequence=0),
    "an idempotent producer": _with(producer_id=1 << 40, producer_epoch=7, base_sequence=1000),
    "a transactional producer": _with(flags=0x10, producer_id=5, producer_epoch=0, base_sequence=0),
}


REJECTED = {**AMBIGUOUS, **UNREADABLE, **ATTRIBUTES, **UNUSED}


def validate_batch(data: bytes, kind: str) -> ValidatedRequest:
    return validate_by_policy(policy_with(kind, f"{MODES[kind]}\n    message.timestamp.after.max.ms: 1h"), data)


@pytest.mark.parametrize("kind", MODES)
@pytest.mark.parametrize("case", REJECTED)
def test_batches_with_unvalidated_bytes_are_never_stored(case: str, kind: str) -> None:
    found = validate_batch(REJECTED[case](NOW), kind)

    assert not found.rejected[0, 0].bad_records, "all its records are correct"
    assert not found.replacements()


@pytest.mark.parametrize("kind", MODES)
@pytest.mark.parametrize("case", [case for case in HONEST if "skippable" not in case and "varints" not in case])
def test_batch_without_hidden_bytes_is_rejected_only_for_its_records(case: str, kind: str) -> None:
    """The values of these batches are no JSON, so each record is rejected by name: the batch itself has no flaw."""
    found = validate_batch(HONEST[case](NOW), kind).rejected[0, 0]

    assert [bad.index for bad in found.bad_records] == [0, 1]


def parts_of(case: str) -> list[bytes]:
    """Return the bytes of a case that are not record data: four bytes of a time, or single bytes between block
    headers."""
    if case == "a time, gzip":
        return [_CHOSEN]
    if case == "times of empty further members, gzip":
        return [SECRET[at : at + 4] for at in range(0, 16, 4)]
    return [_EMPTY_BLOCKS] if "repeat" in case else [SECRET]


@pytest.mark.parametrize("kind", MODES)
@pytest.mark.parametrize("case", UNREAD)
def test_removes_batch_bytes_that_no_consumer_reads(case: str, kind: str) -> None:
    """kafka-python reads the same records of the batch that replaces it; nothing was masked in it."""
    data = UNREAD[case](NOW)
    assert all(part in data for part in parts_of(case))

    found = validate_batch(data, kind)

    made = found.replacements()[0, 0]
    assert not found.rejected and not found.masked
    assert [value for _, _, value, _ in read(made)] == [b"{}", b"{}"]
    assert not any(part in made for part in parts_of(case))
    assert made[21:61] == data[21:61]


def test_an_independent_reader_finds_the_records_of_a_batch_with_unread_bytes() -> None:
    for case, make in UNREAD.items():
        if "skippable" not in case:
            assert [value for _, _, value, _ in read(make(NOW))] == [b"{}", b"{}"], case


@pytest.mark.parametrize("library", [gzip.compress, lambda data: zlib.compress(data, wbits=31)])
def test_gzip_header_of_a_forwarded_batch_contains_no_timestamp(library: Callable[[bytes], bytes]) -> None:
    """Python's gzip writes the time, which kafka-python and aiokafka send. RFC 1952: MTIME 0 is no time."""
    made = validate_batch(batch_with_payload(GZIP, library(_TWO))(NOW), "reject").replacements()[0, 0]

    assert made[61:65] + made[65:69] == b"\x1f\x8b\x08\0" + bytes(4)


@pytest.mark.parametrize("kind", MODES)
def test_uncompressed_batch_without_sensitive_values_is_unchanged(kind: str) -> None:
    found = validate_batch(batch([Rec(NOW, b"k", b"{}")]), kind)

    assert not found.rejected and not found.replacements()


@pytest.mark.parametrize("case", _FROM_PRODUCERS)
def test_accepts_optional_batch_fields_that_producers_use(case: str) -> None:
    found = validate_batch(_FROM_PRODUCERS[case](NOW), "reject")

    assert not found.rejected and not found.replacements()


@pytest.mark.parametrize("value", [b"{}", b'{"mail": "me@example.com"}'])
@pytest.mark.parametrize("codec", _CODECS.values(), ids=_CODECS)
@pytest.mark.parametrize("kind", MODES)
def test_replaces_base_timestamp_that_no_record_has(kind: str, codec: int, value: bytes) -> None:
    """A broker stores it, and consumers only read its sum with a record's delta (KIP-98)."""
    chosen = int.from_bytes(b"me@examp")
    times = [NOW, NOW - 5, NOW + 7]
    data = batch([Rec(time, b"k", value) for time in times], codec, base_timestamp=chosen)

    made = validate_batch(data, kind).replacements()[0, 0]

    assert [time for time, _, _, _ in read(made)] == times
    assert struct.unpack_from(">qq", made, 27) == (NOW, NOW + 7)


def test_topic_with_sensitive_fields_always_has_strict_framing() -> None:
    for kind in MODES:
        for given in ("", "\n    framing: safe"):
            assert policy_with(kind, MODES[kind] + given).framing is Framing.STRICT, (kind, given)
