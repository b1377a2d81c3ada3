"""Opens the configured outputs for violation events (file, topic), quarantined records and OpenTelemetry."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from errno import ENOENT, EROFS
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sluicegate.config.model import Config, Violations
from sluicegate.proxy.reload.enforcement import Enforcement
from sluicegate.proxy.reload.policy_history import PolicyReload
from sluicegate.proxy.reload.topic_explanation import PolicyQuery
from sluicegate.proxy.reporting.events.encoding import ENCODINGS, Encode
from sluicegate.proxy.reporting.events.violation_writer import SeveralSinks, ViolationFile, ViolationSink
from sluicegate.proxy.reporting.metrics.counters import Counters, Snapshot
from sluicegate.proxy.reporting.proxy_name import proxy_name
from sluicegate.proxy.reporting.write_health import WriteHealth
from sluicegate.proxy.server.announcing import announcement_of_proxy
from sluicegate.proxy.state.agreed_state import AgreedState
from sluicegate.proxy.state.settings_table import SettingsTable, TopicValues
from sluicegate.proxy.state.shared_state import SharedState
from sluicegate.proxy.status.condition import Condition
from sluicegate.proxy.status.status import Status
from sluicegate.proxy.telemetry import ExtraMissing, check_extra
from sluicegate.proxy.telemetry.request_traces import RequestSummary
from sluicegate.proxy.writing.dead_letter_writer import DeadLetterWriter
from sluicegate.proxy.writing.topic_writer import ClientMissing, check_client
from sluicegate.proxy.writing.violation_topic import ViolationTopic

if TYPE_CHECKING:
    from sluicegate.proxy.telemetry.metric_push import MetricPush
    from sluicegate.proxy.telemetry.span_push import SpanPush


AdoptSettings = Callable[[Mapping[str, TopicValues | None]], Coroutine[Any, Any, None]]
"""Puts changed topic settings in force. None stands for a topic without settings."""
_ADOPT_SECONDS = 60.0
# When a quarantine write takes this long, the producer gets a retriable error.
_KEEP_SECONDS = 10.0


class CannotStart(Exception):
    """The proxy cannot run. The message gives advice."""


class Outputs:
    """One proxy's outputs besides its connections: quarantined records, spans and pushed metrics.

    `quarantine` contains the results of writing records, and `reports` the results of writing events or telemetry.
    """

    def __init__(self, config: Config, counters: Counters, from_thread: Callable[..., Any]) -> None:
        """`counters` counts outcomes. `from_thread` runs a function on the event loop. Raises CannotStart."""
        if any(topic.quarantine is not None for topic in config.topics):
            check_may_write("quarantine")
        keep_seconds = min(_KEEP_SECONDS, config.limits.frame_timeout_seconds)
        self.quarantine, self.reports = WriteHealth(), WriteHealth()
        self.dead_letters = DeadLetterWriter(config.upstream, keep_seconds, from_thread, self.quarantine)
        check_telemetry(config)
        self._counters = counters
        self._spans = span_push(config, counters, self.reports)
        self._metrics: MetricPush | None = None

    @property
    def writes(self) -> dict[Condition, WriteHealth]:
        """The results of writes, by the condition that is active while those writes fail."""
        return {Condition.QUARANTINE_FAILING: self.quarantine, Condition.EVENTS_LOST: self.reports}

    @property
    def keep_trace(self) -> Callable[[RequestSummary], None] | None:
        """A function that receives the traces of sampled requests, or None without tracing."""
        return None if self._spans is None else self._spans.keep

    def push_metrics(self, config: Config, snapshot: Callable[[], Snapshot]) -> None:
        """Start pushing metrics if that is configured."""
        self._metrics = metric_push(config, snapshot, self._counters, self.reports)

    async def end_pushes(self) -> None:
        """Push the remaining spans and metrics."""
        pushes = [push for push in (self._spans, self._metrics) if push is not None]
        await asyncio.gather(*(asyncio.to_thread(push.close) for push in pushes))


def open_violations(config: Config, counters: Counters, health: WriteHealth) -> ViolationSink | None:
    """Open the configured sinks of violation events.

    Return None if there are none. `health` records the results of writes. Raises CannotStart.
    """
    keys = config.violations
    sinks: list[ViolationSink] = []
    encode = ENCODINGS[keys.format]
    if keys.topic is not None:
        check_may_write("violations.topic")
    if keys.file is not None:
        sinks.append(_open_file(Path(keys.file), keys, counters, health, encode))
    if keys.topic is not None:
        sinks.append(ViolationTopic(keys.topic, config.upstream, keys.queue_size, counters, health, encode))
    return SeveralSinks(sinks) if len(sinks) > 1 else next(iter(sinks), None)


def open_state(
    config: Config,
    enforcement: Enforcement,
    adopt_settings: AdoptSettings,
    settings_read: Callable[[], None],
    query: PolicyQuery,
    status: Status,
    health: WriteHealth,
    snapshot: Callable[[], Snapshot],
) -> SharedState | None:
    """Start reading `state.topic`. Return None if no such topic is configured.

    The state takes effect on this event loop; `adopt_settings` puts changed topic settings in force. `settings_read` is
    called after the state was read for the first time. Changes of the state and of the policies that `query` explains
    are written to the history. `snapshot` returns the counters that this proxy announces. Raises CannotStart.
    """
    if config.state is None:
        return None
    check_may_write("state.topic")
    loop = asyncio.get_running_loop()

    known = SettingsTable()

    def adopt(state: AgreedState) -> None:
        nonlocal known
        changes = state.settings.changes_since(known)
        try:
            loop.call_soon_threadsafe(enforcement.adopt, state.suspensions)
            if changes:
                in_force = asyncio.run_coroutine_threadsafe(adopt_settings(changes), loop)
                in_force.result(_ADOPT_SECONDS)
        except RuntimeError:  # the event loop is closed
            return
        known = state.settings

    def on_read() -> None:
        with suppress(RuntimeError):  # the event loop is closed
            loop.call_soon_threadsafe(settings_read)

    def write_down(reload: PolicyReload) -> None:
        shared.add_reload(reload.time_ms, reload.named_files, dict(reload.changes or {}))

    announcement = announcement_of_proxy(config, query, snapshot, status)
    shared = SharedState(
        config.state, config.upstream, proxy_name(config), adopt, status, health, announcement, on_read
    )
    query.history.on_added = write_down
    shared.start()
    return shared


def check_may_write(key: str) -> None:
    """Check that the client library for `key` is installed. Raises CannotStart."""
    try:
        check_client(key)
    except ClientMissing as error:
        raise CannotStart(str(error)) from None


def _open_file(path: Path, keys: Violations, counters: Counters, health: WriteHealth, encode: Encode) -> ViolationFile:
    try:
        return ViolationFile(path, keys.queue_size, keys.max_file_bytes, counters, health, encode)
    except OSError as error:
        path, advice = path.absolute(), ""
        if error.errno == EROFS:
            advice = "; mount a volume at its folder, or remove violations.file"
        elif error.errno == ENOENT:
            advice = f"; create the folder {path.parent}"
        raise CannotStart(f"violations.file {path} cannot be written: {error.strerror}{advice}") from error


def check_telemetry(config: Config) -> None:
    """Check that the libraries for `otel` are installed. Raises CannotStart."""
    if config.otel is not None:
        try:
            check_extra()
        except ExtraMissing as error:
            raise CannotStart(str(error)) from None


def metric_push(
    config: Config, snapshot: Callable[[], Snapshot], counters: Counters, health: WriteHealth
) -> "MetricPush | None":
    """Start pushing metrics if that is configured. Otherwise return None.

    `counters` and `health` record the outcomes.
    """
    otel = config.otel
    if otel is None or not otel.metrics:
        return None
    from sluicegate.proxy.admin.responses import all_metrics  # noqa: PLC0415  # only exports need it here
    from sluicegate.proxy.telemetry.collector import Collector, resource_of  # noqa: PLC0415  # the extra `otel`
    from sluicegate.proxy.telemetry.metric_push import MetricPush  # noqa: PLC0415  # the extra `otel`

    collect = partial(all_metrics, config, snapshot)
    resource = resource_of(config, otel.service_name)
    return MetricPush(collect, Collector(otel), resource, otel.metrics_interval_seconds, counters, health)


def span_push(config: Config, counters: Counters, health: WriteHealth) -> "SpanPush | None":
    """Start pushing the spans of requests if that is configured. Otherwise return None."""
    otel = config.otel
    if otel is None or not otel.traces_per_second:
        return None
    from sluicegate.proxy.telemetry.collector import Collector, resource_of  # noqa: PLC0415  # the extra `otel`
    from sluicegate.proxy.telemetry.span_push import SpanPush  # noqa: PLC0415  # the extra `otel`

    return SpanPush(Collector(otel), resource_of(config, otel.service_name), counters, health)
