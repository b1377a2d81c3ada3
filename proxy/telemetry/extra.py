"""Whether OTLP's messages are installed: they are an extra, and loaded only where `otel` is set."""


class ExtraMissing(Exception):
    """opentelemetry-proto is not installed; the text says how to have it."""


def check_extra() -> None:
    """Raises ExtraMissing."""
    try:
        import opentelemetry.proto.trace.v1.trace_pb2  # noqa: F401, PLC0415
    except ImportError:
        raise ExtraMissing(
            "otel needs the package opentelemetry-proto: pip install 'sluicegate[otel]', or leave otel out"
        ) from None
