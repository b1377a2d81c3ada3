"""Who a client is: what its requests, its ApiVersions and its SASL exchange tell. No secret is kept."""

import base64
import binascii
import json
from dataclasses import dataclass
from enum import Enum

from protocol.messages import sasl_authenticate, sasl_handshake


@dataclass(slots=True)
class ClientIdentity:
    """What is known of one connection's client so far; None where it has not said."""

    peer: str
    client_id: str | None = None
    software_name: str | None = None
    software_version: str | None = None
    principal: str | None = None


@dataclass(frozen=True, slots=True)
class LoginFailure:
    """A login that the broker refused: with which mechanism, as whom, and the broker's reason."""

    mechanism: str | None
    principal: str | None
    reason: str | None


class SaslStage(Enum):
    """What the next frame of a connection may be."""

    REQUESTS = "Kafka requests only"
    RAW_TOKENS = "tokens without headers, until a Kafka request comes (SaslHandshake v0)"


class SaslWatch:
    """Follows a SASL exchange from outside, to know the principal and where raw tokens end."""

    def __init__(self, identity: ClientIdentity) -> None:
        self.stage = SaslStage.REQUESTS
        self._identity = identity
        self._mechanism: str | None = None
        self._claimed: str | None = None

    def handshake_asked(self, version: int, body: bytes) -> None:
        """The client names a mechanism; after version 0 its tokens come raw."""
        self._mechanism = sasl_handshake.REQUEST.parse(body, version)["mechanism"]
        self._claimed = None
        if version == 0:
            self.stage = SaslStage.RAW_TOKENS

    def token_sent(self, token: bytes) -> None:
        """A token on its way to the broker: only the name in it is looked at."""
        self._claimed = principal_in(self._mechanism, token) or self._claimed

    def authenticate_asked(self, version: int, body: bytes) -> None:
        """A token within a SaslAuthenticate request."""
        self.token_sent(sasl_authenticate.REQUEST.parse(body, version)["auth_bytes"])

    def authenticate_answered(self, version: int, body: bytes) -> LoginFailure | None:
        """The broker took the token, or did not."""
        answer = sasl_authenticate.RESPONSE.parse(body, version)
        if answer["error_code"]:
            return LoginFailure(self._mechanism, self._claimed, answer["error_message"])
        self._identity.principal = self._claimed
        return None

    def requests_begin(self) -> None:
        """A Kafka request came after raw tokens: the broker let the client in, or will close the connection."""
        self.stage = SaslStage.REQUESTS
        self._identity.principal = self._claimed


def principal_in(mechanism: str | None, token: bytes) -> str | None:
    """The principal that a client's token names, as Kafka writes it (User:name); None when it names none."""
    name: str | None = None
    match mechanism:
        case "PLAIN":  # RFC 4616: authzid NUL authcid NUL password
            parts = token.split(b"\0")
            name = parts[1].decode("utf-8", "replace") if len(parts) == 3 else None
        case "SCRAM-SHA-256" | "SCRAM-SHA-512":  # RFC 5802: n,,n=user,r=nonce
            name = _scram_user(token.decode("utf-8", "replace"))
        case "OAUTHBEARER":  # RFC 7628; the subject stands in the token's second part (RFC 7519)
            name = _jwt_subject(token)
    return f"User:{name}" if name else None


def _scram_user(first: str) -> str | None:
    if first[:2] not in ("n,", "y,", "p="):
        return None
    attribute = next((part for part in first.split(",")[2:] if part.startswith("n=")), None)
    return attribute[2:].replace("=2C", ",").replace("=3D", "=") if attribute else None


def _jwt_subject(token: bytes) -> str | None:
    _, bearer, jwt = token.partition(b"auth=Bearer ")
    parts = jwt.split(b"\x01")[0].split(b".")
    if not bearer or len(parts) < 2:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + b"=" * (-len(parts[1]) % 4)))
    except (ValueError, binascii.Error):
        return None
    subject = claims.get("sub") if isinstance(claims, dict) else None
    return subject if isinstance(subject, str) else None
