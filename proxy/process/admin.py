"""The admin endpoint: /metrics, /livez, /readyz over plain HTTP, served by an event loop in a thread of its own.

A thread, so that it still answers when the proxy's event loop is stuck: /livez then says so. /metrics is made in yet
another one, so that a slow scrape keeps no health check waiting.
"""

import asyncio
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import h11
import structlog
from prometheus_client import CollectorRegistry

from sluicegate.config.address import HostPort
from sluicegate.config.model import Config
from sluicegate.proxy.network.listeners import CannotListen
from sluicegate.proxy.process.admin_connections import AdminConnection, AdminConnections
from sluicegate.proxy.process.admin_pages import AdminPages, Page, text_page
from sluicegate.proxy.process.certificate_metrics import CertificateCollector
from sluicegate.proxy.process.health import Health
from sluicegate.proxy.process.http_exchange import HttpExchange, refusal_of
from sluicegate.proxy.reporting.metrics import registry_of
from sluicegate.proxy.reporting.once_a_minute import OnceAMinute
from sluicegate.proxy.reporting.tally import Snapshot

_BACKLOG = 128
_CLOSE_SECONDS = 5.0


def serve(config: Config, listen: HostPort, snapshot: Callable[[], Snapshot], health: Health) -> "AdminServer":
    """The endpoint of a proxy that counts what `snapshot` says. Raises CannotListen."""
    registry = registry_of(snapshot)
    registry.register(CertificateCollector(config))
    return AdminServer(listen, registry, health)


class AdminServer:
    """Serves until `close`. Raises CannotListen."""

    def __init__(self, address: HostPort, registry: CollectorRegistry, health: Health) -> None:
        self._pages = AdminPages(registry, health)
        self._log = structlog.get_logger("sluicegate.admin")
        self._complaints = OnceAMinute()
        try:
            self._listening = _listening_on(address)
        except OSError as error:
            raise CannotListen(f"{address}: {error.strerror or error}") from error
        self.port: int = self._listening.getsockname()[1]
        self._scrapes = ThreadPoolExecutor(1, "metrics")
        self._loop = asyncio.new_event_loop()
        self._serving: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=self._run, name="admin", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop serving."""
        with suppress(RuntimeError):  # it has ended by itself
            self._loop.call_soon_threadsafe(self._stop)
        self._thread.join(_CLOSE_SECONDS)
        self._scrapes.shutdown(wait=False, cancel_futures=True)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._serving = self._loop.create_task(self._serve_until_stopped())
        with suppress(asyncio.CancelledError):
            self._loop.run_until_complete(self._serving)
        self._loop.run_until_complete(_all_ended(asyncio.all_tasks(self._loop)))
        self._loop.close()

    def _stop(self) -> None:
        if self._serving is not None:
            self._serving.cancel()

    async def _serve_until_stopped(self) -> None:
        self._connections = AdminConnections(self._listening, self._serve)
        try:
            await self._connections.accept_for_ever()
        finally:
            self._listening.close()
            await self._connections.close()

    async def _serve(self, connection: AdminConnection) -> None:
        exchange = HttpExchange(connection.socket)
        without_body = False
        try:
            request = await exchange.request()
            if request is None:
                return
            connection.asked = True
            without_body = request.method == b"HEAD"
            page = await self._page_for(request, connection)
        except h11.RemoteProtocolError as error:
            connection.asked = True
            page = refusal_of(error)
        await exchange.answer(page, without_body)

    async def _page_for(self, request: h11.Request, connection: AdminConnection) -> Page:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in request.headers}
        found = self._pages.find(request.method.decode("latin-1"), request.target.decode("latin-1"), headers)
        if isinstance(found, Page):
            return found
        self._connections.is_slow(connection)
        try:
            return await self._loop.run_in_executor(self._scrapes, found)
        except Exception as error:  # whatever fails in showing metrics, the endpoint goes on
            if self._complaints.due(type(error).__name__) is not None:
                self._log.error("metrics cannot be shown", exc_info=error)
            return text_page(500, f"metrics cannot be shown: {type(error).__name__}; the log says more")


async def _all_ended(tasks: set[asyncio.Task[Any]]) -> None:
    if tasks:
        await asyncio.wait(tasks, timeout=_CLOSE_SECONDS)


def _listening_on(address: HostPort) -> socket.socket:
    listening = socket.socket(socket.AF_INET6 if ":" in address.host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((address.host, address.port))
        listening.listen(_BACKLOG)
        listening.setblocking(False)
    except OSError:
        listening.close()
        raise
    return listening
