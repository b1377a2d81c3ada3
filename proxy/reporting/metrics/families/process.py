"""What runs, by which configuration, and how it is."""

from platform import python_version

from sluicegate.proxy.reporting.build_info import SCAN_IS_COMPILED, VERSION
from sluicegate.proxy.reporting.metrics.family import Family, counter, gauge

_BUILD = (VERSION, python_version(), "compiled" if SCAN_IS_COMPILED else "interpreted")


CERTIFICATE_EXPIRES = gauge(
    "sluicegate_certificate_expires_timestamp_seconds",
    "Expiry time of a certificate, in seconds since the epoch, by the configuration key of its file.",
    "Minus `time()`: the seconds left. Below 14 days, renew the file; the proxy reads it again without a restart.",
    None,
    ("key",),
)

PROCESS: tuple[Family, ...] = (
    gauge(
        "sluicegate_build_info",
        "What runs: version, Python's version, whether the record scan is compiled.",
        'After an upgrade. `scan="interpreted"` is some sixty times slower: a compiler was missing.',
        lambda _: {_BUILD: 1},
        ("version", "python", "scan"),
    ),
    gauge(
        "sluicegate_workers",
        "Processes that take connections.",
        "Fewer than `workers`: one is being started again.",
        lambda s: s.workers,
    ),
    counter(
        "sluicegate_worker_restarts",
        "Workers that ended and were started again.",
        "Any rise is a fault: the log has the exit code.",
        lambda s: s.worker_restarts,
    ),
    gauge(
        "sluicegate_config_generation",
        "The number of the configuration whose policies hold, 1 at the start; of several workers the lowest.",
        "After a change of the file: it must rise, everywhere.",
        lambda s: s.config_generation,
    ),
    counter(
        "sluicegate_config_reloads",
        "Reloads of the configuration that took effect.",
        "After a change of the file.",
        lambda s: s.tally.config_reloads,
    ),
    counter(
        "sluicegate_config_reload_failures",
        "Reloads of the configuration that were rejected.",
        "Any rise: the file has a mistake, and the old policies hold. `/readyz` and the log say which.",
        lambda s: s.tally.config_reload_failures,
    ),
    CERTIFICATE_EXPIRES,
    counter(
        "sluicegate_log_lines_dropped",
        "Log lines lost: standard error took none.",
        "Any rise: who reads the log is too slow, or gone.",
        lambda s: s.tally.log_lines_dropped,
    ),
    counter(
        "sluicegate_cpu_seconds",
        "CPU time of the proxy's processes, in seconds.",
        "Near one a second for each worker: more workers are needed, or somebody makes the proxy look closer.",
        lambda s: s.tally.cpu_seconds,
    ),
    counter(
        "sluicegate_otel_metric_exports",
        "Times that metrics were sent by OTLP, by what became of them.",
        "Any rise of `failed`: the receiver of `otel.endpoint` is gone, slow or rejects them; the log says which.",
        lambda s: {"sent": s.tally.otel_metrics_sent, "failed": s.tally.otel_metrics_failed},
        ("result",),
        ("sent", "failed"),
    ),
    counter(
        "sluicegate_otel_spans",
        "Spans of requests, by what became of them: `sent`, `failed` (not taken by the receiver) or `dropped` (their "
        "queue was full).",
        "Any rise of the last two: as above. No client waits for it.",
        lambda s: {
            "sent": s.tally.otel_spans_sent,
            "failed": s.tally.otel_spans_failed,
            "dropped": s.tally.otel_spans_dropped,
        },
        ("result",),
        ("sent", "failed", "dropped"),
    ),
    gauge(
        "sluicegate_resident_memory_bytes",
        "Memory of the proxy's processes, what they share counted for each; 0 where the system does not tell.",
        "Against what the container may have.",
        lambda s: s.gauges.resident_bytes,
    ),
)
