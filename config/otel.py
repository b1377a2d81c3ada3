"""The section `otel`: where and how often metrics and traces are sent with OTLP."""

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
        "The base URL of the collector, for example `http://collector.internal:4318`. The proxy appends "
        "`/v1/metrics` and `/v1/traces`."
    )
    headers: Secret | None = described(
        "The HTTP headers of each request, for example `authorization=Bearer%20secret,x-tenant=a`. They never appear "
        "in messages.",
        default=None,
    )
    headers_file: FileName | None = described(
        "The file with the headers, instead of `headers`. The proxy reads it for each request.", default=None
    )
    tls: ServerTls | None = described("TLS towards the collector. Default: the system's CAs.", default=None)
    service_name: Text = described("The OpenTelemetry resource's `service.name`.", default="sluicegate")
    metrics: Flag = described("Whether the metrics of `/metrics` are exported, summed over workers.", default=True)
    metrics_interval_seconds: Seconds = described(
        "The interval at which metrics are exported.", default=15, formerly="metrics_every_seconds"
    )
    traces_per_second: NoneOrMore = described(
        "The maximum rate of spans for Produce requests with a violation. The same maximum applies to requests without "
        "one. 0 exports no spans.",
        default=10,
    )
    timeout_seconds: Seconds = described(
        "The timeout of one export including its retries. Clients never wait for an export.", default=10
    )

    def __post_init__(self) -> None:
        check_one_source("headers", self.headers, self.headers_file)
        if self.headers is not None:
            headers_in(self.headers.get_secret_value())
        if self.tls is not None and not is_https(self.endpoint):
            raise ValueError("tls is only valid with an https endpoint")

    @property
    def current_headers(self) -> Password:
        """Return the headers, to be parsed with `headers_in`. Their file is read each time."""
        return Password("otel.headers_file", self.headers, self.headers_file)

    def of_one_worker(self, workers: int) -> "Otel":
        """Return the section for one worker, with its share of the traces.

        It has no metrics, which the supervisor exports.
        """
        return replace(self, metrics=False, traces_per_second=-(-self.traces_per_second // workers))
