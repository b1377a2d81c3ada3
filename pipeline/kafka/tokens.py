"""Bearer tokens for SASL OAUTHBEARER, from a token endpoint by the client credentials grant (RFC 6749, 4.4) or from a
file that another process refreshes, as in Java's clients (`file:` as the endpoint, KIP-768).
"""

import json
import re
import ssl
import threading
import time
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import IO, Any, NoReturn
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, HTTPSHandler, ProxyHandler, Request, build_opener, url2pathname

_MOST_BYTES = 1 << 20
_WITHOUT_END_SECONDS = 300
"""Assumed lifetime of a token that states none; librdkafka refreshes before that."""
_USED_SHARE = 0.8
"""Share of a token's lifetime after which it is refreshed; a broker closes a connection when its token expires."""
_MOST_KEPT = 8
_LEGAL = re.compile(r"[\x21-\x7e]+")
_SERVER_ERROR = 500


class TokenEndpointUnreachable(Exception):
    """The endpoint does not respond or has a temporary error; a retry may help."""


class TokenRejected(Exception):
    """The endpoint or the file gives no token; the text has the endpoint's reason and no secret."""


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


@dataclass(frozen=True, slots=True)
class Token:
    """`until`: seconds since 1970."""

    value: str = field(repr=False)
    until: float


_kept: dict[Bearer, Token] = {}
_changed = threading.Lock()


def token_of(bearer: Bearer) -> Token:
    """Return a valid token from the cache or the endpoint; a file is read each time.

    Raises TokenEndpointUnreachable and TokenRejected.
    """
    if urlsplit(bearer.endpoint).scheme == "file":
        return _token_in(bearer.endpoint)
    with _changed:
        kept = _kept.get(bearer)
        if kept is not None and kept.until > time.time():
            return kept
        asked_at = time.time()
        response = _asked(bearer)
        expires_in = response.get("expires_in", _WITHOUT_END_SECONDS)
        if not isinstance(expires_in, int | float) or isinstance(expires_in, bool) or expires_in <= 0:
            raise TokenRejected(f"{bearer.endpoint} returned an invalid expires_in: expected a number above 0")
        token = Token(_checked(response.get("access_token"), bearer.endpoint), asked_at + _USED_SHARE * expires_in)
        _kept[bearer] = token
        while len(_kept) > _MOST_KEPT:
            del _kept[next(iter(_kept))]
        return token


def for_librdkafka(bearer: Bearer, _: str) -> tuple[str, float, str, dict[str, str]]:
    """Return what `oauth_cb` needs: token, expiry, principal (brokers take the token's) and extensions."""
    token = token_of(bearer)
    return token.value, token.until, bearer.client_id, dict(bearer.extensions)


class _NoRedirects(HTTPRedirectHandler):
    """Do not follow redirects: they would send the secret to another host."""

    def redirect_request(self, req: Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str) -> None:
        return None


def _asked(bearer: Bearer) -> Mapping[str, Any]:
    form = {"grant_type": "client_credentials", **({"scope": bearer.scope} if bearer.scope else {})}
    credentials = f"{bearer.client_id}:{bearer.client_secret}"  # not encoded, as in librdkafka and Java's clients
    headers = {
        "Accept": "application/json",
        "Authorization": f"Basic {b64encode(credentials.encode()).decode()}",
        "Content-Type": "application/x-www-form-urlencoded",
    }
    request = Request(bearer.endpoint, urlencode(form).encode(), headers, method="POST")  # noqa: S310  # checked: http(s)
    try:
        context = ssl.create_default_context(cafile=bearer.ca_file)
        opener = build_opener(_NoRedirects, HTTPSHandler(context=context), ProxyHandler({}))
        with opener.open(request, timeout=bearer.timeout_seconds) as response:
            return _parsed(response.read(_MOST_BYTES + 1), bearer.endpoint)
    except HTTPError as error:
        _rejected(error, bearer.endpoint)
    except (URLError, HTTPException, OSError) as error:
        reason = error.reason if isinstance(error, URLError) else error
        raise TokenEndpointUnreachable(f"token endpoint {bearer.endpoint}: {reason}") from error


def _rejected(error: HTTPError, endpoint: str) -> NoReturn:
    """Raise an error with the fields of RFC 6749, 5.2, if present."""
    if error.code >= _SERVER_ERROR:
        raise TokenEndpointUnreachable(f"token endpoint {endpoint} responded {error.code} {error.reason}") from error
    try:
        found = json.loads(error.read(_MOST_BYTES))
        details = ": ".join(str(found[name])[:200] for name in ("error", "error_description") if found.get(name))
    except (ValueError, AttributeError, OSError):
        details = ""
    raise TokenRejected(
        f"token endpoint {endpoint} responded {error.code} {error.reason}{details and f' ({details})'}"
    ) from error


def _parsed(body: bytes, endpoint: str) -> Mapping[str, Any]:
    if len(body) > _MOST_BYTES:
        raise TokenRejected(f"token endpoint {endpoint} responded with more than {_MOST_BYTES >> 20} MiB")
    try:
        found = json.loads(body)
    except ValueError as error:
        raise TokenRejected(f"token endpoint {endpoint} responded with invalid JSON") from error
    if not isinstance(found, dict):
        raise TokenRejected(f"token endpoint {endpoint} responded with JSON that is not an object")
    return found


def _token_in(url: str) -> Token:
    path = Path(url2pathname(urlsplit(url).path))
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise TokenRejected(f"token file {path}: {error.strerror}") from error
    if len(content) > _MOST_BYTES:
        raise TokenRejected(f"token file {path} is larger than {_MOST_BYTES >> 20} MiB")
    value = _checked(content.decode(errors="replace").strip(), f"token file {path}")
    return Token(value, time.time() + _WITHOUT_END_SECONDS)


def _checked(value: object, where: str) -> str:
    if not isinstance(value, str) or _LEGAL.fullmatch(value) is None:
        raise TokenRejected(f"{where} has no valid access token")
    return value
