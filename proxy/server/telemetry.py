"""What is told to a receiver of OpenTelemetry by the configuration. What that needs is loaded only where it is set."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from sluicegate.config.model import Config
from sluicegate.proxy.reporting.metrics.counters import Snapshot, Tally
from sluicegate.proxy.server.cannot_start import CannotStart
from sluicegate.proxy.telemetry.extra import ExtraMissing, check_extra

if TYPE_CHECKING:
    from sluicegate.proxy.telemetry.metric_push import MetricPush
    from sluicegate.proxy.telemetry.span_push import SpanPush


def check_telemetry(config: Config) -> None:
    """Whether what `otel` needs is installed. Raises CannotStart."""
    if config.otel is not None:
        try:
            check_extra()
        except ExtraMissing as error:
            raise CannotStart(str(error)) from None


def metric_push(config: Config, snapshot: Callable[[], Snapshot], tally: Tally) -> "MetricPush | None":
    """What sends what /metrics shows, from now on; None: nobody wants it. What becomes of it is counted in `tally`."""
    otel = config.otel
    if otel is None or not otel.metrics:
        return None
    from sluicegate.proxy.admin.collected_metrics import all_metrics  # noqa: PLC0415
    from sluicegate.proxy.telemetry.metric_push import MetricPush  # noqa: PLC0415
    from sluicegate.proxy.telemetry.receiver import Receiver  # noqa: PLC0415
    from sluicegate.proxy.telemetry.resource import resource_of  # noqa: PLC0415

    look = partial(all_metrics, config, snapshot)
    resource = resource_of(config, otel.service_name)
    return MetricPush(look, Receiver(otel), resource, otel.metrics_every_seconds, tally)


def span_push(config: Config, tally: Tally) -> "SpanPush | None":
    """What sends the spans of requests, from now on; None: nobody wants them."""
    otel = config.otel
    if otel is None or not otel.traces_per_second:
        return None
    from sluicegate.proxy.telemetry.receiver import Receiver  # noqa: PLC0415
    from sluicegate.proxy.telemetry.resource import resource_of  # noqa: PLC0415
    from sluicegate.proxy.telemetry.span_push import SpanPush  # noqa: PLC0415

    return SpanPush(Receiver(otel), resource_of(config, otel.service_name), tally)
