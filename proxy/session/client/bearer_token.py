"""Reads the user name in an OAUTHBEARER token (RFC 7628) from the claim that the brokers use (RFC 7519)."""

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from sluicegate.config.listen import Listen
from sluicegate.config.values.claim_path import ClaimPath, claim_path

_MAX_CLAIMS_BYTES = 65_536


class UserNames(Protocol):
    """How brokers derive the user name from the claims of a token that they accept."""

    def user_name_in(self, claims: Mapping[str, Any]) -> str | None:
        """Return the user name, or None if the claims contain none."""


@dataclass(frozen=True, slots=True)
class KafkaClaim:
    """Kafka's own login handlers, which take the user name from one claim. The claim must be a string."""

    claim: str

    def user_name_in(self, claims: Mapping[str, Any]) -> str | None:
        name = claims.get(self.claim)
        return name if isinstance(name, str) else None


USUAL_CLAIM: Final = KafkaClaim("sub")
"""Kafka's default for sasl.oauthbearer.sub.claim.name."""


@dataclass(frozen=True, slots=True)
class StrimziClaims:
    """Strimzi's login handler, which takes the user name from the claim at one path, or else at a fallback path.

    Each path has its own prefix for the name. Numbers, booleans and null are converted to strings. Fractions are not
    converted, because Java and Python format them differently, so a token with a fraction names no user.
    """

    username: ClaimPath
    prefix: str = ""
    fallback: ClaimPath | None = None
    fallback_prefix: str = ""

    def user_name_in(self, claims: Mapping[str, Any]) -> str | None:
        name = _text_at(claims, self.username)
        if name:
            return self.prefix + name
        if name is None or self.fallback is None:
            return None
        name = _text_at(claims, self.fallback)
        return self.fallback_prefix + name if name else None


def _text_at(claims: Any, path: ClaimPath) -> str | None:
    """Return a claim as a string, or an empty string if the claim is missing. Return None for a fraction."""
    value = claims
    for step in path:
        if isinstance(step, str):
            value = value.get(step, "") if isinstance(value, dict) else ""
        else:
            value = value[step] if isinstance(value, list) and step < len(value) else ""
    match value:
        case str():
            return value
        case None | bool():
            return json.dumps(value)
        case int():
            return str(value)
        case float():
            return None
    return ""


def user_names_of(listen: Listen) -> UserNames | None:
    """Return how the brokers derive user names from tokens, or None if the configuration does not describe this."""
    if listen.oauth_username_claim is not None:
        fallback = listen.oauth_fallback_claim
        return StrimziClaims(
            claim_path(listen.oauth_username_claim),
            listen.oauth_username_prefix or "",
            None if fallback is None else claim_path(fallback),
            listen.oauth_fallback_prefix or "",
        )
    return None if listen.oauthbearer_claim is None else KafkaClaim(listen.oauthbearer_claim)


def name_in_token(response: bytes, names: UserNames) -> str | None:
    """Return the user name in a client's first response, or None if no name can be read."""
    parts = _bearer(response).split(b".", 2)
    if len(parts) < 2 or len(parts[1]) > _MAX_CLAIMS_BYTES:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + b"=" * (-len(parts[1]) % 4)))
    except (ValueError, binascii.Error, RecursionError):
        return None
    return names.user_name_in(claims) if isinstance(claims, dict) else None


def _bearer(response: bytes) -> bytes:
    """Return the token in a client's first response as Kafka reads it (OAuthBearerClientInitialResponse).

    After `n,a=authzid,` the response has key=value pairs between bytes of value 1, and the token is in the last `auth`
    pair. The result is empty if there is no token or if the token is too long.
    """
    if len(response) > 2 * _MAX_CLAIMS_BYTES or not response.startswith(b"n,"):
        return b""
    _, _, pairs = response.partition(b",\x01")
    auth = [value for key, _, value in (pair.partition(b"=") for pair in pairs.split(b"\x01")) if key == b"auth"]
    scheme, _, token = auth[-1].partition(b" ") if auth else (b"", b"", b"")
    return token.lstrip(b" ") if scheme.lower() == b"bearer" else b""
