"""Findings told to an address: a POST of JSON that is over within ten seconds, whatever the other side does."""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from socket import SHUT_RDWR
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

_PATIENCE_SECONDS = 10.0
_AT_ONCE = 100
_OK, _NOT_OK = 200, 300


class BadWebhook(ValueError):
    """No address that can be posted to; the text says what is, and nothing of the address, which may be secret."""


@dataclass(frozen=True, slots=True)
class Webhook:
    """`path` and query may hold a secret, so nobody is shown them."""

    scheme: str
    host: str
    port: int | None
    path: str = field(repr=False)
    patience_seconds: float = _PATIENCE_SECONDS

    def tell(self, watch: str, findings: Sequence[dict[str, Any]]) -> str | None:
        """All of them, a hundred at once; None, or why not all were taken."""
        for start in range(0, len(findings), _AT_ONCE):
            body = {"version": 1, "watch": watch, "findings": findings[start : start + _AT_ONCE]}
            trouble = self._post(json.dumps(body).encode())
            if trouble is not None:
                return f"the webhook at {self.host} {trouble}"
        return None

    def _post(self, body: bytes) -> str | None:
        kind = HTTPSConnection if self.scheme == "https" else HTTPConnection
        connection = kind(self.host, self.port, timeout=self.patience_seconds)
        answer: list[str | None] = []
        late = f"has not answered for {self.patience_seconds:.0f} s"
        # In a thread, because a timeout holds for each piece that comes, and an answer may come in many.
        thread = Thread(target=lambda: answer.append(_response_of(connection, self.path, body, late)), daemon=True)
        thread.start()
        thread.join(self.patience_seconds)
        said = answer[0] if answer else late  # before the end, which is itself an answer of a kind
        _end(connection)
        return said


def webhook_at(address: str) -> Webhook:
    """Raises BadWebhook."""
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError as error:
        raise BadWebhook("the webhook's address cannot be read: expected https://host/path") from error
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        raise BadWebhook("the webhook's address is none: expected https://host/path, or http, without a name in it")
    if not address.isascii() or any(not letter.isprintable() or letter == " " for letter in address):
        raise BadWebhook("the webhook's address has letters that no address has: write them as %…")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Webhook(parts.scheme, parts.hostname, port, path)


def _end(connection: HTTPConnection) -> None:
    """Whoever still reads from it is woken: closing alone would leave it waiting."""
    sock = connection.sock
    if sock is not None:
        with suppress(OSError):  # the other side was quicker
            sock.shutdown(SHUT_RDWR)
    connection.close()


def _response_of(connection: HTTPConnection, path: str, body: bytes, late: str) -> str | None:
    """None, or why it was not taken: `late`, where nothing has come in time."""
    headers = {"Content-Type": "application/json", "User-Agent": "sluicegate-watch"}
    try:
        connection.request("POST", path, body, headers)
        status = connection.getresponse().status  # redirects are not followed: they would lead anywhere
    except TimeoutError:
        return late
    except (OSError, HTTPException) as error:
        return f"cannot be reached ({type(error).__name__})"
    return None if _OK <= status < _NOT_OK else f"answers {status}"
