"""Logins to a schema registry, as request headers. Files and tokens are read again for each request."""

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from sluicegate.config.values.password import Password, PasswordUnreadable
from sluicegate.proxy.tokens.cache import TokenCache, TokenMissing


class LoginMissing(Exception):
    """There are no credentials. The message names the source that failed and reveals no secret."""


@dataclass(frozen=True, slots=True)
class OutgoingRequest:
    """A request without its login."""

    method: str
    host: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class RegistryLogin(Protocol):
    """A login. `keys` names the configuration keys to check if the registry rejects it."""

    @property
    def keys(self) -> str:
        """Return the configuration keys from which the login comes."""

    def headers(self, request: OutgoingRequest, seconds: float) -> Mapping[str, str]:
        """Return the headers to add. Blocks for at most `seconds`. Raises LoginMissing."""

    def on_rejection(self) -> None:
        """Drop a cached token, because the registry has rejected it."""


@dataclass(frozen=True, slots=True)
class BasicLogin:
    """HTTP basic authentication (RFC 7617)."""

    username: str
    password: Password

    @property
    def keys(self) -> str:
        """Return the configuration keys from which the login comes."""
        return "username and password_file"

    def headers(self, _request: OutgoingRequest, _seconds: float) -> Mapping[str, str]:
        """Return the headers to add. Raises LoginMissing."""
        login = f"{self.username}:{_read(self.password)}"
        return {"Authorization": f"Basic {b64encode(login.encode()).decode()}"}

    def on_rejection(self) -> None:
        """Do nothing, because the file is read for each request."""


@dataclass(frozen=True, slots=True)
class BearerLogin:
    """A token (RFC 6750) in a file, which another process replaces."""

    token: Password

    @property
    def keys(self) -> str:
        """Return the configuration keys from which the login comes."""
        return "token_file"

    def headers(self, _request: OutgoingRequest, _seconds: float) -> Mapping[str, str]:
        """Return the headers to add. Raises LoginMissing."""
        token = _read(self.token).strip()
        if not token.isascii() or not token.isprintable() or " " in token:
            raise LoginMissing(f"{self.token.key} has no valid token: expected printable ASCII without spaces")
        return {"Authorization": f"Bearer {token}"}

    def on_rejection(self) -> None:
        """Do nothing, because the file is read for each request."""


class OauthLogin:
    """Tokens that an authorization server grants for client credentials."""

    keys = "oauth.scope, and the registry's requirements for tokens"

    def __init__(self, tokens: TokenCache) -> None:
        self._tokens = tokens
        self._sent = ""

    def headers(self, _request: OutgoingRequest, seconds: float) -> Mapping[str, str]:
        """Return the headers to add. Blocks for at most `seconds`. Raises LoginMissing."""
        try:
            self._sent = self._tokens.current(seconds)
        except TokenMissing as error:
            raise LoginMissing(str(error)) from error
        return {"Authorization": f"Bearer {self._sent}"}

    def on_rejection(self) -> None:
        """Request a new token next time."""
        self._tokens.forget(self._sent)


def _read(secret: Password) -> str:
    try:
        return secret.get()
    except PasswordUnreadable as error:
        raise LoginMissing(str(error)) from error
