"""The name that a login's first token claims. No more of a token is decoded than a name may take."""

import base64
import binascii
import json

from sluicegate.proxy.session.client_text import MAX_CHARACTERS, client_text

_KIND = "User:"
_MAX_SCRAM_BYTES = 8192
_MAX_CLAIMS_BYTES = 65_536


def principal_in(mechanism: str | None, token: bytes) -> str | None:
    """The principal that a client's token names, as Kafka writes it (User:name); None when it names none."""
    name: bytes | str | None = None
    match mechanism:
        case "PLAIN":  # RFC 4616: authzid NUL authcid NUL password
            parts = token.split(b"\0", 3)
            name = parts[1] if len(parts) == 3 else None
        case "SCRAM-SHA-256" | "SCRAM-SHA-512":  # RFC 5802: n,,n=user,r=nonce
            name = _scram_user(token[:_MAX_SCRAM_BYTES])
        case "OAUTHBEARER":  # RFC 7628; the subject stands in the token's second part (RFC 7519)
            name = _jwt_subject(token)
    return _KIND + client_text(name, MAX_CHARACTERS - len(_KIND)) if name else None


def _scram_user(first: bytes) -> bytes | None:
    if first[:2] not in (b"n,", b"y,", b"p="):
        return None
    if b",tokenauth=true" in first.lower():
        return None  # the id of a delegation token: only the broker knows whose it is (KIP-48)
    # The last part is only there to end the one before it.
    attributes = first.split(b",", 4)[2:-1]
    user = next((part[2:] for part in attributes if part.startswith(b"n=")), None)
    return user.replace(b"=2C", b",").replace(b"=3D", b"=") if user else None


def _jwt_subject(token: bytes) -> str | None:
    bearer = token[: 2 * _MAX_CLAIMS_BYTES].split(b"auth=Bearer ", 1)
    parts = bearer[-1].split(b"\x01", 1)[0].split(b".", 2)
    if len(bearer) < 2 or len(parts) < 2 or len(parts[1]) > _MAX_CLAIMS_BYTES:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + b"=" * (-len(parts[1]) % 4)))
    except (ValueError, binascii.Error, RecursionError):
        return None
    subject = claims.get("sub") if isinstance(claims, dict) else None
    return subject if isinstance(subject, str) else None
