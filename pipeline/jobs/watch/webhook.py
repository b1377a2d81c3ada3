"""Posts findings to an address as JSON, within ten seconds whatever the server does."""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from socket import SHUT_RDWR
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

_TIMEOUT_SECONDS = 10.0
_AT_ONCE = 100
_OK, _NOT_OK = 200, 300


class BadWebhook(ValueError):
    """The address is invalid; the text says how, without the address, which may be secret."""


@dataclass(frozen=True, slots=True)
class Webhook:
    """`path` and query may hold a secret, so they are never shown."""

    scheme: str
    host: str
    port: int | None
    path: str = field(repr=False)
    timeout_seconds: float = _TIMEOUT_SECONDS

    def send(self, watch: str, findings: Sequence[dict[str, Any]]) -> str | None:
        """Send all findings, a hundred in each request; return None, or why it failed."""
        for start in range(0, len(findings), _AT_ONCE):
            body = {"version": 1, "watch": watch, "findings": findings[start : start + _AT_ONCE]}
            problem = self._post(json.dumps(body).encode())
            if problem is not None:
                return f"the webhook at {self.host} {problem}"
        return None

    def _post(self, body: bytes) -> str | None:
        kind = HTTPSConnection if self.scheme == "https" else HTTPConnection
        connection = kind(self.host, self.port, timeout=self.timeout_seconds)
        result: list[str | None] = []
        late = f"did not respond within {self.timeout_seconds:.0f} s"
        # In a thread, because a timeout applies to each read, and a response may take many.
        thread = Thread(target=lambda: result.append(_response_of(connection, self.path, body, late)), daemon=True)
        thread.start()
        thread.join(self.timeout_seconds)
        problem = result[0] if result else late  # before `_end`, which also ends the request
        _end(connection)
        return problem


def webhook_at(address: str) -> Webhook:
    """Parse an address. Raises BadWebhook."""
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError as error:
        raise BadWebhook("the webhook's address cannot be read: expected https://host/path") from error
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        raise BadWebhook("the webhook's address is invalid: expected https://host/path, or http, without a user name")
    if not address.isascii() or any(not letter.isprintable() or letter == " " for letter in address):
        raise BadWebhook("the webhook's address has invalid characters: encode them as %…")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Webhook(parts.scheme, parts.hostname, port, path)


def _end(connection: HTTPConnection) -> None:
    """Wake a thread that reads from the connection; closing alone would leave it waiting."""
    sock = connection.sock
    if sock is not None:
        with suppress(OSError):  # the server closed it first
            sock.shutdown(SHUT_RDWR)
    connection.close()


def _response_of(connection: HTTPConnection, path: str, body: bytes, late: str) -> str | None:
    """Return None, or why the request failed; `late` after a timeout."""
    headers = {"Content-Type": "application/json", "User-Agent": "sluicegate-watch"}
    try:
        connection.request("POST", path, body, headers)
        status = connection.getresponse().status  # redirects are not followed
    except TimeoutError:
        return late
    except (OSError, HTTPException) as error:
        return f"cannot be reached ({type(error).__name__})"
    return None if _OK <= status < _NOT_OK else f"responded {status}"
