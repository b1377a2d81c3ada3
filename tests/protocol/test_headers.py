"""Request and response headers are parsed and built within their limits."""

import struct

import pytest

from sluicegate.protocol.errors import MalformedMessage
from sluicegate.protocol.headers import (
    MAX_TAGGED_BYTES,
    parse_request_header,
    response_body_at,
    skip_tagged_fields,
)
from sluicegate.protocol.integers import unsigned_varint
from sluicegate.protocol.walk import MAX_TAGGED_FIELDS
from tests.wire.cost import cpu_seconds_of_call

HEAD = struct.pack(">hhih", 18, 3, 7, 3) + b"abc"


def tagged_field_section(*values: bytes) -> bytes:
    fields = [unsigned_varint(tag) + unsigned_varint(len(value)) + value for tag, value in enumerate(values)]
    return unsigned_varint(len(values)) + b"".join(fields)


@pytest.mark.parametrize("values", [(), (b"",), (b"x", b"yy"), (b"z" * 300,), (b"",) * MAX_TAGGED_FIELDS])
def test_skips_unknown_tagged_header_fields(values: tuple[bytes, ...]) -> None:
    header = parse_request_header(HEAD + tagged_field_section(*values) + b"body", 2)

    assert (header.client_id, header.body_at) == ("abc", len(HEAD + tagged_field_section(*values)))
    assert response_body_at(bytes(4) + tagged_field_section(*values) + b"body", 1) == 4 + len(
        tagged_field_section(*values)
    )


@pytest.mark.parametrize(
    "flood",
    [
        tagged_field_section(*(b"",) * (MAX_TAGGED_FIELDS + 1)),
        tagged_field_section(bytes(MAX_TAGGED_BYTES)),
        tagged_field_section(bytes(20_000_000)),
    ],
)
def test_rejects_header_with_too_many_tagged_fields(flood: bytes) -> None:
    with pytest.raises(MalformedMessage, match="tagged field"):
        parse_request_header(HEAD + flood + b"body", 2)
    with pytest.raises(MalformedMessage, match="tagged field"):
        response_body_at(bytes(4) + flood, 1)


@pytest.mark.parametrize("cut", [b"", b"\x01", b"\x01\x00", b"\x01\x00\x05abc", b"\xff" * 9, b"\x02\x00\x00"])
def test_rejects_truncated_tagged_header_fields(cut: bytes) -> None:
    with pytest.raises(MalformedMessage):
        parse_request_header(HEAD + cut, 2)


def test_rejects_millions_of_tagged_fields_in_bounded_time() -> None:
    most, flood = tagged_field_section(*(b"",) * MAX_TAGGED_FIELDS), unsigned_varint(2_000_000) + bytes(4_000_000)

    assert cpu_seconds_of_call(lambda: skip_tagged_fields(flood, 0)) < 20 * cpu_seconds_of_call(
        lambda: skip_tagged_fields(most, 0)
    )


@pytest.mark.parametrize("length", [-2, -32768, 4, 32767])
def test_negative_client_id_length_is_null_and_excessive_one_rejected(length: int) -> None:
    frame = struct.pack(">hhih", 0, 3, 7, length) + b"abc"
    if length < 0:
        assert parse_request_header(frame, 1).client_id is None
    else:
        with pytest.raises(MalformedMessage, match="client id"):
            parse_request_header(frame, 1)
