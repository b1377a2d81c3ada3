"""Requests access tokens with OAuth 2.0's client credentials grant (RFC 6749, 4.4).

The proxy and the pipeline log in with them. Failure messages name the token endpoint. They contain neither secrets nor
text from the endpoint, except the error codes that RFC 6749 defines.
"""

import json
import re
import ssl
import time
from base64 import b64encode
from dataclasses import dataclass
from email.utils import mktime_tz, parsedate_tz
from functools import cache
from http.client import HTTPException
from time import monotonic
from urllib.parse import urlencode

from sluicegate.config.oauth import OauthClient
from sluicegate.config.tls import ServerTls
from sluicegate.config.values.http import is_https
from sluicegate.config.values.password import Password, PasswordUnreadable
from sluicegate.proxy.network.http_client import (
    HttpResponseTooLarge,
    LookUpLimits,
    http_failure_message,
    response_to,
)
from sluicegate.proxy.network.tls.contexts import BadTlsFiles, TlsContext, context_for_server
from sluicegate.proxy.tokens.cache import TOKEN_SECONDS, GrantedToken, TokenMissing

_MOST_BYTES = 64 << 10
_MOST_TOKEN = 32 << 10
# The lifetime to assume if the endpoint reports none, and the longest lifetime that is accepted.
_UNSTATED_SECONDS = 300.0
_LONGEST_SECONDS = 30 * 24 * 3600.0
# The pause after a 429 response without Retry-After, and the longest pause that is accepted.
_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 300.0
_TOO_MANY_REQUESTS, _SERVER_ERROR = 429, 500
_LEGAL = re.compile(r"[\x21-\x7e]+")
_NUMBER = re.compile(r"[0-9]{1,30}")
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


@dataclass(frozen=True, slots=True)
class ClientCredentials:
    """A token endpoint's client.

    `tls_key` is the configuration key of `tls`. `checks` is the advice for an operator if the endpoint grants no token.
    """

    token_url: str
    client_id: str
    secret: Password
    scope: str | None
    tls: ServerTls
    tls_key: str
    ca_key: str
    checks: str


def configured_client(keys: OauthClient, section: str) -> ClientCredentials:
    """Create the client that an `oauth` section describes.

    `section` is the section's path in the configuration.
    """
    tls = keys.tls or ServerTls()
    checks = "token_url, client_id, client_secret_file and scope"
    secret = keys.secret_of(section)
    return ClientCredentials(
        keys.token_url, keys.client_id, secret, keys.scope, tls, f"{section}.tls", "tls.ca_file", checks
    )


class TokenEndpoint:
    """Requests tokens for one client. Thread-safe."""

    def __init__(self, client: ClientCredentials) -> None:
        self._client = client
        self._tls = cache(lambda: context_for_server(client.tls_key, client.tls))

    def fetch(self, seconds: float = TOKEN_SECONDS) -> GrantedToken:
        """Request a token. Blocks for at most `seconds`. Raises TokenMissing."""
        try:
            status, retry_after, content = self._ask(LookUpLimits(monotonic() + seconds, _MOST_BYTES))
        except (PasswordUnreadable, BadTlsFiles) as error:
            raise self._failed(str(error)) from error
        except HttpResponseTooLarge as error:
            raise self._failed(http_failure_message(error, seconds)) from error
        except (OSError, HTTPException) as error:
            reason = http_failure_message(error, seconds, self._client.ca_key)
            raise self._failed(reason, is_temporary=True) from error
        if status == _TOO_MANY_REQUESTS or status >= _SERVER_ERROR:
            pause = _pause_in(retry_after, time.time(), _PAUSE_SECONDS if status == _TOO_MANY_REQUESTS else 0.0)
            after = f"; the next request follows after {pause:.0f} s" if retry_after is not None else ""
            reason = f"the endpoint failed (HTTP {status}{_error_code_in(content)}){after}"
            raise self._failed(reason, is_temporary=True, retry_after_seconds=pause)
        if status != 200:
            raise self._failed(self._rejection(status, content))
        body = _object_in(content)
        value = body.get("access_token")
        if not isinstance(value, str) or len(value) > _MOST_TOKEN or not _LEGAL.fullmatch(value):
            raise self._failed("the response has no valid access_token")
        lifetime = _lifetime_in(body)
        if lifetime is None:
            raise self._failed("the response has no valid expires_in")
        return GrantedToken(value, lifetime)

    def _ask(self, bounds: LookUpLimits) -> tuple[int, str | None, bytes]:
        """Return the status, the Retry-After header and the body.

        Raises OSError, HTTPException, PasswordUnreadable and BadTlsFiles.
        """
        client = self._client
        form = {"grant_type": "client_credentials"} | ({"scope": client.scope} if client.scope else {})
        # Neither part is URL-encoded, because librdkafka and Java's clients do not encode them either.
        login = f"{client.client_id}:{client.secret.get()}"
        headers = {
            "Accept": "application/json",
            "Authorization": f"Basic {b64encode(login.encode()).decode()}",
            "Content-Type": "application/x-www-form-urlencoded",
        }
        tls = self._context() if is_https(client.token_url) else None
        with response_to("POST", client.token_url, bounds, headers, urlencode(form).encode(), tls) as response:
            return response.status, response.getheader("Retry-After"), response.read()

    def _context(self) -> ssl.SSLContext:
        made: TlsContext = self._tls()
        made.follow()
        return made.current()

    def _rejection(self, status: int, content: bytes) -> str:
        """Describe a status that is neither 200 nor temporary, with the error code (RFC 6749, 5.2)."""
        if 300 <= status < 400:
            return f"the endpoint redirects (HTTP {status}), and redirects are not followed: correct the URL"
        return f"the endpoint grants no token (HTTP {status}{_error_code_in(content)}): check {self._client.checks}"

    def _failed(self, reason: str, *, is_temporary: bool = False, retry_after_seconds: float = 0.0) -> TokenMissing:
        text = f"token endpoint {self._client.token_url}: {reason}"
        return TokenMissing(text, is_temporary=is_temporary, retry_after_seconds=retry_after_seconds)


def _object_in(content: bytes) -> dict[str, object]:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _lifetime_in(body: dict[str, object]) -> int | None:
    """Return a token's lifetime in milliseconds, or None if it is invalid. Some endpoints send it as a string."""
    stated = body.get("expires_in", _UNSTATED_SECONDS)
    if isinstance(stated, str) and _NUMBER.fullmatch(stated):
        stated = int(stated)
    if not isinstance(stated, int | float) or isinstance(stated, bool) or not stated > 0:
        return None
    return max(1, int(min(stated, _LONGEST_SECONDS) * 1000))


def _error_code_in(content: bytes) -> str:
    """Return the error code for a message, or an empty string if RFC 6749 does not define the code."""
    code = _object_in(content).get("error")
    return f", {code}" if isinstance(code, str) and code in _ERRORS else ""


def _pause_in(retry_after: str | None, now: float, default: float) -> float:
    """Return for how many seconds the endpoint wants no request, according to Retry-After.

    Retry-After contains seconds or a date (RFC 9110, 10.2.3). `now` is in seconds since 1970. The pause is limited, so
    that a wrong header does not prevent all logins.
    """
    if retry_after is None:
        return default
    if _NUMBER.fullmatch(retry_after):
        seconds = float(retry_after)
    else:
        try:
            date = parsedate_tz(retry_after)
            seconds = default if date is None else mktime_tz(date) - now
        except (ValueError, OverflowError):  # not a valid date
            seconds = default
    return min(max(seconds, 0.0), _LONGEST_PAUSE_SECONDS)
