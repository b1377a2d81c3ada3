"""Logins at a schema registry, as the header Authorization. Files and tokens are read anew for each request."""

from base64 import b64encode
from dataclasses import dataclass
from typing import Protocol

from sluicegate.config.values.password import Password, PasswordUnreadable
from sluicegate.proxy.network.oauth import TokenCache


class Login(Protocol):
    """A login. `keys`: the configuration keys to check if it is rejected."""

    @property
    def keys(self) -> str:
        """Return the configuration keys that the login comes from."""

    def authorization(self, seconds: float) -> str:
        """Return the header's value; blocks for `seconds` at most. Raises PasswordUnreadable and NoTokenGranted."""

    def rejected(self) -> None:
        """Forget a cached token, because the registry has rejected it."""


@dataclass(frozen=True, slots=True)
class BasicLogin:
    """HTTP basic authentication (RFC 7617)."""

    username: str
    password: Password

    @property
    def keys(self) -> str:
        """Return the configuration keys that the login comes from."""
        return "username and password_file"

    def authorization(self, _seconds: float) -> str:
        """Return the header's value. Raises PasswordUnreadable."""
        return f"Basic {b64encode(f'{self.username}:{self.password.get()}'.encode()).decode()}"

    def rejected(self) -> None:
        """Do nothing: the file is read for each request."""


@dataclass(frozen=True, slots=True)
class BearerLogin:
    """A token (RFC 6750) that another process replaces in its file."""

    token: Password

    @property
    def keys(self) -> str:
        """Return the configuration keys that the login comes from."""
        return "token_file"

    def authorization(self, _seconds: float) -> str:
        """Return the header's value. Raises PasswordUnreadable."""
        token = self.token.get().strip()
        if not token.isascii() or not token.isprintable() or " " in token:
            raise PasswordUnreadable(self.token.key, "it has no valid token: expected printable ASCII without spaces")
        return f"Bearer {token}"

    def rejected(self) -> None:
        """Do nothing: the file is read for each request."""


class OauthLogin:
    """Tokens that an authorization server grants for client credentials."""

    keys = "oauth.scope, and what the registry expects of a token"

    def __init__(self, tokens: TokenCache) -> None:
        self._tokens = tokens
        self._sent = ""

    def authorization(self, seconds: float) -> str:
        """Return the header's value; blocks for `seconds` at most. Raises NoTokenGranted."""
        self._sent = self._tokens.current(seconds)
        return f"Bearer {self._sent}"

    def rejected(self) -> None:
        """Request another token next time."""
        self._tokens.forget(self._sent)
