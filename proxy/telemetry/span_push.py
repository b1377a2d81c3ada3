"""Sends spans, from a thread of its own behind a bounded queue. The wire never waits for a receiver.

What finds no room in the queue is dropped and counted, what is not taken is counted too, and one log line a minute
says why. What a receiver may take later is sent up to three times.
"""

import contextvars
import threading
import time

import structlog
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # it ships none
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from sluicegate.proxy.reporting.bounded_queue import BoundedQueue
from sluicegate.proxy.reporting.once_a_minute import OnceAMinute
from sluicegate.proxy.reporting.tally import Tally
from sluicegate.proxy.telemetry.receiver import TRACES, NotTaken, Receiver
from sluicegate.proxy.telemetry.resource import SCOPE
from sluicegate.proxy.telemetry.seen_request import SeenRequest
from sluicegate.proxy.telemetry.spans import span_of

_MAX_QUEUED = 2000
_OF_A_SPAN = 4000  # bytes that one holds while it waits, about
_MAX_QUEUED_BYTES = 8 << 20
_AT_ONCE = 200
_GATHER_SECONDS = 1.0
_AT_THE_END_SECONDS = 2.0
_TO_COUNT_SECONDS = 0.5
_TRIES = 3
_BETWEEN_TRIES_SECONDS = 2.0
_LONGEST_WAIT_SECONDS = 30.0


class SpanPush:
    """From now on until `close`."""

    def __init__(self, receiver: Receiver, resource: Resource, tally: Tally) -> None:
        self._receiver = receiver
        self._resource = resource
        self._tally = tally
        self._queue: BoundedQueue[SeenRequest] = BoundedQueue(_MAX_QUEUED, _MAX_QUEUED_BYTES)
        self._ends = threading.Event()
        self._ends_at = float("inf")
        self._log = structlog.get_logger("sluicegate.otel")
        self._complaints = OnceAMinute()
        context = contextvars.copy_context()  # log lines say which worker this is
        self._thread = threading.Thread(target=context.run, args=(self._run,), name="otel traces", daemon=True)
        self._thread.start()

    def keep(self, seen: SeenRequest) -> None:
        """Queue what a span is made of; never waits."""
        if not self._queue.put(seen, _OF_A_SPAN):
            self._tally.otel_spans_dropped += 1

    def close(self) -> None:
        """Send what is queued, for at most 2 s; what is left is counted."""
        self._ends_at = time.monotonic() + _AT_THE_END_SECONDS
        self._queue.close()
        self._ends.set()
        self._thread.join(_AT_THE_END_SECONDS + _TO_COUNT_SECONDS)

    def _run(self) -> None:
        while not self._queue.ended and time.monotonic() < self._ends_at:
            first = self._queue.take()
            if first is not None:
                self._ends.wait(_GATHER_SECONDS)
                spans = self._gathered(first)
                if spans:
                    self._send(spans)
        self._tally.otel_spans_dropped += len(self._queue)

    def _gathered(self, first: SeenRequest) -> list[Span]:
        spans: list[Span] = []
        seen: SeenRequest | None = first
        while seen is not None:
            try:
                spans.append(span_of(seen))
            except Exception as error:  # whatever a client has said, the spans after it are sent
                self._failed(1, f"our fault: {error!r}")
            seen = self._queue.take(0) if len(spans) < _AT_ONCE else None
        return spans

    def _send(self, spans: list[Span]) -> None:
        scope = ScopeSpans(scope=SCOPE, spans=spans)
        resource_spans = ResourceSpans(resource=self._resource, scope_spans=[scope])
        message = ExportTraceServiceRequest(resource_spans=[resource_spans]).SerializeToString()
        for left in reversed(range(_TRIES)):
            try:
                answer = self._receiver.send(TRACES, message, self._seconds_left())
                rejected = min(self._rejected_of(answer), len(spans))
            except NotTaken as error:
                if not error.later or not left or self._ends.is_set():
                    self._failed(len(spans), str(error))
                    return
                self._ends.wait(min(error.wait_seconds or _BETWEEN_TRIES_SECONDS, _LONGEST_WAIT_SECONDS))
            else:
                self._tally.otel_spans_sent += len(spans) - rejected
                if rejected:
                    self._failed(rejected, "it rejected them")
                return

    def _seconds_left(self) -> float | None:
        return max(self._ends_at - time.monotonic(), 0.1) if self._ends.is_set() else None

    def _rejected_of(self, answer: bytes) -> int:
        try:
            return int(ExportTraceServiceResponse.FromString(answer).partial_success.rejected_spans)
        except DecodeError:
            raise NotTaken("it answers what is not OTLP: look at otel.endpoint") from None

    def _failed(self, spans: int, reason: str) -> None:
        self._tally.otel_spans_failed += spans
        if self._complaints.due(reason) is not None:
            self._log.error(
                "traces are not taken by the receiver of otel.endpoint",
                reason=reason,
                spans_lost_so_far=self._tally.otel_spans_failed,
            )
