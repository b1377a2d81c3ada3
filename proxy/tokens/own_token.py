"""Tokens for OAUTHBEARER logins: of `upstream.sasl`, and from files that another process refreshes."""

import base64
import binascii
import json
import re
import time
from dataclasses import dataclass, field
from functools import lru_cache

from sluicegate.config.oauth import OauthClient
from sluicegate.config.upstream import Sasl
from sluicegate.config.values.password import Password, PasswordUnreadable
from sluicegate.proxy.tokens.cache import TokenCache, TokenMissing
from sluicegate.proxy.tokens.endpoint import TokenEndpoint, configured_client

_LEGAL = re.compile(r"[\x21-\x7e]+")
_FILE_SECONDS = 300.0
"""How long a token from a file is used by a client that keeps it; then the file is read again."""
_LEAST_SECONDS = 1.0
_MOST_ENDPOINTS = 8


@dataclass(frozen=True, slots=True)
class Token:
    """A token for one login or more. `until`: when to get the next one (s since 1970)."""

    value: str = field(repr=False)
    until: float


def own_token(sasl: Sasl, seconds: float) -> Token:
    """Return a valid token; blocks for `seconds` at most if it requests one. Raises TokenMissing."""
    if sasl.oauth is None:
        return token_in_file(sasl.current_token)
    return cached_token(_granted(sasl.oauth), seconds)


def cached_token(tokens: TokenCache, seconds: float) -> Token:
    """Return a valid token of a token endpoint; blocks for `seconds` at most for a request. Raises TokenMissing."""
    value = tokens.current(seconds)
    return Token(value, time.time() + max(_LEAST_SECONDS, tokens.seconds_left()))


def forget_token(sasl: Sasl, token: Token) -> None:
    """Do not use a token again that a broker has rejected."""
    if sasl.oauth is not None:
        _granted(sasl.oauth).forget(token.value)


@lru_cache(maxsize=_MOST_ENDPOINTS)
def _granted(oauth: OauthClient) -> TokenCache:
    """Return the tokens of one client, which all of this process's connections share."""
    return TokenCache(TokenEndpoint(configured_client(oauth, "upstream.sasl.oauth")).fetch)


def token_in_file(source: Password) -> Token:
    """Return the token in a file, which is read each time. Raises TokenMissing if there is none or it has expired."""
    try:
        value = source.get().strip()
    except PasswordUnreadable as error:
        raise TokenMissing(str(error)) from error
    if _LEGAL.fullmatch(value) is None:
        raise TokenMissing(f"{source.key}: {source.file} has no valid token")
    now = time.time()
    expires = _expiry_in(value)
    if expires is not None and expires <= now:
        ago = f"{now - expires:.0f} s ago"
        raise TokenMissing(f"{source.key}: the token in {source.file} expired {ago}; its process has to replace it")
    return Token(value, min(now + _FILE_SECONDS, now + _FILE_SECONDS if expires is None else expires))


def _expiry_in(value: str) -> float | None:
    """Return a JWT's `exp` (s since 1970; RFC 7519, 4.1.4); None if the token is none, or has none."""
    payload = value.split(".", 2)[1:2]
    try:
        claims = json.loads(base64.urlsafe_b64decode(payload[0] + "=" * (-len(payload[0]) % 4)))
        expires = claims["exp"]
    except (LookupError, TypeError, ValueError, binascii.Error, RecursionError):
        return None
    is_number = isinstance(expires, int | float) and not isinstance(expires, bool)
    return float(expires) if is_number and abs(expires) < 1 << 53 else None
