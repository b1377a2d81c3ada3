"""The admin endpoint: /metrics, /livez, /readyz over plain HTTP, served by a thread of its own.

A thread, so that it still answers when the event loop is stuck: /livez then says so.
"""

import socket
import threading
import time
from collections.abc import Callable, Iterable
from socketserver import TCPServer, ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app

from config.address import HostPort
from proxy.listeners import CannotListen

_STUCK_SECONDS = 10
StartResponse = Callable[[str, list[tuple[str, str]]], Any]


class Health:
    """What the event loop says about itself; read by the admin thread."""

    def __init__(self) -> None:
        self._last_beat = time.monotonic()
        self.not_ready: str | None = "starting"
        self.stuck: str | None = None

    def beat(self) -> None:
        """The event loop is alive."""
        self._last_beat = time.monotonic()

    def not_live(self) -> str | None:
        """Why the proxy is not alive; None when it is."""
        if self.stuck is not None:
            return self.stuck
        silent = time.monotonic() - self._last_beat
        return f"the event loop has not moved for {silent:.0f} s" if silent > _STUCK_SECONDS else None


class _QuietHandler(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base class names it
        """Requests for metrics are not worth a line each."""


class _Server(ThreadingMixIn, WSGIServer):
    """A thread for each request, so that a slow scraper keeps no health check waiting."""

    daemon_threads = True

    def server_bind(self) -> None:
        TCPServer.server_bind(self)
        host, port = self.server_address[:2]
        self.server_name, self.server_port = str(host), int(port)  # the base class would ask DNS for a name
        self.setup_environ()


class _ServerOnIPv6(_Server):
    address_family = socket.AF_INET6


class AdminServer:
    """Serves until `close`. Raises CannotListen."""

    def __init__(self, address: HostPort, registry: CollectorRegistry, health: Health) -> None:
        self._health = health
        self._metrics = make_wsgi_app(registry)
        try:
            kind = _ServerOnIPv6 if ":" in address.host else _Server
            self._server = make_server(address.host, address.port, self._app, kind, _QuietHandler)
        except OSError as error:
            raise CannotListen(f"{address}: {error.strerror or error}") from error
        self.port: int = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, name="admin", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _app(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        match environ["PATH_INFO"]:
            case "/metrics":
                body: Iterable[bytes] = self._metrics(environ, start_response)
                return body
            case "/livez":
                return _state(self._health.not_live(), start_response)
            case "/readyz":
                return _state(self._health.not_ready, start_response)
        start_response("404 Not Found", [("Content-Type", "text/plain; charset=utf-8")])
        return [b"here are /metrics, /livez and /readyz\n"]


def _state(problem: str | None, start_response: StartResponse) -> Iterable[bytes]:
    status = "200 OK" if problem is None else "503 Service Unavailable"
    start_response(status, [("Content-Type", "text/plain; charset=utf-8")])
    return [f"{problem or 'ok'}\n".encode()]
