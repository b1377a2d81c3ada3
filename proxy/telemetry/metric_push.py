"""Exports metrics every few seconds, from a thread of its own. No client waits for a receiver.

An export that fails is counted, and one log line a minute has the reason. Nothing is kept for later: the next export
has all of its figures.
"""

import contextvars
import threading
import time

import structlog
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # it ships none
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse
from opentelemetry.sdk.resources import Resource

from sluicegate.proxy.reporting.logs.aggregation import OnceAMinute
from sluicegate.proxy.reporting.metrics.collection import CollectMetrics
from sluicegate.proxy.reporting.metrics.counters import Counters
from sluicegate.proxy.telemetry.metric_points import metrics_data
from sluicegate.proxy.telemetry.receiver import ExportFailed, Receiver

_AT_THE_END_SECONDS = 2.0


class MetricPush:
    """Exports what `collect` returns, from now on until `close`."""

    def __init__(
        self,
        collect: CollectMetrics,
        receiver: Receiver,
        resource: Resource,
        every_seconds: float,
        counters: Counters,
    ) -> None:
        self._collect = collect
        self._receiver = receiver
        self._exporter = receiver.metric_exporter()
        self._resource = resource
        self._every_seconds = every_seconds
        self._counters = counters
        self._started_ns = time.time_ns()
        self._ends = threading.Event()
        self._log = structlog.get_logger("sluicegate.otel")
        self._reports = OnceAMinute()
        context = contextvars.copy_context()
        self._thread = threading.Thread(target=context.run, args=(self._run,), name="otel metrics", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Export the last figures, for at most 2 s."""
        self._receiver.end_at(time.monotonic() + _AT_THE_END_SECONDS)
        self._ends.set()
        self._thread.join(_AT_THE_END_SECONDS)
        self._exporter.shutdown()

    def _run(self) -> None:
        while not self._ends.is_set():
            self._push()
            self._ends.wait(self._every_seconds)
        self._push()

    def _push(self) -> None:
        try:
            data = metrics_data(self._resource, self._collect(), self._started_ns, time.time_ns())
            rejected = self._rejected_of(self._receiver.response_to(lambda: self._exporter.export(data)))
            if rejected:
                self._failed(f"it rejected {rejected} of their points")
            else:
                self._counters.otel_metrics_sent += 1
        except ExportFailed as error:
            self._failed(str(error))
        except Exception as error:  # an error in one export does not end the thread
            self._failed(f"internal error: {error!r}")

    def _rejected_of(self, response: bytes) -> int:
        try:
            return int(ExportMetricsServiceResponse.FromString(response).partial_success.rejected_data_points)
        except DecodeError:
            raise ExportFailed("its response is not OTLP: look at otel.endpoint") from None

    def _failed(self, reason: str) -> None:
        self._counters.otel_metrics_failed += 1
        if self._reports.due(reason) is not None:
            self._log.error(
                "metric export failed",
                reason=reason,
                failed_so_far=self._counters.otel_metrics_failed,
                advice="check the receiver of otel.endpoint; the next export includes these values",
            )
