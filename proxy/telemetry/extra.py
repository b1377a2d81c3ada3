"""Checks that OpenTelemetry's SDK and exporters are installed: they are an extra, loaded only if `otel` is set."""


class ExtraMissing(Exception):
    """The exporters are not installed; the text has the command that installs them."""


def check_extra() -> None:
    """Raises ExtraMissing."""
    try:
        import opentelemetry.exporter.otlp.proto.http.trace_exporter  # noqa: F401, PLC0415
    except ImportError:
        raise ExtraMissing(
            "otel needs OpenTelemetry's exporters: pip install 'sluicegate[otel]', or leave otel out"
        ) from None
