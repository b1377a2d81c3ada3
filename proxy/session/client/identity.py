"""A client's identity, from its request headers, its ApiVersions request and its SASL login. No secret is stored.

The name in a login becomes the principal after the broker has accepted that login. A frame's first bytes distinguish
raw tokens (SaslHandshake v0) from requests.
"""

from dataclasses import dataclass
from enum import Enum

from sluicegate.protocol.api import Api
from sluicegate.protocol.before_login import login_response_in, mechanism_in, token_in
from sluicegate.protocol.errors import MalformedMessage
from sluicegate.protocol.headers import HEAD_BYTES, RequestHeader, parse_request_header, read_request_head
from sluicegate.proxy.session.client.claimed_principal import (
    UNNAMED,
    ClaimedPrincipal,
    PrincipalSources,
    UnverifiedReason,
    principal_in,
)
from sluicegate.proxy.session.client.client_text import client_text
from sluicegate.validation.rules.rule import Client

# This number is above every API key and version in use, and below the first two bytes of any SASL token.
_API_KEYS_END = 512
_VERSIONS_END = 32


def may_be_request(size: int, head: bytes) -> bool:
    """Return whether a frame among raw SASL tokens starts like a Kafka request.

    PLAIN, SCRAM and OAUTHBEARER tokens start with text (or a NUL and text), GSSAPI tokens with 0x60 or 0x05.
    """
    if size < HEAD_BYTES or len(head) < HEAD_BYTES:
        return False
    api_key, version, _ = read_request_head(head)
    return 0 <= api_key < _API_KEYS_END and 0 <= version < _VERSIONS_END


@dataclass(slots=True)
class ClientIdentity:
    """What is known about a client's identity, as `client_text` shows it. Unknown fields are None.

    If `doubt` is not None, rules, quotas and exemptions may not rely on `principal`, which then ends with "
    (unverified)".
    """

    peer: str
    client_id: str | None = None
    software_name: str | None = None
    software_version: str | None = None
    principal: str | None = None
    doubt: UnverifiedReason | None = None

    @property
    def is_verified(self) -> bool:
        """Whether rules, quotas and exemptions may rely on `principal`."""
        return self.doubt is None

    def name_by(self, claimed: ClaimedPrincipal) -> None:
        """Set the principal from an accepted login or a verified certificate."""
        self.principal, self.doubt = claimed

    def for_rules(self) -> Client:
        """Return the current identity as rules see it."""
        names = (self.peer, self.client_id, self.software_name, self.software_version)
        return Client(*names, self.principal) if self.is_verified else Client(*names, is_unverified=True)


def read_header(identity: ClientIdentity, api: Api, version: int, frame: bytearray) -> RequestHeader:
    """Parse a complete request's header, and record the client id in `identity`. Raises MalformedMessage."""
    try:
        header = parse_request_header(frame, api.request_header_version(version))
    except MalformedMessage as error:
        raise MalformedMessage(f"{api.name} v{version}: {error}") from error
    identity.client_id = None if header.client_id is None else client_text(header.client_id)
    return header


@dataclass(frozen=True, slots=True)
class LoginFailure:
    """A login that the broker rejected: its mechanism, the claimed principal and the broker's reason."""

    mechanism: str | None
    principal: str
    reason: str | None


class SaslStage(Enum):
    """The kinds of frames that may follow on a connection."""

    REQUESTS = "Kafka requests only"
    RAW_TOKENS = "tokens without headers, until a Kafka request comes (SaslHandshake v0)"


@dataclass(frozen=True, slots=True)
class LoginAttempt:
    """One login attempt. `claimed` is the principal that its first token names."""

    mechanism: str | None
    claimed: ClaimedPrincipal


# With SCRAM only the first token names the client (RFC 5802). With every other mechanism each token is a separate
# login, because after a rejected OAUTHBEARER token Kafka accepts the next one without another handshake.
_SEVERAL_TOKENS = frozenset({"SCRAM-SHA-256", "SCRAM-SHA-512"})


class SaslTracker:
    """Follows a connection's SASL exchange, to learn the principal and to find the end of raw tokens.

    `has_begun` is true after the client has sent a handshake. `logged_in` is true after the broker has accepted a
    login. A client that logs in again keeps its principal until the broker accepts the new login. As on a broker with
    SASL_SSL, the login determines the principal even if the client has a certificate.
    """

    def __init__(self, identity: ClientIdentity, sources: PrincipalSources) -> None:
        """`sources` describes how brokers derive principals from logins."""
        self.stage = SaslStage.REQUESTS
        self.logged_in = False
        self.has_begun = False
        self._identity = identity
        self._sources = sources
        self._mechanism: str | None = None
        self._login: LoginAttempt | None = None

    def on_handshake(self, version: int, frame: bytearray, body_at: int) -> None:
        """Record the mechanism of a SaslHandshake request. After version 0 of this request, tokens have no header.

        A malformed request names no mechanism. The broker responds to it or closes the connection.
        """
        try:
            self._mechanism = mechanism_in(frame, version, body_at)
        except MalformedMessage:
            self._mechanism = None
        self._login = None
        self.has_begun = True
        if version == 0:
            self.stage = SaslStage.RAW_TOKENS

    def on_token(self, token: bytes) -> LoginAttempt:
        """Read the user name in a raw token from the client.

        Return the login attempt to which the broker's response belongs.
        """
        login = self._login
        if login is None or login.mechanism not in _SEVERAL_TOKENS:
            login = self._login = LoginAttempt(self._mechanism, principal_in(self._mechanism, token, self._sources))
        return login

    def on_token_accepted(self, login: LoginAttempt, token: bytes) -> None:
        """Handle a token with which the broker responds to `login` without an error."""
        if completes_login(login.mechanism, token):
            self.logged_in = True
            self._identity.name_by(login.claimed)

    def on_authenticate(self, version: int, frame: bytearray, body_at: int) -> LoginAttempt:
        """Read a SaslAuthenticate request's token and return the login attempt.

        A malformed request names no client.
        """
        try:
            return self.on_token(token_in(frame, version, body_at))
        except MalformedMessage:
            self._login = None
            return LoginAttempt(self._mechanism, UNNAMED)

    def on_authenticate_response(
        self, login: LoginAttempt, version: int, frame: bytearray, body_at: int
    ) -> LoginFailure | None:
        """Return the failure if the broker rejected the login. Raises MalformedMessage."""
        response = login_response_in(frame, version, body_at)
        if response.error_code:
            mechanism, reason = login.mechanism, response.error_message
            if login is self._login:
                self._login = None
            return LoginFailure(
                None if mechanism is None else client_text(mechanism),
                login.claimed.principal,
                None if reason is None else client_text(reason),
            )
        self.on_token_accepted(login, response.token)
        return None

    def on_first_request(self) -> None:
        """Leave the stage of raw tokens, because the first Kafka request has arrived."""
        self.stage = SaslStage.REQUESTS


def completes_login(mechanism: str | None, token: bytes) -> bool:
    """Return whether a broker's token without an error completes the login. Return True for unknown mechanisms."""
    match mechanism:
        case "PLAIN" | "OAUTHBEARER":  # an OAUTHBEARER token that is not empty reports an error (RFC 7628)
            return not token
        # this token is the server's signature, which the server sends after it has checked the proof (RFC 5802)
        case "SCRAM-SHA-256" | "SCRAM-SHA-512":
            return token.startswith(b"v=")
    return True
