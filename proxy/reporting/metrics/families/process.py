"""Declares the metrics of the process, which are its version, configuration, workers and resources."""

from platform import python_version

from sluicegate.proxy.reporting.build_info import SCAN_IS_COMPILED, VERSION
from sluicegate.proxy.reporting.metrics.family import Family, counter, gauge

_BUILD = (VERSION, python_version(), "compiled" if SCAN_IS_COMPILED else "interpreted")


CERTIFICATE_EXPIRES = gauge(
    "sluicegate_certificate_expires_timestamp_seconds",
    "Expiry time of each certificate in use, in seconds since the epoch, by the configuration key of its file and its "
    "subject. Of several with one subject, such as an old and a new CA, the last to expire counts. CA files with more "
    "than 20 certificates, such as the system's, are left out.",
    "Minus `time()`: the seconds left. Below 14 days, renew the file; the proxy reads it again without a restart.",
    None,
    ("key", "subject"),
)

PROCESS: tuple[Family, ...] = (
    gauge(
        "sluicegate_condition",
        "1 while the condition is active, by its subject (a broker, topic, destination or worker, or the addresses of "
        "`upstream.bootstrap`); else 0, without a subject.",
        "Any 1: [conditions](conditions.md) has its meaning and the remedy.",
        lambda s: s.conditions,
        ("condition", "subject"),
    ),
    gauge(
        "sluicegate_build_info",
        "Version, Python version, and whether the record scan is compiled.",
        'After an upgrade. `scan="interpreted"` is about 60 times slower: a C compiler was missing.',
        lambda _: {_BUILD: 1},
        ("version", "python", "scan"),
    ),
    gauge(
        "sluicegate_workers",
        "Processes that accept connections.",
        "Fewer than `workers`: a worker is being restarted.",
        lambda s: s.workers,
    ),
    counter(
        "sluicegate_worker_restarts",
        "Restarts of workers that ended.",
        "Any rise is an error: the log has the exit code.",
        lambda s: s.worker_restarts,
    ),
    gauge(
        "sluicegate_config_generation",
        "Number of the configuration in force: 1 at start; the lowest of all workers.",
        "After a change of the file it must rise on every instance.",
        lambda s: s.config_generation,
    ),
    counter(
        "sluicegate_config_reloads",
        "Applied reloads of the configuration.",
        "After a change of the file.",
        lambda s: s.counters.config_reloads,
    ),
    counter(
        "sluicegate_config_reload_failures",
        "Rejected reloads of the configuration.",
        "Any rise: the file has an error, and the previous policies stay in force. See `/readyz` and the log.",
        lambda s: s.counters.config_reload_failures,
    ),
    CERTIFICATE_EXPIRES,
    counter(
        "sluicegate_log_lines_dropped",
        "Lost log lines: standard error did not accept them.",
        "Any rise: the reader of the log is too slow or gone.",
        lambda s: s.counters.log_lines_dropped,
    ),
    counter(
        "sluicegate_cpu_seconds",
        "CPU time of the proxy's processes, in seconds.",
        "A rate near 1 for each worker: add workers, or find the reason in `sluicegate_fallbacks_total`.",
        lambda s: s.counters.cpu_seconds,
    ),
    counter(
        "sluicegate_otel_metric_exports",
        "Exports of metrics by OTLP, by result.",
        "Any rise of `failed`: the collector of `otel.endpoint` is down, slow or rejects them; the log has the reason.",
        lambda s: {"sent": s.counters.otel_metrics_sent, "failed": s.counters.otel_metrics_failed},
        ("result",),
        ("sent", "failed"),
    ),
    counter(
        "sluicegate_otel_spans",
        "Spans of requests, by result: `sent`, `failed` (the collector did not accept it) or `dropped` (the queue was "
        "full).",
        "Any rise of `failed` or `dropped`: as above. Clients never wait for exports.",
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
        "Resident memory of the proxy's processes; shared memory counts for each. 0 if the system does not report it.",
        "Compare with the memory limit of the container.",
        lambda s: s.gauges.resident_bytes,
    ),
)
