"""What is told to a receiver of OpenTelemetry (`otel`): metrics, and traces of requests, by OTLP over HTTP."""
