"""The hand-written readers of requests before a login agree with the construct schemas."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.protocol.before_login import login_response_in, mechanism_in, software_in, token_in
from sluicegate.protocol.errors import MalformedMessage
from sluicegate.protocol.integers import unsigned_varint
from sluicegate.protocol.messages.handshake import (
    SASL_AUTHENTICATE_REQUEST,
    SASL_AUTHENTICATE_RESPONSE,
    SASL_HANDSHAKE_REQUEST,
)
from tests.wire.cost import cpu_seconds_of_call
from tests.wire.unparsed_messages import API_VERSIONS_REQUEST

TEXT = st.text("abc.é日", max_size=300)
BEFORE = b"the header"


@given(st.sampled_from((3, 4, 5)), TEXT, TEXT, st.dictionaries(st.integers(0, 300), st.binary(max_size=9), max_size=3))
def test_software_name_and_version_equal_those_of_the_schema(
    version: int, name: str, software_version: str, later: dict[int, bytes]
) -> None:
    value = {"client_software_name": name, "client_software_version": software_version, "unknown_tags": later}
    frame = BEFORE + API_VERSIONS_REQUEST.build(value, version)

    assert software_in(frame, version, len(BEFORE)) == (name, software_version)


def test_versions_below_3_have_no_software_name() -> None:
    assert software_in(b"", 2, 0) is None


@given(st.sampled_from(SASL_HANDSHAKE_REQUEST.versions), TEXT)
def test_the_sasl_mechanism_equals_that_of_the_schema(version: int, mechanism: str) -> None:
    frame = bytearray(BEFORE + SASL_HANDSHAKE_REQUEST.build({"mechanism": mechanism}, version))

    assert mechanism_in(frame, version, len(BEFORE)) == mechanism


@given(st.sampled_from(SASL_AUTHENTICATE_REQUEST.versions), st.binary(max_size=300))
def test_the_sasl_token_equals_that_of_the_schema(version: int, token: bytes) -> None:
    frame = bytearray(BEFORE + SASL_AUTHENTICATE_REQUEST.build({"auth_bytes": token}, version))

    assert token_in(frame, version, len(BEFORE)) == token


@given(
    st.sampled_from(SASL_AUTHENTICATE_REQUEST.versions), st.integers(-1, 99), st.none() | TEXT, st.binary(max_size=300)
)
def test_a_login_response_equals_that_of_the_schema(version: int, code: int, message: str | None, token: bytes) -> None:
    value = {"error_code": code, "error_message": message, "auth_bytes": token}
    frame = bytearray(BEFORE + SASL_AUTHENTICATE_RESPONSE.build(value, version))

    answer = login_response_in(frame, version, len(BEFORE))

    assert (answer.error_code, answer.error_message, answer.token) == (code, message, token)


@pytest.mark.parametrize(
    "body",
    [
        b"\xff" * 400_000,  # a varint without an end
        unsigned_varint(40_001) + b"a" * 40_000 + b"\x02b\0",  # longer than brokers accept
        b"\x02\xff\x02b\0",
        b"\0\x02b\0",
        b"",
    ],
)
def test_rejects_software_name_or_version_that_no_broker_accepts(body: bytes) -> None:
    usual = API_VERSIONS_REQUEST.build({"client_software_name": "a" * 99, "client_software_version": "b"}, 3)

    with pytest.raises(MalformedMessage, match="ApiVersions v3: "):
        software_in(body, 3, 0)
    assert cpu_seconds_of_call(lambda: software_in(body, 3, 0)) < 100 * cpu_seconds_of_call(
        lambda: software_in(usual, 3, 0)
    )


@pytest.mark.parametrize("end", [b"", b"\0more", unsigned_varint(2_000_000) + bytes(4_000_000)])
def test_ignores_surplus_request_bytes_as_brokers_do(end: bytes) -> None:
    """Kafka 4.3.1 and 3.9.1 respond to such requests, except incomplete ones
    (tests/integration/test_unread_requests.py)."""
    assert software_in(b"\x02a\x02b" + end, 3, 0) == ("a", "b")
    assert mechanism_in(b"\0\x01a" + end, 1, 0) == "a"
    assert token_in(b"\0\0\0\x01a" + end, 1, 0) == b"a"
    assert token_in(b"\x02a" + end, 2, 0) == b"a"


@pytest.mark.parametrize("version", SASL_AUTHENTICATE_REQUEST.versions)
def test_rejects_null_sasl_token(version: int) -> None:
    with pytest.raises(MalformedMessage, match="SaslAuthenticate"):
        token_in(b"\0\0" if version >= 2 else b"\xff\xff\xff\xff", version, 0)
