"""Reads the messages before a login without construct, because any client may send any number of them.

These are ApiVersions requests v3 to v5, SaslHandshake and SaslAuthenticate requests, and SaslAuthenticate responses. In
requests, only the fields that the proxy reports are read, because brokers ignore unknown tags and bytes after the last
field. Tests compare the results with the construct schemas.
"""

from dataclasses import dataclass

from sluicegate.protocol.api import APIS, ApiKey
from sluicegate.protocol.errors import MalformedMessage
from sluicegate.protocol.walk import MAX_TAGGED_FIELDS, Walk

_INT32_BYTES = 4
_INT64_BYTES = 8
_SOFTWARE_SINCE = 3
_AUTHENTICATE_FLEXIBLE_SINCE = APIS[ApiKey.SASL_AUTHENTICATE].flexible_since
_LIFETIME_SINCE = 1


@dataclass(frozen=True, slots=True)
class LoginResponse:
    """A broker's response to a SASL token.

    `error_code` is 0 if the exchange continues or the client is now logged in.
    """

    error_code: int
    error_message: str | None
    token: bytes


def software_in(frame: bytes | bytearray, version: int, body_at: int) -> tuple[str, str] | None:
    """Return the name and version of the client's software from an ApiVersions request; None before version 3.

    Raises MalformedMessage.
    """
    if version < _SOFTWARE_SINCE:
        return None
    walk = Walk()
    walk.begin(frame, version, True, body_at, 0, MAX_TAGGED_FIELDS)
    try:
        name = walk.required_string()
        software_version = walk.required_string()
    except MalformedMessage as error:
        raise MalformedMessage(f"ApiVersions v{version}: {error}") from error
    return name, software_version


def mechanism_in(frame: bytes | bytearray, version: int, body_at: int) -> str:
    """Return the mechanism of a SaslHandshake request. Raises MalformedMessage."""
    walk = Walk()
    walk.begin(frame, version, False, body_at, 0, MAX_TAGGED_FIELDS)
    try:
        mechanism = walk.required_string()
    except MalformedMessage as error:
        raise MalformedMessage(f"SaslHandshake v{version}: {error}") from error
    return mechanism


def token_in(frame: bytes | bytearray, version: int, body_at: int) -> bytes:
    """Return the token of a SaslAuthenticate request. Raises MalformedMessage."""
    walk = Walk()
    walk.begin(frame, version, version >= _AUTHENTICATE_FLEXIBLE_SINCE, body_at, 0, MAX_TAGGED_FIELDS)
    try:
        token = _required_bytes(walk)
    except MalformedMessage as error:
        raise MalformedMessage(f"SaslAuthenticate v{version}: {error}") from error
    return token


def login_response_in(frame: bytes | bytearray, version: int, body_at: int) -> LoginResponse:
    """Return the fields of a SaslAuthenticate response. Raises MalformedMessage."""
    walk = Walk()
    walk.begin(frame, version, version >= _AUTHENTICATE_FLEXIBLE_SINCE, body_at, 0, MAX_TAGGED_FIELDS)
    try:
        error_code = walk.int16()
        error_message = walk.string()
        token = _required_bytes(walk)
        if version >= _LIFETIME_SINCE:
            walk.skip(_INT64_BYTES)
        walk.skip_tags()
        walk.expect_end()
    except MalformedMessage as error:
        raise MalformedMessage(f"SaslAuthenticate response v{version}: {error}") from error
    return LoginResponse(error_code, error_message, token)


def _required_bytes(walk: Walk) -> bytes:
    size = walk.length(_INT32_BYTES)
    if size < 0:
        raise MalformedMessage("a token is null")
    return walk.bytes_of(size)
