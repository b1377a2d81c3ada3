"""Tokens for OAUTHBEARER logins, from the endpoint in `upstream.sasl` or from files that another process refreshes."""

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
"""The number of seconds for which a client uses a token from a file before the file is read again."""
_LEAST_SECONDS = 1.0
_MOST_ENDPOINTS = 8


@dataclass(frozen=True, slots=True)
class Token:
    """A token for one or more logins. `until` is the time to get the next token (s since 1970)."""

    value: str = field(repr=False)
    until: float


def own_token(sasl: Sasl, seconds: float) -> Token:
    """Return a valid token. A request for a new one blocks for at most `seconds`. Raises TokenMissing."""
    if sasl.oauth is None:
        return token_in_file(sasl.current_token)
    return cached_token(_granted(sasl.oauth), seconds)


def cached_token(tokens: TokenCache, seconds: float) -> Token:
    """Return a valid token from a token endpoint.

    A request for a new one blocks for at most `seconds`. Raises TokenMissing.
    """
    value = tokens.current(seconds)
    return Token(value, time.time() + max(_LEAST_SECONDS, tokens.seconds_left()))


def forget_token(sasl: Sasl, token: Token) -> None:
    """Forget a token that a broker rejected, so that it is not used again."""
    if sasl.oauth is not None:
        _granted(sasl.oauth).forget(token.value)


@lru_cache(maxsize=_MOST_ENDPOINTS)
def _granted(oauth: OauthClient) -> TokenCache:
    """Return one client's tokens. All connections of this process share them."""
    return TokenCache(TokenEndpoint(configured_client(oauth, "upstream.sasl.oauth")).fetch)


def token_in_file(source: Password) -> Token:
    """Return the token in a file, which is read each time.

    Raises TokenMissing if there is no token or if it has expired.
    """
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
        raise TokenMissing(
            f"{source.key}: the token in {source.file} expired {ago}; the process that writes this file must renew it"
        )
    return Token(value, min(now + _FILE_SECONDS, now + _FILE_SECONDS if expires is None else expires))


def _expiry_in(value: str) -> float | None:
    """Return the `exp` of a JWT (s since 1970; RFC 7519, 4.1.4).

    Return None if the token is not a JWT or has no `exp`.
    """
    payload = value.split(".", 2)[1:2]
    try:
        claims = json.loads(base64.urlsafe_b64decode(payload[0] + "=" * (-len(payload[0]) % 4)))
        expires = claims["exp"]
    except (LookupError, TypeError, ValueError, binascii.Error, RecursionError):
        return None
    is_number = isinstance(expires, int | float) and not isinstance(expires, bool)
    return float(expires) if is_number and abs(expires) < 1 << 53 else None
