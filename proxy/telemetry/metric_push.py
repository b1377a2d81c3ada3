"""Sends metrics every few seconds, from a thread of its own. Nobody waits for a receiver.

What was not taken is not sent again: the next look has all of it. One log line a minute says why, and it is counted.
"""

import contextvars
import threading
import time

import structlog
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # it ships none
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.metrics.v1.metrics_pb2 import ResourceMetrics, ScopeMetrics
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from sluicegate.proxy.reporting.metrics import Look
from sluicegate.proxy.reporting.once_a_minute import OnceAMinute
from sluicegate.proxy.reporting.tally import Tally
from sluicegate.proxy.telemetry.metric_points import metrics_of
from sluicegate.proxy.telemetry.receiver import METRICS, NotTaken, Receiver
from sluicegate.proxy.telemetry.resource import SCOPE

_AT_THE_END_SECONDS = 2.0


class MetricPush:
    """Sends what `look` shows, from now on until `close`."""

    def __init__(
        self,
        look: Look,
        receiver: Receiver,
        resource: Resource,
        every_seconds: float,
        tally: Tally,
    ) -> None:
        self._look = look
        self._receiver = receiver
        self._resource = resource
        self._every_seconds = every_seconds
        self._tally = tally
        self._started_ns = time.time_ns()
        self._ends = threading.Event()
        self._log = structlog.get_logger("sluicegate.otel")
        self._complaints = OnceAMinute()
        context = contextvars.copy_context()
        self._thread = threading.Thread(target=context.run, args=(self._run,), name="otel metrics", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Send the last figures, for at most 2 s."""
        self._ends.set()
        self._thread.join(_AT_THE_END_SECONDS)

    def _run(self) -> None:
        while not self._ends.is_set():
            self._push(None)
            self._ends.wait(self._every_seconds)
        self._push(_AT_THE_END_SECONDS)

    def _push(self, seconds: float | None) -> None:
        try:
            rejected = self._rejected_of(self._receiver.send(METRICS, self._message(), seconds))
            if rejected:
                self._failed(f"it rejected {rejected} of their points")
            else:
                self._tally.otel_metrics_sent += 1
        except NotTaken as error:
            self._failed(str(error))
        except Exception as error:  # whatever one look comes to, the next is taken
            self._failed(f"our fault: {error!r}")

    def _message(self) -> bytes:
        metrics = list(metrics_of(self._look(), self._started_ns, time.time_ns()))
        scope = ScopeMetrics(scope=SCOPE, metrics=metrics)
        resource_metrics = ResourceMetrics(resource=self._resource, scope_metrics=[scope])
        message: bytes = ExportMetricsServiceRequest(resource_metrics=[resource_metrics]).SerializeToString()
        return message

    def _rejected_of(self, answer: bytes) -> int:
        try:
            return int(ExportMetricsServiceResponse.FromString(answer).partial_success.rejected_data_points)
        except DecodeError:
            raise NotTaken("it answers what is not OTLP: look at otel.endpoint") from None

    def _failed(self, reason: str) -> None:
        self._tally.otel_metrics_failed += 1
        if self._complaints.due(reason) is not None:
            self._log.error(
                "metrics are not taken by the receiver of otel.endpoint; the next ones have all that these had",
                reason=reason,
                failed_so_far=self._tally.otel_metrics_failed,
            )
