"""Creates the span of a Produce request, with OpenTelemetry's semantic conventions for messaging and Kafka."""

from collections.abc import Sequence

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode

from sluicegate.proxy.reporting.bounded_text import printable
from sluicegate.proxy.telemetry.request_summary import NOT_STORED, RequestSummary
from sluicegate.proxy.telemetry.resource import SCOPE

Value = str | int | float | bool | Sequence[str]

_IDS = RandomIdGenerator()
_NS = 1_000_000_000
_OURS = "sluicegate."
_PROBLEM = ("topic", "partition", "error", "reason", "rule", "record", "record_timestamp", "diagnosis")


def span_of(summary: RequestSummary, resource: Resource) -> ReadableSpan:
    """Return a span in a trace of its own: from the request's last byte until the broker's response began, or, without
    one, until the request was sent.
    """
    sent_ns = summary.sent_ms * 1_000_000
    topic = summary.topics[0] if summary.topic_count == 1 and summary.topics else None
    status = Status(StatusCode.UNSET)
    if summary.verdict in NOT_STORED and summary.problem is not None:
        status = Status(StatusCode.ERROR, f"{summary.problem['error']}: {summary.problem['reason']}")
    return ReadableSpan(
        name="produce" if topic is None else f"produce {topic}",
        context=SpanContext(_IDS.generate_trace_id(), _IDS.generate_span_id(), is_remote=False),
        resource=resource,
        attributes={name: value for name, value in _attributes(summary, topic).items() if value is not None},
        kind=SpanKind.SERVER,
        status=status,
        start_time=sent_ns - int(summary.proxy_seconds * _NS),
        end_time=sent_ns + int((summary.upstream_seconds or 0) * _NS),
        instrumentation_scope=SCOPE,
    )


def _attributes(summary: RequestSummary, topic: str | None) -> dict[str, Value | None]:
    client, problem = summary.client, summary.problem or {}
    host, _, port = client.peer.rpartition(":")
    attributes: dict[str, Value | None] = {
        "messaging.system": "kafka",
        "messaging.operation.type": "send",
        "messaging.operation.name": "produce",
        "messaging.destination.name": topic,
        "messaging.client.id": _shown(client.client_id),
        "messaging.batch.message_count": summary.records,
        "network.peer.address": host.strip("[]") if port.isdecimal() else client.peer,
        "network.peer.port": int(port) if port.isdecimal() else None,
        "error.type": problem.get("error") if summary.verdict in NOT_STORED else None,
        _OURS + "verdict": summary.verdict,
        _OURS + "topics": summary.topics,
        _OURS + "topics.count": summary.topic_count,
        _OURS + "partitions.count": summary.partition_count,
        _OURS + "acks": summary.acks,
        _OURS + "api_version": summary.version,
        _OURS + "client.software": _software(client.software_name, client.software_version),
        _OURS + "client.principal": _shown(client.principal),
        _OURS + "untraced": summary.untraced,
        _OURS + "proxy_seconds": summary.proxy_seconds,
        _OURS + "upstream_seconds": summary.upstream_seconds,
    }
    attributes |= {f"{_OURS}batches.{verdict}": count for verdict, count in summary.batches.items()}
    for name in _PROBLEM:
        found = problem.get(name)
        attributes[f"{_OURS}problem.{name}"] = printable(found) if isinstance(found, str) else found
    return attributes


def _software(name: str | None, version: str | None) -> str | None:
    return None if name is None else printable(f"{name} {version or ''}".rstrip())


def _shown(text: str | None) -> str | None:
    return None if text is None else printable(text)
