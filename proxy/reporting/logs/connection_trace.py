"""What one connection does, line by line, for `log.level: debug`: who it is, each request and answer, holds, its end.

Names, sizes and codes only: never a payload, a token or a key. Lines say which connection of this process it is, so
that one can be followed among many.
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any

import structlog

from sluicegate.config.model import Log
from sluicegate.protocol.api import APIS
from sluicegate.protocol.errors import ErrorCode, MalformedMessage
from sluicegate.protocol.headers import CORRELATION_ID_BYTES, read_correlation_id, response_body_at
from sluicegate.protocol.response_walks import codes_in
from sluicegate.proxy.reporting.bounded_text import cut
from sluicegate.proxy.session.client.identity import ClientIdentity

_MAX_UNANSWERED = 1000
# Lines that are kept until a connection has said who it is, where only one client is wanted.
_MAX_WAITING = 100
_NAMES: dict[int, str] = {code.value: code.name for code in ErrorCode}


class Tracing:
    """Begins a trace for each connection that is to be followed."""

    def __init__(self, log: Log) -> None:
        self._is_wanted = log.follows_connections
        self._client = log.client_id
        self._numbers = count(1)

    def begin(self) -> "ConnectionTrace | None":
        """For a new connection; None: nobody wants to follow it."""
        return ConnectionTrace(next(self._numbers), self._client, time.monotonic) if self._is_wanted else None


@dataclass(frozen=True, slots=True)
class _Asked:
    api_key: int
    version: int
    name: str
    at: float


class ConnectionTrace:
    """One connection's lines. `only`: the client id that is followed; lines wait until the client has said its own."""

    def __init__(self, number: int, only: str | None, now: Callable[[], float]) -> None:
        self._log = structlog.get_logger("sluicegate.connection")
        self._number = number
        self._only = only
        self._now = now
        self._began = now()
        self._waiting: list[tuple[str, dict[str, Any]]] | None = None if only is None else []
        self._is_silent = False
        self._who: tuple[str | None, ...] = ()
        self._asked: OrderedDict[int, _Asked] = OrderedDict()
        self._requests = 0
        self._ended_by: str | None = None

    def opened(self, peer: str, listener: str) -> None:
        """A client has come."""
        self._say("connection opened", peer=peer, listener=listener)

    def known(self, identity: ClientIdentity) -> None:
        """Look who the client is by now."""
        who = (identity.client_id, identity.software_name, identity.software_version, identity.principal)
        if who == self._who:
            return
        self._who = who
        names = ("client_id", "software_name", "software_version", "principal")
        self._say("client is known", **dict(zip(names, who, strict=True)))
        self._decide(identity.client_id)

    def asked(self, api_key: int, version: int, correlation_id: int, size: int) -> None:
        """A request has begun to arrive; `size` in bytes."""
        self._requests += 1
        api = APIS.get(api_key)
        name = api.name if api is not None else f"API {api_key}"
        self._asked[correlation_id] = _Asked(api_key, version, name, self._now())
        if len(self._asked) > _MAX_UNANSWERED:
            self._asked.popitem(last=False)
        self._say("request", api=name, api_version=version, correlation_id=correlation_id, bytes=size)

    def token(self, size: int) -> None:
        """A SASL token without a header, whoever sent it; nothing of it is shown."""
        self._say("SASL token", bytes=size)

    def answered(self, head: bytes, size: int) -> None:
        """An answer goes to the client: `size` bytes, of which `head` is the beginning."""
        asked = self._asked.pop(read_correlation_id(head), None) if len(head) >= CORRELATION_ID_BYTES else None
        if asked is None:  # a token's, or one of several requests with the same correlation id
            self._say("answer", bytes=size)
            return
        self._say(
            "answer",
            api=asked.name,
            correlation_id=read_correlation_id(head),
            bytes=size,
            codes=_codes(asked, head) or None,
            milliseconds=round((self._now() - asked.at) * 1000, 1),
        )

    def held(self, side: str, why: str) -> None:
        """One side is not read for a while."""
        self._say("held", side=side, why=why)

    def released(self, side: str, why: str) -> None:
        """That reason is gone."""
        self._say("goes on", side=side, why=why)

    def ends(self, by: str) -> None:
        """Somebody begins to end it; the first counts."""
        self._ended_by = self._ended_by or by

    def closed(self) -> None:
        """Both sides are closed."""
        self._say(
            "connection closed",
            by=self._ended_by or "?",
            requests=self._requests,
            seconds=round(self._now() - self._began, 3),
        )

    def _decide(self, client_id: str | None) -> None:
        """Whether this is the client that is followed."""
        if self._only is None or client_id is None:
            return
        waiting, self._waiting = self._waiting, None
        self._is_silent = client_id != self._only
        for event, details in waiting or ():
            self._say(event, **details)

    def _say(self, event: str, **details: Any) -> None:
        if self._is_silent:
            return
        if self._waiting is not None:
            if len(self._waiting) < _MAX_WAITING:
                self._waiting.append((event, details))
            return
        shown = {name: cut(value) if isinstance(value, str) else value for name, value in details.items()}
        self._log.debug(
            event, connection=self._number, **{name: value for name, value in shown.items() if value is not None}
        )


def _codes(asked: _Asked, head: bytes) -> list[str]:
    api = APIS.get(asked.api_key)
    if api is None or asked.version > api.max_version:
        return []
    try:
        body_at = response_body_at(head, api.response_header_version(asked.version))
    except MalformedMessage:
        return []
    return [_NAMES.get(code, str(code)) for code in codes_in(asked.api_key, asked.version, head, body_at)]
