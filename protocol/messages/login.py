"""A client's side of a SASL login (SaslHandshake, SaslAuthenticate), without I/O.

Supports PLAIN (RFC 4616), SCRAM (RFC 5802) and OAUTHBEARER (RFC 7628). The proxy and the pipeline send the requests,
each over its own kind of connection.
"""

from collections.abc import Generator
from dataclasses import dataclass, field

from sluicegate.protocol.api import ApiKey
from sluicegate.protocol.messages.handshake import (
    SASL_AUTHENTICATE_REQUEST,
    SASL_AUTHENTICATE_RESPONSE,
    SASL_HANDSHAKE_REQUEST,
    SASL_HANDSHAKE_RESPONSE,
)

_HANDSHAKE_VERSION = 1
_AUTHENTICATE_VERSION = 0
# Kafka's default is 4,096. This number of iterations takes half a second.
_MAX_ITERATIONS = 1_000_000
_MAX_WORDS = 300

Response = bytes | memoryview


@dataclass(frozen=True, slots=True)
class PasswordLogin:
    """A login with a password. `mechanism` is PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512."""

    mechanism: str
    username: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class TokenLogin:
    """A login with a bearer token (OAUTHBEARER), and with SASL extensions by name."""

    token: str = field(repr=False)
    extensions: tuple[tuple[str, str], ...] = ()

    @property
    def mechanism(self) -> str:
        """Return the SASL mechanism."""
        return "OAUTHBEARER"


@dataclass(frozen=True, slots=True)
class LoginRequest:
    """A request to send: its API, version and encoded body."""

    key: ApiKey
    version: int
    body: bytes = field(repr=False)


class SaslAuthenticationFailed(Exception):
    """Raised if the broker rejects the login. The message is the broker's, or describes its invalid response."""


class LoginNotOffered(SaslAuthenticationFailed):
    """Raised if the broker accepts no logins at all."""


class TokenNotAccepted(SaslAuthenticationFailed):
    """Raised if the broker rejects the token. It may accept another one."""


class LoginExchange:
    """The requests of one login, in order. Each depends on the response to the previous one."""

    def __init__(self, login: PasswordLogin | TokenLogin) -> None:
        self._steps = _steps(login)

    def first(self) -> LoginRequest:
        """Return the first request."""
        return next(self._steps)

    def after(self, response: Response) -> LoginRequest | None:
        """Return the next request, or None after a successful login.

        Raises SaslAuthenticationFailed and MalformedMessage. With SCRAM, this hashes the password, which takes up to
        half a second.
        """
        try:
            return self._steps.send(response)
        except StopIteration:
            return None


_Steps = Generator[LoginRequest, Response, None]
_Reply = Generator[LoginRequest, Response, bytes]


def _steps(login: PasswordLogin | TokenLogin) -> _Steps:
    body = SASL_HANDSHAKE_REQUEST.build({"mechanism": login.mechanism}, _HANDSHAKE_VERSION)
    response = yield LoginRequest(ApiKey.SASL_HANDSHAKE, _HANDSHAKE_VERSION, body)
    handshake, _ = SASL_HANDSHAKE_RESPONSE.parse_start(response, _HANDSHAKE_VERSION)
    if handshake["error_code"]:
        offered = _shown(", ".join(handshake["mechanisms"]))
        if not offered:
            raise LoginNotOffered("the broker offers no SASL here; is this the plaintext listener?")
        raise SaslAuthenticationFailed(f"the broker offers {offered}, not {login.mechanism}")
    if isinstance(login, TokenLogin):
        yield from _bearer(login)
    elif login.mechanism == "PLAIN":
        yield from _authenticate(f"\0{login.username}\0{login.password}".encode())
    else:
        yield from _scram(login)


def _bearer(login: TokenLogin) -> _Steps:
    """Yield the requests of an OAUTHBEARER login.

    A broker that rejects a token first sends the reason. It ends the exchange only after the client has sent a single
    separator.
    """
    extensions = "".join(f"\1{name}={value}" for name, value in login.extensions)
    reason = b""
    try:
        reason = yield from _authenticate(f"n,,\1auth=Bearer {login.token}{extensions}\1\1".encode())
        if reason:
            yield from _authenticate(b"\1")
    except SaslAuthenticationFailed as error:
        if not reason:
            raise TokenNotAccepted(str(error)) from error
    if reason:
        raise TokenNotAccepted(f"the broker does not accept the token: {_shown(reason.decode(errors='replace'))}")


def _scram(login: PasswordLogin) -> _Steps:
    from scramp import ScramClient, ScramException  # noqa: PLC0415  # 6 MB that few clusters need

    try:
        scram = ScramClient([login.mechanism], login.username, login.password)
        first = yield from _authenticate(scram.get_client_first().encode())
        scram.set_server_first(first.decode())
        if int(scram.iterations) > _MAX_ITERATIONS:
            raise SaslAuthenticationFailed(
                f"the broker requires {scram.iterations} hashes of the password, more than {_MAX_ITERATIONS}"
            )
        final = yield from _authenticate(scram.get_client_final().encode())
        scram.set_server_final(final.decode())
    except (ScramException, ValueError, LookupError, TypeError) as error:  # any error in the broker's SCRAM message
        raise SaslAuthenticationFailed(_shown(f"{login.mechanism}: {error}")) from error


def _authenticate(token: bytes) -> _Reply:
    body = SASL_AUTHENTICATE_REQUEST.build({"auth_bytes": token}, _AUTHENTICATE_VERSION)
    response = yield LoginRequest(ApiKey.SASL_AUTHENTICATE, _AUTHENTICATE_VERSION, body)
    value, _ = SASL_AUTHENTICATE_RESPONSE.parse_start(response, _AUTHENTICATE_VERSION)
    if value["error_code"]:
        raise SaslAuthenticationFailed(_shown(value["error_message"] or "the broker gives no reason"))
    return bytes(value["auth_bytes"])


def _shown(text: str) -> str:
    """Return the beginning of a broker's text for a message, with printable characters only."""
    return "".join(each if each.isprintable() else "?" for each in text[:_MAX_WORDS])
