"""On a topic with sensitive fields only validated bytes are stored, in every mode and for every client.

The batches are those that tests/framing gives real consumers to read, with a sensitive field in what brokers skip.
"""

import gzip
import struct
import zlib
from collections.abc import Callable, Mapping

import pytest
import zstandard

from sluicegate.validation.policy import Framing
from sluicegate.validation.validated_request import ValidatedRequest
from tests.framing.cases import AMBIGUOUS, HONEST, UNREADABLE, stored
from tests.validation.sensitive.test_masking import MODES, NOW, SECRET, read, validated_by
from tests.validation.sensitive.test_masking import policy_of as policy_with
from tests.wire.batches import CODECS, GZIP, XERIAL, ZSTD, Rec, compress, record

_TWO = record(Rec(0, value=b"{}"), 0, 0) + record(Rec(0, value=b"{}"), 1, 0)
_SKIPPABLE = struct.pack("<II", 0x184D_2A50, len(SECRET)) + SECRET
_DEFLATED = gzip.compress(_TWO, mtime=0)[10:]


def _gzip_head(flags: int, *fields: bytes) -> bytes:
    """Return a member's header (RFC 1952) with these flags and optional fields."""
    return b"\x1f\x8b\x08" + bytes([flags]) + bytes(6) + b"".join(fields)


_EXTRA = struct.pack("<H", len(SECRET)) + SECRET
_WITH_CRC = _gzip_head(0x0A, SECRET + b"\0")
_WITH_ATTRIBUTES = _TWO[:1] + b"s" + _TWO[2:]
UNREAD: Mapping[str, Callable[[int], bytes]] = {
    "a skippable frame before it, zstd": stored(ZSTD, _SKIPPABLE + zstandard.compress(_TWO)),
    "a skippable frame after it, zstd": stored(ZSTD, zstandard.compress(_TWO) + _SKIPPABLE),
    "a skippable frame between two, zstd": stored(
        ZSTD, zstandard.compress(_TWO[:5]) + _SKIPPABLE + zstandard.compress(_TWO[5:])
    ),
    "extra bytes, gzip": stored(GZIP, _gzip_head(0x04, _EXTRA) + _DEFLATED),
    "a name, gzip": stored(GZIP, _gzip_head(0x08, SECRET + b"\0") + _DEFLATED),
    "a comment, gzip": stored(GZIP, _gzip_head(0x10, SECRET + b"\0") + _DEFLATED),
    "a name and a checksum, gzip": stored(
        GZIP, _WITH_CRC + struct.pack("<H", zlib.crc32(_WITH_CRC) & 0xFFFF) + _DEFLATED
    ),
    "a comment in an empty second member, gzip": stored(
        GZIP, gzip.compress(_TWO) + _gzip_head(0x10, SECRET + b"\0") + gzip.compress(b"", mtime=0)[10:]
    ),
    **{
        f"attributes of a record, {name}": stored(codec, compress(codec, _WITH_ATTRIBUTES))
        for name, codec in CODECS.items()
        if codec != XERIAL  # whose id is Snappy's
    },
}
"""Batches with bytes that are stored, and that no consumer reads as records."""


def validated(data: bytes, kind: str) -> ValidatedRequest:
    return validated_by(policy_with(kind, f"{MODES[kind]}\n    message.timestamp.after.max.ms: 1h"), data)


@pytest.mark.parametrize("kind", MODES)
@pytest.mark.parametrize("case", {**AMBIGUOUS, **UNREADABLE, **UNREAD})
def test_bytes_that_are_not_validated_are_never_stored(case: str, kind: str) -> None:
    found = validated({**AMBIGUOUS, **UNREADABLE, **UNREAD}[case](NOW), kind)

    assert (0, 0) in found.rejected
    assert not found.replacements()


@pytest.mark.parametrize("kind", MODES)
@pytest.mark.parametrize("case", [case for case in HONEST if "skippable" not in case])
def test_a_correct_batch_is_still_accepted(case: str, kind: str) -> None:
    """The values of these batches are no JSON, so each record is rejected by name: the batch itself has no flaw."""
    found = validated(HONEST[case](NOW), kind).rejected[0, 0]

    assert [bad.index for bad in found.bad_records] == [0, 1]


def test_a_batch_with_unread_bytes_is_otherwise_what_brokers_and_consumers_read() -> None:
    """An independent reader finds the two records, so it is only the sensitive fields that reject such a batch."""
    for case, make in UNREAD.items():
        if ("gzip" in case and "second member" not in case) or "attributes" in case:
            assert [value for _, _, value, _ in read(make(NOW))] == [b"{}", b"{}"], case


def test_the_framing_of_a_topic_with_sensitive_fields_is_strict_for_each_client() -> None:
    for kind in MODES:
        for given in ("", "\n    framing: safe"):
            assert policy_with(kind, MODES[kind] + given).framing is Framing.STRICT, (kind, given)
