"""Posts findings to an address as JSON. Each request takes at most ten seconds, even if the server does not respond."""

import json
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from http.client import HTTPException
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

from sluicegate.config.values.http import is_https
from sluicegate.proxy.network.http_client import LookUpLimits, response_to

_TIMEOUT_SECONDS = 10.0
_AT_ONCE = 100
_MOST_BYTES = 64 << 10
_OK, _NOT_OK = 200, 300


class BadWebhook(ValueError):
    """Raised if the address is invalid. The message gives the reason without the address, which may be secret."""


@dataclass(frozen=True, slots=True)
class Webhook:
    """A webhook. `url` may contain a secret, so it is never shown."""

    host: str
    url: str = field(repr=False)
    timeout_seconds: float = _TIMEOUT_SECONDS

    def send(self, watch: str, findings: Sequence[dict[str, Any]]) -> str | None:
        """Send all findings, a hundred per request. Return None, or the reason why sending failed."""
        for start in range(0, len(findings), _AT_ONCE):
            body = {"version": 1, "watch": watch, "findings": findings[start : start + _AT_ONCE]}
            problem = self._post(json.dumps(body).encode())
            if problem is not None:
                return f"the webhook at {self.host} {problem}"
        return None

    def _post(self, body: bytes) -> str | None:
        """Post a request. Return None, or the reason why it failed."""
        headers = {"Content-Type": "application/json", "User-Agent": "sluicegate-watch"}
        tls = ssl.create_default_context() if is_https(self.url) else None
        try:
            bounds = LookUpLimits(monotonic() + self.timeout_seconds, _MOST_BYTES)
            with response_to("POST", self.url, bounds, headers, body, tls) as response:
                status = response.status
        except TimeoutError:
            return f"did not respond within {self.timeout_seconds:.0f} s"
        except (OSError, HTTPException) as error:
            return f"cannot be reached ({type(error).__name__})"
        return None if _OK <= status < _NOT_OK else f"responded {status}"


def webhook_at(address: str) -> Webhook:
    """Parse an address. Raises BadWebhook."""
    try:
        parts = urlsplit(address)
        _ = parts.port  # raises an error for an invalid port
    except ValueError as error:
        raise BadWebhook("the webhook's address is malformed: expected https://host/path") from error
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        raise BadWebhook("the webhook's address is invalid: expected https://host/path, or http, without a user name")
    if not address.isascii() or any(not letter.isprintable() or letter == " " for letter in address):
        raise BadWebhook("the webhook's address has invalid characters: encode them as %…")
    return Webhook(parts.hostname, address)
