"""The admin endpoint, which serves metrics, health checks and the web UI over HTTP in a thread with its own event loop.

The separate thread keeps responding when the proxy's event loop is stuck, which /livez then reports. Another thread
creates /metrics, so that a slow scrape delays no health check. Further threads create the web UI's responses. The web
UI's modules are imported at its first request.
"""

import asyncio
import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import h11
import structlog

from sluicegate.config.files.source import Source
from sluicegate.config.loading import Loaded
from sluicegate.config.model import Config
from sluicegate.config.values.address import HostPort
from sluicegate.proxy.admin.connections import AdminConnection, AdminConnections
from sluicegate.proxy.admin.http_exchange import HttpExchange, Request, rejection_of
from sluicegate.proxy.admin.responses import AdminPages, all_metrics
from sluicegate.proxy.network.daemon_thread import DaemonThread
from sluicegate.proxy.network.listeners import CannotListen
from sluicegate.proxy.reload.topic_explanation import PolicyQuery
from sluicegate.proxy.reporting.logs.aggregation import OnceAMinute
from sluicegate.proxy.reporting.metrics.collection import CollectMetrics
from sluicegate.proxy.reporting.metrics.counters import Snapshot
from sluicegate.proxy.status.status import Status
from sluicegate.proxy.webui.responses import HttpResponse, text_response

if TYPE_CHECKING:
    from ssl import SSLContext

    from sluicegate.proxy.admin.changes import ProxyChanges
    from sluicegate.proxy.admin.webui_serving import WebUiServing
    from sluicegate.proxy.live.live_snapshot import LiveQuery
    from sluicegate.proxy.live.live_state import LiveState
    from sluicegate.proxy.webui.site import Site

FurtherPages = Mapping[str, Callable[[str], HttpResponse]]
"""Functions that return a page immediately, by path. Their argument is the query string."""
NO_FURTHER_PAGES: FurtherPages = MappingProxyType({})
_BACKLOG = 128
_CLOSE_SECONDS = 5.0


def serve(
    config: Config,
    listen: HostPort,
    snapshot: Callable[[], Snapshot],
    status: Status,
    read_state: "Callable[[LiveQuery], LiveState]",
    policy_query: PolicyQuery | None = None,
    changes: "ProxyChanges | None" = None,
    further: FurtherPages = NO_FURTHER_PAGES,
) -> "AdminServer":
    """Start and return a proxy's admin endpoint.

    `snapshot` returns the counters, `read_state` the state for the web UI, and `policy_query` a topic's policy.
    `changes` makes changes to the proxy. `further` contains additional pages, which the program that runs the proxy
    provides. Raises CannotListen.
    """

    def make_site() -> "Site":
        from sluicegate.proxy.webui.access import Access  # noqa: PLC0415  # only the web UI needs it
        from sluicegate.proxy.webui.site import Site  # noqa: PLC0415  # only the web UI needs it

        explain = policy_query or PolicyQuery(Loaded(config, Source("configuration"), (), ()))
        access = Access(listen, config.admin.web_ui_token)
        return Site(access, read_state, explain, changes, explain.history.as_json)

    return AdminServer(
        listen,
        partial(all_metrics, config, snapshot),
        status,
        make_site if config.admin.web_ui else None,
        fleet_metrics=None if changes is None else changes.fleet_metrics,
        further=further,
    )


class AdminServer:
    """Serves requests until `close`. Raises CannotListen."""

    def __init__(
        self,
        address: HostPort,
        metrics: CollectMetrics,
        status: Status,
        make_site: "Callable[[], Site] | None" = None,
        tls: "Callable[[], SSLContext] | None" = None,
        fleet_metrics: CollectMetrics | None = None,
        further: FurtherPages = NO_FURTHER_PAGES,
    ) -> None:
        """`make_site` creates the web UI at the first request for it.

        If `make_site` is None, there is no web UI. `tls` returns the context for a new connection; it is None for plain
        HTTP. `fleet_metrics` returns the metrics of all proxies in the cluster; it is None if they are not known.
        `further` is explained at `serve`.
        """
        self._tls = tls
        self._further = further
        self._make_site = make_site
        self._web_ui: WebUiServing | None = None
        self._pages = AdminPages(metrics, status, fleet_metrics)
        self._log = structlog.get_logger("sluicegate.admin")
        self._complaints = OnceAMinute()
        try:
            self._listening = _listening_on(address)
        except OSError as error:
            raise CannotListen(address, error) from error
        self.port: int = self._listening.getsockname()[1]
        bound = HostPort(address.host, self.port)
        web_ui = {} if make_site is None else {"web_ui": f"{'http' if tls is None else 'https'}://{bound}/"}
        self._log.info("listening", address=str(bound), role="admin", **web_ui)
        self._scraper = DaemonThread("metrics")
        self._fleet_scraper = DaemonThread("fleet metrics")  # so that reading a topic delays no other scrape
        self._loop = asyncio.new_event_loop()
        self._serving: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=self._run, name="admin", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop serving."""
        with suppress(RuntimeError):  # the event loop has already ended
            self._loop.call_soon_threadsafe(self._stop)
        self._thread.join(_CLOSE_SECONDS)
        self._scraper.close()
        self._fleet_scraper.close()
        if self._web_ui is not None:
            self._web_ui.close()

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
        self._connections = AdminConnections(self._listening, self._serve, self._tls)
        try:
            await self._connections.accept_for_ever()
        finally:
            self._listening.close()
            if self._web_ui is not None:
                await self._web_ui.end()
            await self._connections.close()

    async def _serve(self, connection: AdminConnection, writer: asyncio.StreamWriter) -> None:
        exchange = HttpExchange(connection.reader, writer)
        without_body = False
        try:
            request = await exchange.request()
            if request is None:
                return
            connection.has_requested = True
            without_body = request.method == "HEAD"
            response = await self._response_to(request, connection, exchange)
        except h11.RemoteProtocolError as error:
            connection.has_requested = True
            response = rejection_of(error)
        if response is not None:
            await exchange.respond(response, without_body)

    async def _response_to(
        self, request: Request, connection: AdminConnection, exchange: HttpExchange
    ) -> HttpResponse | None:
        """Return the response, or None if it has already been sent."""
        found = self._further_page(request) or self._pages.find(request.method, request.target, request.headers)
        if found is None and self._make_site is not None:
            if self._web_ui is None:
                from sluicegate.proxy.admin.webui_serving import WebUiServing  # noqa: PLC0415  # for the web UI

                self._web_ui = WebUiServing(self._make_site(), self._connections)
            return await self._web_ui.respond(request, connection, exchange)
        if found is None:
            return text_response(404, "not found; this address has /metrics, /livez and /readyz")
        if isinstance(found, HttpResponse):
            return found
        self._connections.mark_slow(connection)
        try:
            is_of_fleet = request.target.startswith("/metrics/fleet")
            return await (self._fleet_scraper if is_of_fleet else self._scraper).do(found)
        except Exception as error:  # an error in one response must not end the endpoint
            if self._complaints.due(type(error).__name__) is not None:
                self._log.error("metrics cannot be shown", exc_info=error)
            return text_response(500, f"metrics cannot be shown: {type(error).__name__}; see the log for details")

    def _further_page(self, request: Request) -> HttpResponse | None:
        name, _, query = request.target.partition("?")
        page = self._further.get(name)
        return None if page is None or request.method not in ("GET", "HEAD") else page(query)


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
