"""Wraps the handlers of a traced session. Other sessions have no wrappers."""

from sluicegate.protocol.api import APIS
from sluicegate.protocol.errors import MalformedMessage
from sluicegate.protocol.framing import SIZE_BYTES, Disposition, FrameHandler
from sluicegate.protocol.headers import HEAD_BYTES, parse_request_header, read_request_head
from sluicegate.proxy.session.client.client_text import client_text
from sluicegate.proxy.session.client.identity import ClientIdentity
from sluicegate.proxy.session.pause_reason import PauseReason
from sluicegate.proxy.session.reports import SessionTrace

_LOOKED_INTO_BYTES = 65_536


def trace_pause(trace: SessionTrace, side: str, reason: PauseReason, begins: bool) -> None:
    """Trace the start or the end of a pause."""
    (trace.reading_paused if begins else trace.reading_resumed)(side, reason.name.lower().replace("_", " "))


class TracedRequests:
    """Traces requests. Each request's trace may include the client id."""

    def __init__(self, side: FrameHandler, identity: ClientIdentity, trace: SessionTrace) -> None:
        self._side = side
        self._identity = identity
        self._trace = trace
        self._header_version = 1
        self._begins = False

    def on_head(self, size: int, head: bytes) -> Disposition:
        """Trace the beginning of a request."""
        disposition = self._side.on_head(size, head)
        if len(head) < HEAD_BYTES or (api := APIS.get(read_request_head(head)[0])) is None:
            self._trace.token_received(size)
            return disposition
        api_key, version, correlation_id = read_request_head(head)
        self._header_version = api.request_header_version(version)
        self._begins = True
        self._trace.request_begun(api_key, version, correlation_id, size)
        return disposition

    def on_pass(self, data: memoryview) -> None:
        """Read the client id from the first bytes of a request."""
        if self._begins:
            self._begins = False
            try:
                client_id = parse_request_header(data[SIZE_BYTES:], self._header_version).client_id
            except MalformedMessage:  # the header is incomplete, so the client id is read from the next request
                client_id = None
            if client_id is not None:
                self._identity.client_id = client_text(client_id)
                self._trace.client_identified(self._identity)
        self._side.on_pass(data)

    def on_room(self, more: int, size: int) -> None:
        """Reserve memory."""
        self._side.on_room(more, size)

    def on_frame(self, frame: bytearray) -> None:
        """Trace a gathered request."""
        self._begins = False
        self._side.on_frame(frame)
        self._trace.client_identified(self._identity)


class TracedResponses:
    """Traces unchanged responses. `Delivery` traces all other responses."""

    def __init__(self, side: FrameHandler, identity: ClientIdentity, trace: SessionTrace) -> None:
        self._side = side
        self._identity = identity
        self._trace = trace
        self._passing: int | None = None

    def on_head(self, size: int, head: bytes) -> Disposition:
        """Trace the beginning of a response."""
        disposition = self._side.on_head(size, head)
        self._passing = size if disposition is Disposition.STREAM else None
        return disposition

    def on_pass(self, data: memoryview) -> None:
        """Trace an unchanged response."""
        size, self._passing = self._passing, None
        if size is not None:
            self._trace.response_sent(bytes(data[SIZE_BYTES : SIZE_BYTES + _LOOKED_INTO_BYTES]), size)
        self._side.on_pass(data)

    def on_room(self, more: int, size: int) -> None:
        """Reserve memory."""
        self._side.on_room(more, size)

    def on_frame(self, frame: bytearray) -> None:
        """Handle a gathered response."""
        self._side.on_frame(frame)
        self._trace.client_identified(self._identity)
