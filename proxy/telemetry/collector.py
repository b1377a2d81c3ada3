"""OpenTelemetry's OTLP exporters with their HTTP transport, and the description of the proxy as a resource.

The exporters encode data, and retry with a backoff. They send with `requests`, which limits the time of each read but
not that of the whole request. So a collector that sends one byte at a time would block an exporter forever. The
transport adapter in this module limits each request's time and size, reads the header and certificate files again for
each request, and stores the reason for a failure. A reason quotes nothing from the collector, so that responses cannot
write into the log.
"""

import logging
import ssl
from collections.abc import Callable, Mapping
from functools import cache
from http.client import HTTPException, HTTPResponse
from io import BytesIO
from socket import gethostname
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics.export import MetricExportResult
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from requests import ConnectionError as Unreachable
from requests import PreparedRequest, RequestException, Response, Session
from requests.adapters import BaseAdapter

from sluicegate.config.model import Config
from sluicegate.config.otel import Otel
from sluicegate.config.tls import ServerTls
from sluicegate.config.values.http import headers_in, is_https
from sluicegate.config.values.password import PasswordUnreadable
from sluicegate.proxy.network.http_client import (
    HttpResponseTooLarge,
    LookUpLimits,
    http_failure_message,
    response_to,
)
from sluicegate.proxy.network.tls.contexts import BadTlsFiles, context_for_server
from sluicegate.proxy.reporting.build_info import VERSION
from sluicegate.proxy.reporting.proxy_name import proxy_name

SCOPE = InstrumentationScope("sluicegate", VERSION)


def resource_of(config: Config, service_name: str) -> Resource:
    """Return a description that is the same for all workers of a proxy and after a restart."""
    return Resource(
        {
            "service.name": service_name,
            "service.version": VERSION,
            "service.instance.id": proxy_name(config),
            "host.name": gethostname(),
        }
    )


_MOST_RESPONSE_BYTES = 64 << 10
_LEAST_SECONDS = 0.1
# The exporters retry after these codes (OTLP specification, "Retryable Response Codes").
_LATER = frozenset({429, 502, 503, 504})
_PROTOBUF = "application/x-protobuf"
_OWN_HEADERS = {"content-type": _PROTOBUF, "user-agent": "sluicegate"}

# The SDK would log each attempt and quote the collector. Instead, the proxy logs at most one line per minute.
_sdk_log = logging.getLogger("opentelemetry")
_sdk_log.addHandler(logging.NullHandler())
_sdk_log.propagate = False


class ExportFailed(Exception):
    """The collector did not accept an export. The message is the reason."""


class Collector:
    """The collector that `otel` names. Only one thread may use it, but another thread may call `end_at`."""

    def __init__(self, keys: Otel) -> None:
        self._keys = keys
        self._adapter = _BoundedAdapter(keys)
        self._session = Session()
        self._session.trust_env = False
        for scheme in ("http://", "https://"):
            self._session.mount(scheme, self._adapter)

    def metric_exporter(self) -> OTLPMetricExporter:
        """Create the SDK's exporter for metrics."""
        return OTLPMetricExporter(self._url("/v1/metrics"), **self._options())

    def span_exporter(self) -> OTLPSpanExporter:
        """Create the SDK's exporter for spans."""
        return OTLPSpanExporter(self._url("/v1/traces"), **self._options())

    def response_to(self, export: Callable[[], MetricExportResult | SpanExportResult]) -> bytes:
        """Call an exporter and return the OTLP response, or an empty one if there is none. Raises ExportFailed."""
        self._adapter.begin()
        if export().name != "SUCCESS":
            raise ExportFailed(self._adapter.reason or "internal error: the exporter did not send the export")
        return self._adapter.body

    def end_at(self, end: float) -> None:
        """Limit every request to the time until `end` (s, monotonic)."""
        self._adapter.end = end

    def _url(self, path: str) -> str:
        return self._keys.endpoint.rstrip("/") + path

    def _options(self) -> dict[str, Any]:
        return {
            "session": self._session,
            "timeout": self._keys.timeout_seconds,
            "compression": Compression.NoCompression,
        }


class _BoundedAdapter(BaseAdapter):
    """Sends each request over a new connection, because there is only one request every few seconds.

    Stores the last outcome.
    """

    def __init__(self, keys: Otel) -> None:
        super().__init__()
        self._is_https = is_https(keys.endpoint)
        self._headers = keys.current_headers
        self._seconds = keys.timeout_seconds
        # The files are read at the first connection, and are checked again for each later connection.
        self._tls = cache(lambda: context_for_server("otel.tls", keys.tls or ServerTls()))
        self.end = float("inf")
        self.begin()

    def begin(self) -> None:
        """Forget the last request."""
        self.reason: str | None = None
        self.body = b""

    def send(
        self, request: PreparedRequest, stream: bool = False, timeout: Any = None, *_args: object, **_options: object
    ) -> Response:
        """Send the request within `timeout` (s). Raises RequestException. The exporter retries after Unreachable."""
        given = max(min(float(timeout), self.end - monotonic()), _LEAST_SECONDS)
        body = request.body
        assert isinstance(body, bytes)
        bounds = LookUpLimits(monotonic() + given, _MOST_RESPONSE_BYTES)
        try:
            tls = self._context() if self._is_https else None
            with response_to("POST", str(request.url), bounds, self._all_headers(), body, tls) as response:
                content = response.read()
        except (PasswordUnreadable, BadTlsFiles) as error:
            self.reason = str(error)
            raise RequestException(self.reason) from error
        except (OSError, HTTPException) as error:
            self.reason = http_failure_message(error, self._seconds)
            failure = RequestException if isinstance(error, HttpResponseTooLarge) else Unreachable
            raise failure(self.reason) from error
        self.reason = _reason_of(response, urlsplit(request.path_url).path)
        if self.reason is not None and response.status not in _LATER:
            raise RequestException(self.reason)
        self.body = content if response.headers.get_content_type() == _PROTOBUF else b""
        return _response_of(request, response.status, response.headers.get("Retry-After"))

    def close(self) -> None:
        """Do nothing, because no connection is kept."""

    def _all_headers(self) -> Mapping[str, str]:
        text = self._headers.get()
        try:
            return {**(headers_in(text) if text else {}), **_OWN_HEADERS}
        except ValueError as error:
            raise PasswordUnreadable(self._headers.key, str(error)) from None

    def _context(self) -> ssl.SSLContext:
        self._tls().follow()
        return self._tls().current()


def _reason_of(response: HTTPResponse, path: str) -> str | None:
    """Return why a response is a failure, or None if it is not."""
    status = response.status
    if status in _LATER:
        return f"the collector asks to retry later (HTTP {status})"
    if status in (401, 403):
        return f"the collector rejects the credentials (HTTP {status}): check otel.headers or otel.headers_file"
    if 300 <= status < 400 or status in (404, 405):
        return f"the collector does not accept exports at {path} (HTTP {status}): check otel.endpoint"
    if not 200 <= status < 300:
        return f"the collector rejects the export (HTTP {status})"
    if response.headers.get_content_type() == "text/html":
        return "the response is a web page: check otel.endpoint"
    return None


def _response_of(request: PreparedRequest, status: int, retry_after: str | None) -> Response:
    """Create a response from the parts that the exporter reads."""
    made = Response()
    made.request, made.status_code, made.raw = request, status, BytesIO()
    if retry_after is not None:
        made.headers["Retry-After"] = retry_after
    return made
