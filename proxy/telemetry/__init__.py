"""Exports metrics and request traces to an OpenTelemetry collector (`otel`), by OTLP over HTTP.

OpenTelemetry's SDK is an optional dependency. Import the modules of this package only if `otel` is set.
"""


class ExtraMissing(Exception):
    """The exporters are not installed. The text has the command that installs them."""


def check_extra() -> None:
    """Check that the exporters are installed. Raises ExtraMissing."""
    try:
        import opentelemetry.exporter.otlp.proto.http.trace_exporter  # noqa: F401, PLC0415  # whether the extra is installed
    except ImportError:
        raise ExtraMissing(
            "otel needs OpenTelemetry's exporters: pip install 'sluicegate[otel]', or remove the section otel"
        ) from None
