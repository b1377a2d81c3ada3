"""Traces connections for `log.level: debug`: the client, each request and response, pauses, and the end.

Lines contain names, sizes and error codes, but never a payload, a token or a key. The field `connection` numbers the
connections of this process, so that one of them can be followed among many.
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

_MAX_IN_FLIGHT = 1000
# If only one client is traced, this many lines are kept until the client id is known.
_MAX_PENDING = 100
_NAMES: dict[int, str] = {code.value: code.name for code in ErrorCode}


class Tracing:
    """Starts the traces of connections if the configuration enables them."""

    def __init__(self, log: Log) -> None:
        self._is_wanted = log.follows_connections
        self._client = log.client_id
        self._numbers = count(1)

    def begin(self) -> "ConnectionTrace | None":
        """Return the trace of a new connection, or None if connections are not traced."""
        return ConnectionTrace(next(self._numbers), self._client, time.monotonic) if self._is_wanted else None


@dataclass(frozen=True, slots=True)
class _Request:
    api_key: int
    version: int
    name: str
    at: float


class ConnectionTrace:
    """Writes one connection's lines.

    `only` is the client id to trace. If it is set, lines are kept until the connection's client id is known. `now`
    returns seconds.
    """

    def __init__(self, number: int, only: str | None, now: Callable[[], float]) -> None:
        self._log = structlog.get_logger("sluicegate.connection")
        self._number = number
        self._only = only
        self._now = now
        self._began = now()
        self._pending: list[tuple[str, dict[str, Any]]] | None = None if only is None else []
        self._is_silent = False
        self._client: tuple[str | None, ...] = ()
        self._in_flight: OrderedDict[int, _Request] = OrderedDict()
        self._requests = 0
        self._ended_by: str | None = None

    def connection_opened(self, peer: str, listener: str) -> None:
        """Trace a new client connection."""
        self._emit("connection opened", client_address=peer, listener=listener)

    def client_identified(self, identity: ClientIdentity) -> None:
        """Trace the client's identity if it has changed."""
        details = (identity.client_id, identity.software_name, identity.software_version, identity.principal)
        if details == self._client:
            return
        self._client = details
        names = ("client_id", "software_name", "software_version", "principal")
        self._emit("client identified", **dict(zip(names, details, strict=True)))
        self._decide(identity.client_id)

    def request_begun(self, api_key: int, version: int, correlation_id: int, size: int) -> None:
        """Trace a request of `size` bytes that has begun to arrive."""
        self._requests += 1
        api = APIS.get(api_key)
        name = api.name if api is not None else f"API {api_key}"
        self._in_flight[correlation_id] = _Request(api_key, version, name, self._now())
        if len(self._in_flight) > _MAX_IN_FLIGHT:
            self._in_flight.popitem(last=False)
        self._emit("request", api=name, api_version=version, correlation_id=correlation_id, bytes=size)

    def token_received(self, size: int) -> None:
        """Trace a SASL token without a header, from the client or the broker. Only its size is logged."""
        self._emit("SASL token", bytes=size)

    def response_sent(self, head: bytes, size: int) -> None:
        """Trace a response of `size` bytes to the client. `head` is its beginning."""
        request = self._in_flight.pop(read_correlation_id(head), None) if len(head) >= CORRELATION_ID_BYTES else None
        # the response belongs to a token, or to one of several requests with the same correlation id
        if request is None:
            self._emit("response", bytes=size)
            return
        self._emit(
            "response",
            api=request.name,
            correlation_id=read_correlation_id(head),
            bytes=size,
            codes=_codes(request, head) or None,
            milliseconds=round((self._now() - request.at) * 1000, 1),
        )

    def reading_paused(self, side: str, reason: str) -> None:
        """Trace that the proxy stops reading from one side, for this reason."""
        self._emit("paused", side=side, reason=reason)

    def reading_resumed(self, side: str, reason: str) -> None:
        """Trace that the reason for the pause has ended."""
        self._emit("resumed", side=side, reason=reason)

    def session_ending(self, by: str) -> None:
        """Record whether the client or the broker is the first to end the connection. Only the first call counts."""
        self._ended_by = self._ended_by or by

    def connection_closed(self) -> None:
        """Trace that both sides are closed."""
        self._emit(
            "connection closed",
            by=self._ended_by or "?",
            requests=self._requests,
            seconds=round(self._now() - self._began, 3),
        )

    def _decide(self, client_id: str | None) -> None:
        """Write the pending lines if this is the client to trace. Otherwise drop them."""
        if self._only is None or client_id is None:
            return
        pending, self._pending = self._pending, None
        self._is_silent = client_id != self._only
        for event, details in pending or ():
            self._emit(event, **details)

    def _emit(self, event: str, **details: Any) -> None:
        if self._is_silent:
            return
        if self._pending is not None:
            if len(self._pending) < _MAX_PENDING:
                self._pending.append((event, details))
            return
        shown = {name: cut(value) if isinstance(value, str) else value for name, value in details.items()}
        self._log.debug(
            event, connection=self._number, **{name: value for name, value in shown.items() if value is not None}
        )


def _codes(request: _Request, head: bytes) -> list[str]:
    api = APIS.get(request.api_key)
    if api is None or request.version > api.max_version:
        return []
    try:
        body_at = response_body_at(head, api.response_header_version(request.version))
    except MalformedMessage:
        return []
    return [_NAMES.get(code, str(code)) for code in codes_in(request.api_key, request.version, head, body_at)]
