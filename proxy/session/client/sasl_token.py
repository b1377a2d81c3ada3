"""SASL tokens: the name that a token claims, and the difference between raw tokens (SaslHandshake v0) and requests.

Only the part of a token that can hold a name is decoded.
"""

import base64
import binascii
import json
from typing import NamedTuple

from sluicegate.protocol.headers import HEAD_BYTES, read_request_head
from sluicegate.proxy.session.client.client_text import MAX_CHARACTERS, client_text

_KIND = "User:"
_UNVERIFIED = " (unverified)"
# Kafka's default for sasl.oauthbearer.sub.claim.name.
_USUAL_CLAIM = "sub"
_MAX_SCRAM_BYTES = 8192
_MAX_CLAIMS_BYTES = 65_536


class ClaimedPrincipal(NamedTuple):
    """The principal that a token names. `is_verified`: a broker that accepts the token authorizes this principal;
    otherwise the broker may read another claim than the proxy.
    """

    principal: str
    is_verified: bool


def principal_in(mechanism: str | None, token: bytes, oauthbearer_claim: str | None = None) -> ClaimedPrincipal | None:
    """Return the principal that a client's token names, as Kafka writes it (User:name); None if it names none.

    `oauthbearer_claim` is the claim that brokers use as the principal; None: unknown.
    """
    name: bytes | str | None = None
    match mechanism:
        case "PLAIN":  # RFC 4616: authzid NUL authcid NUL password
            parts = token.split(b"\0", 3)
            name = parts[1] if len(parts) == 3 else None
        case "SCRAM-SHA-256" | "SCRAM-SHA-512":  # RFC 5802: n,,n=user,r=nonce
            name = _scram_user(token[:_MAX_SCRAM_BYTES])
        case "OAUTHBEARER":  # RFC 7628; claims are in the token's second part (RFC 7519)
            name = _jwt_claim(token, oauthbearer_claim or _USUAL_CLAIM)
            if oauthbearer_claim is None and name:
                return ClaimedPrincipal(
                    _shown(name, MAX_CHARACTERS - len(_UNVERIFIED)) + _UNVERIFIED, is_verified=False
                )
    return ClaimedPrincipal(_shown(name, MAX_CHARACTERS), is_verified=True) if name else None


def _shown(name: bytes | str, characters: int) -> str:
    return _KIND + client_text(name, characters - len(_KIND))


def _scram_user(first: bytes) -> bytes | None:
    if first[:2] not in (b"n,", b"y,", b"p="):
        return None
    if b",tokenauth=true" in first.lower():
        return None  # the id of a delegation token: only the broker knows its owner (KIP-48)
    # The last part is not used: it only shows that the attribute before it is complete.
    attributes = first.split(b",", 4)[2:-1]
    user = next((part[2:] for part in attributes if part.startswith(b"n=")), None)
    return user.replace(b"=2C", b",").replace(b"=3D", b"=") if user else None


def _jwt_claim(token: bytes, claim: str) -> str | None:
    parts = _bearer(token).split(b".", 2)
    if len(parts) < 2 or len(parts[1]) > _MAX_CLAIMS_BYTES:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + b"=" * (-len(parts[1]) % 4)))
    except (ValueError, binascii.Error, RecursionError):
        return None
    subject = claims.get(claim) if isinstance(claims, dict) else None
    return subject if isinstance(subject, str) else None


def _bearer(response: bytes) -> bytes:
    """Return the token of a client's first response as Kafka reads it (OAuthBearerClientInitialResponse): the last
    `auth` of the key=value pairs between bytes of 1, after `n,a=authzid,`. Return an empty token if there is none or it
    is too long.
    """
    if len(response) > 2 * _MAX_CLAIMS_BYTES or not response.startswith(b"n,"):
        return b""
    _, _, pairs = response.partition(b",\x01")
    auth = [value for key, _, value in (pair.partition(b"=") for pair in pairs.split(b"\x01")) if key == b"auth"]
    scheme, _, token = auth[-1].partition(b" ") if auth else (b"", b"", b"")
    return token.lstrip(b" ") if scheme.lower() == b"bearer" else b""


# Above every API key and version in use, and below the first bytes of SASL tokens.
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
