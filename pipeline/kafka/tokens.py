"""Gets bearer tokens for SASL OAUTHBEARER.

A token comes from a token endpoint, or from a file that another process refreshes, as in Java's clients (`file:` as the
endpoint, KIP-768).
"""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import url2pathname

if TYPE_CHECKING:  # few clusters need tokens, so Spark's workers do not import these modules otherwise
    from sluicegate.proxy.tokens.cache import TokenCache
    from sluicegate.proxy.tokens.own_token import Token

_MOST_ENDPOINTS = 8
_PREFIX = "sasl.oauthbearer."
_CHECKS = f"{_PREFIX}token.endpoint.url, {_PREFIX}client.id, {_PREFIX}client.secret and {_PREFIX}scope"


@dataclass(frozen=True, slots=True)
class Bearer:
    """The source of tokens and the login's extensions. `endpoint` is http:, https: or file:."""

    endpoint: str
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    scope: str = ""
    extensions: tuple[tuple[str, str], ...] = ()
    ca_file: str | None = None
    timeout_seconds: float = 30.0

    @property
    def file(self) -> str | None:
        """Return the path of the file with the token; None if an endpoint grants tokens."""
        parts = urlsplit(self.endpoint)
        return url2pathname(parts.path) if parts.scheme == "file" else None


def token_of(bearer: Bearer) -> "Token":
    """Return a valid token from the cache or the endpoint. A file is read on every call. Raises TokenMissing."""
    from sluicegate.config.values.password import Password  # noqa: PLC0415
    from sluicegate.proxy.tokens.own_token import cached_token, token_in_file  # noqa: PLC0415

    if bearer.file is not None:
        return token_in_file(Password(f"{_PREFIX}token.endpoint.url", None, bearer.file))
    return cached_token(_granted(bearer), bearer.timeout_seconds)


def forget_token(bearer: Bearer, token: "Token") -> None:
    """Stop using a token that a broker has rejected."""
    if bearer.file is None:
        _granted(bearer).forget(token.value)


def for_librdkafka(bearer: Bearer, _: str) -> tuple[str, float, str, dict[str, str]]:
    """Return the result that `oauth_cb` requires: token, expiry, principal and extensions.

    Brokers ignore this principal and use the token's.
    """
    token = token_of(bearer)
    return token.value, token.until, bearer.client_id, dict(bearer.extensions)


@lru_cache(maxsize=_MOST_ENDPOINTS)
def _granted(bearer: Bearer) -> "TokenCache":
    """Return the tokens of one client, which all connections in this process share."""
    from sluicegate.config.tls import ServerTls  # noqa: PLC0415
    from sluicegate.config.values.password import Password, SecretText  # noqa: PLC0415
    from sluicegate.proxy.tokens.cache import TokenCache  # noqa: PLC0415
    from sluicegate.proxy.tokens.endpoint import ClientCredentials, TokenEndpoint  # noqa: PLC0415

    client = ClientCredentials(
        bearer.endpoint,
        bearer.client_id,
        Password(f"{_PREFIX}client.secret", SecretText(bearer.client_secret), None),
        bearer.scope,
        ServerTls(ca_file=bearer.ca_file),
        "https.ca.location",
        "https.ca.location",
        _CHECKS,
    )
    return TokenCache(TokenEndpoint(client).fetch)
