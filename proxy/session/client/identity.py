"""Who a client is: what its requests, its ApiVersions and its SASL exchange tell. No secret is kept.

A name that a login claims becomes the principal when the broker has said yes to that very login, not before.
"""

from dataclasses import dataclass
from enum import Enum

from sluicegate.protocol.before_login import login_response_in, mechanism_in, token_in
from sluicegate.protocol.errors import MalformedMessage
from sluicegate.proxy.session.client.client_text import client_text
from sluicegate.proxy.session.client.sasl_token import ClaimedPrincipal, principal_in
from sluicegate.validation.rules.rule import Client


@dataclass(slots=True)
class ClientIdentity:
    """What is known of one connection's client so far, as `client_text` shows it; None where it has not said.

    `is_verified`: rules, quotas and exemptions may rely on `principal`. It is False for an OAUTHBEARER login while
    `listen.sasl.oauthbearer.sub.claim.name` is not set; `principal` then ends with " (unverified)".
    """

    peer: str
    client_id: str | None = None
    software_name: str | None = None
    software_version: str | None = None
    principal: str | None = None
    is_verified: bool = True

    def for_rules(self) -> Client:
        """Who it is at this moment: it may say more or something else later."""
        names = (self.peer, self.client_id, self.software_name, self.software_version)
        return Client(*names, self.principal) if self.is_verified else Client(*names, is_unverified=True)


@dataclass(frozen=True, slots=True)
class LoginFailure:
    """A login that the broker rejected: with which mechanism, as whom, and the broker's reason."""

    mechanism: str | None
    principal: str | None
    reason: str | None


class SaslStage(Enum):
    """What the next frame of a connection may be."""

    REQUESTS = "Kafka requests only"
    RAW_TOKENS = "tokens without headers, until a Kafka request comes (SaslHandshake v0)"


@dataclass(frozen=True, slots=True)
class Login:
    """One attempt to log in; `claimed` is the principal that its first token names."""

    mechanism: str | None
    claimed: ClaimedPrincipal | None


# In these only the first token names the client (RFC 5802); with every other mechanism each token is an attempt of its
# own: after a rejected OAUTHBEARER token Kafka takes the next one without another handshake.
_SEVERAL_TOKENS = frozenset({"SCRAM-SHA-256", "SCRAM-SHA-512"})


class SaslTracker:
    """Follows a SASL exchange from outside, to know the principal and where raw tokens end.

    `has_begun`: a mechanism was asked for. `logged_in`: the broker has said yes on this connection. A client that logs
    in again stays who it was until the broker's next yes.
    """

    def __init__(self, identity: ClientIdentity, oauthbearer_claim: str | None = None) -> None:
        """`oauthbearer_claim` is the claim that the brokers make the principal of; None: it is not known."""
        self.stage = SaslStage.REQUESTS
        self.logged_in = False
        self.has_begun = False
        self._identity = identity
        self._oauthbearer_claim = oauthbearer_claim
        self._mechanism: str | None = None
        self._login: Login | None = None
        self._certificate: str | None = None

    def on_handshake(self, version: int, frame: bytearray, body_at: int) -> None:
        """The client names a mechanism; after version 0 its tokens come raw. What cannot be read names none: the broker
        responds to it, or closes the connection.
        """
        try:
            self._mechanism = mechanism_in(frame, version, body_at)
        except MalformedMessage:
            self._mechanism = None
        self._login = None
        if not self.has_begun:
            self._certificate = self._identity.principal
        self.has_begun = True
        if version == 0:
            self.stage = SaslStage.RAW_TOKENS

    def on_token(self, token: bytes) -> Login:
        """A token on its way to the broker: only the name in it is looked at. Its answer is for the login returned."""
        login = self._login
        if login is None or login.mechanism not in _SEVERAL_TOKENS:
            claimed = principal_in(self._mechanism, token, self._oauthbearer_claim)
            login = self._login = Login(self._mechanism, claimed)
        return login

    def on_token_accepted(self, login: Login, token: bytes) -> None:
        """The broker's token to one of this login's, which it has not rejected."""
        if completes_login(login.mechanism, token):
            self.logged_in = True
            claimed = login.claimed
            self._identity.principal = self._certificate if claimed is None else claimed.principal
            self._identity.is_verified = claimed is None or claimed.is_verified

    def on_authenticate(self, version: int, frame: bytearray, body_at: int) -> Login:
        """A token within a SaslAuthenticate request. What cannot be read names nobody, as in `on_handshake`."""
        try:
            return self.on_token(token_in(frame, version, body_at))
        except MalformedMessage:
            self._login = None
            return Login(self._mechanism, None)

    def on_authenticate_response(
        self, login: Login, version: int, frame: bytearray, body_at: int
    ) -> LoginFailure | None:
        """The broker took the token, or did not. Raises MalformedMessage."""
        response = login_response_in(frame, version, body_at)
        if response.error_code:
            mechanism, reason = login.mechanism, response.error_message
            if login is self._login:
                self._login = None
            return LoginFailure(
                None if mechanism is None else client_text(mechanism),
                None if login.claimed is None else login.claimed.principal,
                None if reason is None else client_text(reason),
            )
        self.on_token_accepted(login, response.token)
        return None

    def on_first_request(self) -> None:
        """A Kafka request came after raw tokens."""
        self.stage = SaslStage.REQUESTS


def completes_login(mechanism: str | None, token: bytes) -> bool:
    """Whether a broker's token that comes without an error ends the login; of mechanisms not known here, any does."""
    match mechanism:
        case "PLAIN" | "OAUTHBEARER":  # what is not empty is OAUTHBEARER's error (RFC 7628)
            return not token
        case "SCRAM-SHA-256" | "SCRAM-SHA-512":  # RFC 5802: the server's signature, behind the proof was checked
            return token.startswith(b"v=")
    return True
