"""The section `otel`: where metrics and traces are sent by OTLP, and how often."""

from dataclasses import replace
from typing import Annotated

from pydantic import AfterValidator

from sluicegate.config.section import described, section
from sluicegate.config.tls import ServerTls
from sluicegate.config.values.http import headers_in, is_https, url_like
from sluicegate.config.values.kinds import FileName, Flag, NoneOrMore, Seconds, Secret, Text
from sluicegate.config.values.password import Password, check_one_source


@section
class Otel:
    """An OTLP collector over HTTP."""

    endpoint: Annotated[Text, AfterValidator(url_like("http://collector.internal:4318"))] = described(
        "base URL of the collector, as `http://collector.internal:4318`; `/v1/metrics` and `/v1/traces` are appended"
    )
    headers: Secret | None = described(
        "HTTP headers of each request, as `authorization=Bearer%20secret,x-tenant=a`; never shown", default=None
    )
    headers_file: FileName | None = described(
        "file with the headers, instead of `headers`; read for each request", default=None
    )
    tls: ServerTls | None = described("TLS towards the collector. Default: the system's CAs.", default=None)
    service_name: Text = described("`service.name` of the OpenTelemetry resource", default="sluicegate")
    metrics: Flag = described("whether the metrics of `/metrics` are exported, summed over workers", default=True)
    metrics_interval_seconds: Seconds = described(
        "export interval of metrics", default=15, formerly="metrics_every_seconds"
    )
    traces_per_second: NoneOrMore = described(
        "rate of spans for Produce requests with a violation, and the same rate for those without; 0: no spans",
        default=10,
    )
    timeout_seconds: Seconds = described(
        "timeout of one export including retries; clients never wait for it", default=10
    )

    def __post_init__(self) -> None:
        check_one_source("headers", self.headers, self.headers_file)
        if self.headers is not None:
            headers_in(self.headers.get_secret_value())
        if self.tls is not None and not is_https(self.endpoint):
            raise ValueError("tls belongs to an https endpoint")

    @property
    def current_headers(self) -> Password:
        """The headers, read from their file each time; parsed by `headers_in`."""
        return Password("otel.headers_file", self.headers, self.headers_file)

    def of_one_worker(self, workers: int) -> "Otel":
        """Return the section for one worker: its share of the traces, and no metrics, which the supervisor exports."""
        return replace(self, metrics=False, traces_per_second=-(-self.traces_per_second // workers))
