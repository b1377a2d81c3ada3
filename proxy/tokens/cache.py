"""A cached access token, which is replaced before it expires."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from time import monotonic

TOKEN_SECONDS = 10.0
"""The default timeout in seconds for a whole token request."""
# The part of its lifetime after which a token is replaced, and the pause after a failed replacement.
_USED_SHARE = 0.8
_RETRY_SECONDS = 5.0


class TokenMissing(Exception):
    """There is no valid token.

    The message names the source and the reason, and never contains a secret. If `is_temporary` is true, a retry may
    help, but not within `retry_after_seconds`.
    """

    def __init__(self, reason: str, *, is_temporary: bool = False, retry_after_seconds: float = 0.0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.is_temporary = is_temporary
        self.retry_after_seconds = retry_after_seconds


@dataclass(frozen=True, slots=True)
class GrantedToken:
    """An access token, and its lifetime from the time of the request."""

    value: str = field(repr=False)
    lifetime_ms: int


class TokenCache:
    """Caches a token and replaces it before it expires. Thread-safe. `now` returns monotonic seconds."""

    def __init__(self, fetch: Callable[[float], GrantedToken], now: Callable[[], float] = monotonic) -> None:
        self._fetch = fetch
        self._now = now
        self._lock = threading.Lock()
        self._token = ""
        self._replace_at = self._ends_at = self._ask_at = -inf
        self._failure = TokenMissing("no token has been requested")

    def current(self, seconds: float = TOKEN_SECONDS) -> str:
        """Return a valid token. A request for a new one blocks for at most `seconds`.

        If a token cannot be replaced, it is returned until it expires. While the endpoint has asked for a pause
        (Retry-After), its last failure is raised again without a request. Raises TokenMissing.
        """
        with self._lock:
            asked_at = self._now()
            if asked_at < self._replace_at:
                return self._token
            if asked_at < self._ask_at:
                left = self._ask_at - asked_at
                raise TokenMissing(self._failure.reason, is_temporary=True, retry_after_seconds=left)
            try:
                granted = self._fetch(seconds)
            except TokenMissing as error:
                self._failure, now = error, self._now()
                self._ask_at = now + error.retry_after_seconds
                if now >= self._ends_at:
                    raise
                self._replace_at = min(max(now + _RETRY_SECONDS, self._ask_at), self._ends_at)
                return self._token
            lifetime = granted.lifetime_ms / 1000
            self._token = granted.value
            self._replace_at, self._ends_at = asked_at + _USED_SHARE * lifetime, asked_at + lifetime
            return self._token

    def seconds_left(self) -> float:
        """Return for how many seconds a client may keep the current token, that is, until it is replaced here."""
        with self._lock:
            return self._replace_at - self._now()

    def forget(self, token: str) -> None:
        """Forget a token that a server rejected. The next call requests a new one."""
        with self._lock:
            if token == self._token:
                self._replace_at = self._ends_at = -inf
