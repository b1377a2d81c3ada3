"""Opens the configured outputs at the start: violation events (file, topic) and OpenTelemetry."""

from collections.abc import Callable
from errno import EROFS
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from sluicegate.config.model import Config, Violations
from sluicegate.proxy.reporting.events.violation_writer import SeveralSinks, ViolationFile, ViolationSink
from sluicegate.proxy.reporting.metrics.counters import Counters, Snapshot
from sluicegate.proxy.telemetry import ExtraMissing, check_extra
from sluicegate.proxy.writing.topic_writer import ClientMissing, check_client
from sluicegate.proxy.writing.violation_topic import ViolationTopic

if TYPE_CHECKING:
    from sluicegate.proxy.telemetry.metric_push import MetricPush
    from sluicegate.proxy.telemetry.span_push import SpanPush


class CannotStart(Exception):
    """The proxy cannot run; the text says what to change."""


def open_violations(config: Config, counters: Counters) -> ViolationSink | None:
    """Open the configured sinks of violation events; return None if there are none. Raises CannotStart."""
    keys = config.violations
    sinks: list[ViolationSink] = []
    if keys.topic is not None:
        check_may_write("violations.topic")
    if keys.file is not None:
        sinks.append(_open_file(Path(keys.file), keys, counters))
    if keys.topic is not None:
        sinks.append(ViolationTopic(keys.topic, config.upstream, keys.queue_size, counters))
    return SeveralSinks(sinks) if len(sinks) > 1 else next(iter(sinks), None)


def check_may_write(key: str) -> None:
    """Check that the client library that `key` needs is installed. Raises CannotStart."""
    try:
        check_client(key)
    except ClientMissing as error:
        raise CannotStart(str(error)) from None


def _open_file(path: Path, keys: Violations, counters: Counters) -> ViolationFile:
    try:
        return ViolationFile(path, keys.queue_size, keys.max_file_bytes, counters)
    except OSError as error:
        advice = "; give its folder a volume, or leave violations.file out" if error.errno == EROFS else ""
        raise CannotStart(f"violations.file {path.absolute()} cannot be written: {error.strerror}{advice}") from error


def check_telemetry(config: Config) -> None:
    """Check that the libraries that `otel` needs are installed. Raises CannotStart."""
    if config.otel is not None:
        try:
            check_extra()
        except ExtraMissing as error:
            raise CannotStart(str(error)) from None


def metric_push(config: Config, snapshot: Callable[[], Snapshot], counters: Counters) -> "MetricPush | None":
    """Start to push metrics if that is configured; otherwise return None. `counters` counts the outcomes."""
    otel = config.otel
    if otel is None or not otel.metrics:
        return None
    from sluicegate.proxy.admin.responses import all_metrics  # noqa: PLC0415
    from sluicegate.proxy.telemetry.metric_push import MetricPush  # noqa: PLC0415
    from sluicegate.proxy.telemetry.receiver import Receiver  # noqa: PLC0415
    from sluicegate.proxy.telemetry.resource import resource_of  # noqa: PLC0415

    collect = partial(all_metrics, config, snapshot)
    resource = resource_of(config, otel.service_name)
    return MetricPush(collect, Receiver(otel), resource, otel.metrics_interval_seconds, counters)


def span_push(config: Config, counters: Counters) -> "SpanPush | None":
    """Start to push spans of requests if that is configured, otherwise return None."""
    otel = config.otel
    if otel is None or not otel.traces_per_second:
        return None
    from sluicegate.proxy.telemetry.receiver import Receiver  # noqa: PLC0415
    from sluicegate.proxy.telemetry.resource import resource_of  # noqa: PLC0415
    from sluicegate.proxy.telemetry.span_push import SpanPush  # noqa: PLC0415

    return SpanPush(Receiver(otel), resource_of(config, otel.service_name), counters)
