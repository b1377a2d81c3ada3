"""Declares the metrics about the process: its version, configuration, workers and resources."""

from platform import python_version

from sluicegate.proxy.reporting.build_info import SCAN_IS_COMPILED, VERSION
from sluicegate.proxy.reporting.metrics.family import Family, counter, gauge

_BUILD = (VERSION, python_version(), "compiled" if SCAN_IS_COMPILED else "interpreted")


CERTIFICATE_EXPIRES = gauge(
    "sluicegate_certificate_expires_timestamp_seconds",
    "The expiry time of each certificate in use, in seconds since the epoch, by the configuration key of its file and "
    "its subject. If several certificates have one subject, such as an old and a new CA, the latest expiry counts. CA "
    "files with more than 20 certificates, such as the system's, are left out.",
    "Subtract `time()` for the remaining seconds. Renew the file if less than 14 days remain; the proxy needs no "
    "restart.",
    None,
    ("key", "subject"),
)

PROCESS: tuple[Family, ...] = (
    gauge(
        "sluicegate_condition",
        "1 while the condition is active, by its subject (a broker, topic, destination or worker, or the addresses of "
        "`upstream.bootstrap`), otherwise 0 without a subject.",
        "If it is 1, [conditions](conditions.md) describes the meaning and the remedy.",
        lambda s: s.conditions,
        ("condition", "subject"),
    ),
    gauge(
        "sluicegate_build_info",
        "The version, the Python version, and whether the record scan is compiled.",
        'Check it after an upgrade. `scan="interpreted"` means that a C compiler was missing; validation is then about '
        "60 times slower.",
        lambda _: {_BUILD: 1},
        ("version", "python", "scan"),
    ),
    gauge(
        "sluicegate_workers",
        "Processes that accept connections.",
        "If it is below `workers`, a worker is being restarted.",
        lambda s: s.workers,
    ),
    counter(
        "sluicegate_worker_restarts",
        "Restarts of workers that ended.",
        "Should not increase. The log shows the exit code.",
        lambda s: s.worker_restarts,
    ),
    gauge(
        "sluicegate_config_generation",
        "The number of the configuration in force, which is 1 at startup. With several workers, the lowest number of "
        "all workers.",
        "Should increase on every instance after the file changes.",
        lambda s: s.config_generation,
    ),
    counter(
        "sluicegate_config_reloads",
        "Applied reloads of the configuration.",
        "Should increase after the file changes.",
        lambda s: s.counters.config_reloads,
    ),
    counter(
        "sluicegate_config_reload_failures",
        "Rejected reloads of the configuration.",
        "Should not increase. The file has an error, which `/readyz` and the log show, and the previous policies stay "
        "in force.",
        lambda s: s.counters.config_reload_failures,
    ),
    CERTIFICATE_EXPIRES,
    counter(
        "sluicegate_log_lines_dropped",
        "Log lines that were lost because standard error did not accept them.",
        "Should not increase. The reader of the log is too slow or has ended.",
        lambda s: s.counters.log_lines_dropped,
    ),
    counter(
        "sluicegate_cpu_seconds",
        "CPU time of the proxy's processes, in seconds.",
        "If the rate is near 1 for each worker, add workers, or find the cause in `sluicegate_fallbacks_total`.",
        lambda s: s.counters.cpu_seconds,
    ),
    counter(
        "sluicegate_otel_metric_exports",
        "Exports of metrics by OTLP, by result.",
        "`failed` should not increase. The collector of `otel.endpoint` is down, slow or rejects exports; the log "
        "gives the reason.",
        lambda s: {"sent": s.counters.otel_metrics_sent, "failed": s.counters.otel_metrics_failed},
        ("result",),
        ("sent", "failed"),
    ),
    counter(
        "sluicegate_otel_spans",
        "Spans of requests, by result: `sent`, `failed` (the collector did not accept it) or `dropped` (the queue was "
        "full).",
        "`failed` and `dropped` should not increase. The collector of `otel.endpoint` is down, slow or rejects spans. "
        "Clients never wait for exports.",
        lambda s: {
            "sent": s.counters.otel_spans_sent,
            "failed": s.counters.otel_spans_failed,
            "dropped": s.counters.otel_spans_dropped,
        },
        ("result",),
        ("sent", "failed", "dropped"),
    ),
    gauge(
        "sluicegate_resident_memory_bytes",
        "The resident memory of the proxy's processes. Shared memory counts for each process. The value is 0 if the "
        "system does not report memory.",
        "Compare it with the memory limit of the container.",
        lambda s: s.gauges.resident_bytes,
    ),
)
