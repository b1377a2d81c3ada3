"""Access tokens by the client credentials grant of OAuth 2.0 (RFC 6749, 4.4), for logins of the proxy itself.

Failure messages name the token endpoint. They contain neither secrets nor text of the endpoint, except the error codes
that RFC 6749 defines.
"""

import json
import re
import ssl
import threading
from base64 import b64encode
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache
from http.client import HTTPException
from math import inf
from time import monotonic
from urllib.parse import urlencode, urlsplit

from sluicegate.config.oauth import OauthClient
from sluicegate.config.tls import ServerTls
from sluicegate.config.values.http import is_https
from sluicegate.config.values.password import PasswordUnreadable
from sluicegate.proxy.network.http_client import Bounds, http_failure_message, open_connection
from sluicegate.proxy.network.tls.contexts import BadTlsFiles, TlsContext, context_for_server

TOKEN_SECONDS = 10.0
"""Default timeout of a token request as a whole."""
_MOST_BYTES = 64 << 10
_MOST_TOKEN = 32 << 10
# The assumed lifetime if the endpoint does not report one, and the longest one that is accepted.
_UNSTATED_SECONDS = 300.0
_LONGEST_SECONDS = 30 * 24 * 3600.0
# Share of a lifetime after which a token is replaced, and the pause after a failure to replace it.
_USED_SHARE = 0.8
_RETRY_SECONDS = 5.0
_LEGAL = re.compile(r"[\x21-\x7e]+")
_NUMBER = re.compile(r"[0-9]{1,9}")
_ERRORS = frozenset(
    {
        "invalid_request",
        "invalid_client",
        "invalid_grant",
        "invalid_scope",
        "unauthorized_client",
        "unsupported_grant_type",
    }
)


class NoTokenGranted(Exception):
    """The endpoint granted no token; the text names the endpoint and the reason."""


@dataclass(frozen=True, slots=True)
class GrantedToken:
    """An access token and its lifetime at the time of the request."""

    value: str = field(repr=False)
    lifetime_ms: int


class TokenEndpoint:
    """The token endpoint of an `oauth` section; `section` is its path in the configuration. Thread-safe."""

    def __init__(self, keys: OauthClient, section: str) -> None:
        self._keys = keys
        self._secret = keys.secret_of(section)
        self._tls = cache(lambda: context_for_server(f"{section}.tls", keys.tls or ServerTls()))

    def fetch(self, seconds: float = TOKEN_SECONDS) -> GrantedToken:
        """Request a token; blocks for `seconds` at most. Raises NoTokenGranted."""
        try:
            status, content = self._ask(Bounds(monotonic() + seconds, _MOST_BYTES))
        except (PasswordUnreadable, BadTlsFiles) as error:
            raise self._failed(str(error)) from error
        except (OSError, HTTPException) as error:
            raise self._failed(http_failure_message(error, seconds)) from error
        if status != 200:
            raise self._failed(_rejection(status, content))
        body = _object_in(content)
        value = body.get("access_token")
        if not isinstance(value, str) or len(value) > _MOST_TOKEN or not _LEGAL.fullmatch(value):
            raise self._failed("its response has no valid access_token")
        lifetime = _lifetime_in(body)
        if lifetime is None:
            raise self._failed("its response has no valid expires_in")
        return GrantedToken(value, lifetime)

    def _ask(self, bounds: Bounds) -> tuple[int, bytes]:
        """Return the status and the body. Raises OSError, HTTPException, PasswordUnreadable and BadTlsFiles."""
        keys = self._keys
        form = {"grant_type": "client_credentials"} | ({"scope": keys.scope} if keys.scope else {})
        # Neither part is URL-encoded: librdkafka and Java's clients do not encode them either.
        login = f"{keys.client_id}:{self._secret.get()}"
        headers = {
            "Accept": "application/json",
            "Authorization": f"Basic {b64encode(login.encode()).decode()}",
            "Content-Type": "application/x-www-form-urlencoded",
        }
        tls = self._context() if is_https(keys.token_url) else None
        path = urlsplit(keys.token_url).path or "/"
        with closing(open_connection(keys.token_url, bounds, tls)) as connection:
            connection.request("POST", path, urlencode(form), headers)
            with connection.getresponse() as response:
                return response.status, response.read()

    def _context(self) -> ssl.SSLContext:
        made: TlsContext = self._tls()
        made.follow()
        return made.current()

    def _failed(self, reason: str) -> NoTokenGranted:
        return NoTokenGranted(f"token endpoint {self._keys.token_url}: {reason}")


class TokenCache:
    """Caches a token and replaces it before it expires. Thread-safe. `now`: a monotonic clock in seconds."""

    def __init__(self, fetch: Callable[[float], GrantedToken], now: Callable[[], float] = monotonic) -> None:
        self._fetch = fetch
        self._now = now
        self._lock = threading.Lock()
        self._token = ""
        self._replace_at = self._ends_at = -inf

    def current(self, seconds: float = TOKEN_SECONDS) -> str:
        """Return a valid token; blocks for `seconds` at most if it requests one. Raises NoTokenGranted.

        If a token cannot be replaced, it is returned until it expires.
        """
        with self._lock:
            asked_at = self._now()
            if asked_at < self._replace_at:
                return self._token
            try:
                granted = self._fetch(seconds)
            except NoTokenGranted:
                if self._now() >= self._ends_at:
                    raise
                self._replace_at = min(self._now() + _RETRY_SECONDS, self._ends_at)
                return self._token
            lifetime = granted.lifetime_ms / 1000
            self._token = granted.value
            self._replace_at, self._ends_at = asked_at + _USED_SHARE * lifetime, asked_at + lifetime
            return self._token

    def seconds_left(self) -> float:
        """Return how long the current token may still be kept by a client: until it is replaced here."""
        with self._lock:
            return self._replace_at - self._now()

    def forget(self, token: str) -> None:
        """Forget a token that a server has rejected; the next call requests another one."""
        with self._lock:
            if token == self._token:
                self._replace_at = self._ends_at = -inf


def _object_in(content: bytes) -> dict[str, object]:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _lifetime_in(body: dict[str, object]) -> int | None:
    """Return a token's lifetime in milliseconds; None if it is invalid. Some endpoints write it as a text."""
    stated = body.get("expires_in", _UNSTATED_SECONDS)
    if isinstance(stated, str) and _NUMBER.fullmatch(stated):
        stated = int(stated)
    if not isinstance(stated, int | float) or isinstance(stated, bool) or not stated > 0:
        return None
    return max(1, int(min(stated, _LONGEST_SECONDS) * 1000))


def _rejection(status: int, content: bytes) -> str:
    """Return what a status other than 200 means, and the error code (RFC 6749, 5.2)."""
    if 300 <= status < 400:
        return f"it redirects (HTTP {status}), which is not followed: correct token_url"
    code = _object_in(content).get("error")
    reason = f", {code}" if isinstance(code, str) and code in _ERRORS else ""
    if status == 429 or status >= 500:
        return f"it fails (HTTP {status}{reason})"
    return f"it grants no token (HTTP {status}{reason}): check token_url, client_id, client_secret_file and scope"
