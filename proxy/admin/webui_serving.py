"""Serves the web UI at the admin endpoint.

This module is imported at the first request for the web UI. One thread creates the responses. Another one explains
policies, which takes a second.
"""

import asyncio
from collections.abc import Awaitable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import structlog

from sluicegate.proxy.admin.connections import AdminConnection, AdminConnections
from sluicegate.proxy.admin.http_exchange import HttpExchange, Request
from sluicegate.proxy.live.live_snapshot import LiveQuery
from sluicegate.proxy.live.live_state import LiveState
from sluicegate.proxy.network.daemon_thread import DaemonThread, in_daemon_thread
from sluicegate.proxy.reporting.logs.aggregation import OnceAMinute
from sluicegate.proxy.webui.responses import SAFE, HttpResponse, text_response
from sluicegate.proxy.webui.site import Site, StreamRequested
from sluicegate.proxy.webui.streams import MAX_STREAMS, STREAM_SECONDS, Streams

_MOST_EXPLAINED_AT_ONCE = 4
_STREAM = (("Content-Type", "text/event-stream"), *SAFE)


class WebUiServing:
    """Serves the web UI's requests. Belongs to the admin endpoint's event loop."""

    def __init__(self, site: Site, connections: AdminConnections) -> None:
        self._site = site
        self._connections = connections
        self._loop = asyncio.get_running_loop()
        self._readers = ThreadPoolExecutor(1, "web UI")
        self._explainer = DaemonThread("policies")
        self._explained = 0
        self._streams = Streams(self._read_state)
        self._complaints = OnceAMinute()
        self._log = structlog.get_logger("sluicegate.admin")

    async def respond(
        self, request: Request, connection: AdminConnection, exchange: HttpExchange
    ) -> HttpResponse | None:
        """Return the response to a request, or None if it has already been sent."""
        target = request.target
        if request.method == "POST":
            address = connection.socket.getpeername()[0]
            return await self._made(in_daemon_thread(partial(self._site.change, target, request.headers, address)))
        # A thread finds the response, because this may read the token file.
        found = await in_daemon_thread(partial(self._site.find, target, request.headers))
        if isinstance(found, HttpResponse):
            return found
        if found is None:
            return text_response(404, "not found; this address has the web UI (/), /metrics, /livez and /readyz")
        if isinstance(found, StreamRequested):
            return (
                await self._stream(connection, exchange) if request.method == "GET" else HttpResponse(200, b"", _STREAM)
            )
        self._connections.mark_slow(connection)
        if target.startswith(("/api/live", "/api/history")):
            return await self._made(self._loop.run_in_executor(self._readers, found))
        if self._explained >= _MOST_EXPLAINED_AT_ONCE:
            return text_response(503, "too many requests for policies: try again in a second")
        self._explained += 1
        try:
            return await self._made(self._explainer.do(found))
        finally:
            self._explained -= 1

    async def _made(self, making: Awaitable[HttpResponse]) -> HttpResponse:
        try:
            return await making
        except Exception as error:  # an error in the web UI must not end the endpoint
            if self._complaints.due(type(error).__name__) is not None:
                self._log.error("web UI request failed", exc_info=error)
            return text_response(500, f"web UI request failed: {type(error).__name__}; see the log for details")

    async def end(self) -> None:
        """Stop creating responses."""
        await self._streams.end()

    def close(self) -> None:
        """Release the threads once the event loop has ended."""
        self._readers.shutdown(wait=False, cancel_futures=True)
        self._explainer.close()

    async def _read_state(self, wish: LiveQuery) -> LiveState:
        return await self._loop.run_in_executor(self._readers, self._site.read_state, wish)

    async def _stream(self, connection: AdminConnection, exchange: HttpExchange) -> HttpResponse | None:
        stream = self._streams.open()
        if stream is None:
            return text_response(503, f"{MAX_STREAMS} pages are open already: close one of them", ("Retry-After", "5"))
        try:
            self._connections.extend_deadline(connection, STREAM_SECONDS)
            await exchange.stream(_STREAM, stream.messages())
        finally:
            self._streams.close(stream)
        return None
