"""Exports metrics and request traces to an OpenTelemetry collector (`otel`), with OTLP over HTTP.

OpenTelemetry's SDK is an optional dependency. Import this package's modules only if `otel` is set.
"""


class ExtraMissing(Exception):
    """The exporters are not installed. The message contains the command that installs them."""


def check_extra() -> None:
    """Check that the exporters are installed. Raises ExtraMissing."""
    try:
        import opentelemetry.exporter.otlp.proto.http.trace_exporter  # noqa: F401, PLC0415  # is it installed?
    except ImportError:
        raise ExtraMissing(
            "otel needs OpenTelemetry's exporters: pip install 'sluicegate[otel]', or remove the section otel"
        ) from None
