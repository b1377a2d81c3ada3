"""Metrics as Prometheus reads them: its own text format and OpenMetrics' (https://prometheus.io/docs/instrumenting/).

Written here because Prometheus's client library, whose texts tests hold these to, brings an HTTP server, a client and
what reads e-mail: three megabytes for a process that only shows what it has counted anyway.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator

from sluicegate.proxy.reporting.metrics import Metric, Sample

Write = Callable[[Iterable[Metric]], bytes]

_PLAIN, _OPENMETRICS = "text/plain", "application/openmetrics-text"
_PLAIN_0 = f"{_PLAIN}; version=0.0.4; charset=utf-8"
_OPENMETRICS_1 = f"{_OPENMETRICS}; version=1.0.0; charset=utf-8"
_FROM_1_ON = re.compile(r"[1-9]\d*(\.\d+)*", re.ASCII)
# All our names are such that these two are the same.
_ESCAPINGS = frozenset({"allow-utf-8", "underscores"})
# Go writes numbers from here on with an exponent, and so does Prometheus.
_DIGITS_BEFORE_POINT = 6


def prometheus_text(metrics: Iterable[Metric]) -> bytes:
    """The text format, which says a counter's name as its series have it."""
    lines: list[str] = []
    for metric in metrics:
        name = f"{metric.name}_total" if metric.type == "counter" else metric.name
        text = metric.documentation.replace("\\", r"\\").replace("\n", r"\n")
        lines += (f"# HELP {name} {text}\n", f"# TYPE {name} {metric.type}\n", *map(_line, metric.samples))
    return "".join(lines).encode()


def openmetrics_text(metrics: Iterable[Metric]) -> bytes:
    """OpenMetrics 1.0, which has an end."""
    lines: list[str] = []
    for metric in metrics:
        text = _quotable(metric.documentation)
        lines += (f"# HELP {metric.name} {text}\n", f"# TYPE {metric.name} {metric.type}\n")
        lines += map(_line, metric.samples)
    return "".join((*lines, "# EOF\n")).encode()


def wanted_by(accept: str) -> tuple[Write, str]:
    """What writes the first format of an Accept header that there is here, and its Content-Type."""
    for kind, parameters in _told(accept):
        version = parameters.get("version", "")
        escaping = parameters.get("escaping")
        escaped = f"; escaping={escaping if escaping in _ESCAPINGS else 'underscores'}"
        if kind == _OPENMETRICS and not version:
            return openmetrics_text, _OPENMETRICS_1
        if kind == _OPENMETRICS and _FROM_1_ON.fullmatch(version):
            return openmetrics_text, _OPENMETRICS_1 + escaped
        if kind == _PLAIN and _FROM_1_ON.fullmatch(version):
            return prometheus_text, f"{_PLAIN}; version=1.0.0; charset=utf-8{escaped}"
    return prometheus_text, _PLAIN_0


def takes_gzip(accept_encoding: str) -> bool:
    """Whether an Accept-Encoding header names it."""
    return any(coding.lower() == "gzip" for coding, _ in _told(accept_encoding))


def _told(header: str) -> Iterator[tuple[str, dict[str, str]]]:
    """What is between a header's commas, each with its parameters."""
    for each in header.split(","):
        what, *parameters = (part.strip() for part in each.split(";"))
        yield what, {name: value for name, _, value in (part.partition("=") for part in parameters)}


def _line(sample: Sample) -> str:
    labels = ",".join(f'{name}="{_quotable(value)}"' for name, value in sorted(sample.labels.items()))
    return (
        f"{sample.name}{{{labels}}} {_number(sample.value)}\n" if labels else f"{sample.name} {_number(sample.value)}\n"
    )


def _quotable(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _number(value: float) -> str:
    value = float(value)
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else f"{'+' if value > 0 else '-'}Inf"
    text = repr(value)
    point = text.find(".")
    if value <= 0 or point <= _DIGITS_BEFORE_POINT:
        return text
    digits = f"{text[0]}.{text[1:point]}{text[point + 1 :]}".rstrip("0.")
    return f"{digits}e+{point - 1:02d}"
