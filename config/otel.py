"""What the file says of OpenTelemetry: where metrics and traces go, and how many."""

from dataclasses import replace
from typing import Annotated

from pydantic import AfterValidator

from sluicegate.config.section import described, section
from sluicegate.config.server_tls import ServerTls
from sluicegate.config.values.http import headers_in, url_like
from sluicegate.config.values.kinds import FileName, Flag, NoneOrMore, Seconds, Secret, Text
from sluicegate.config.values.password import Password, check_one


@section
class Otel:
    """A receiver of OTLP over HTTP."""

    endpoint: Annotated[Text, AfterValidator(url_like("http://collector.internal:4318"))] = described(
        "where the receiver is, as `http://collector.internal:4318`; `/v1/metrics` and `/v1/traces` are put behind it"
    )
    headers: Secret | None = described(
        "what is sent with each request, as `authorization=Bearer%20secret,x-tenant=a`; never shown", default=None
    )
    headers_file: FileName | None = described("a file that holds them, instead; read again each time", default=None)
    tls: ServerTls | None = described("TLS to the receiver. Absent: the system's CAs.", default=None)
    service_name: Text = described("the resource's `service.name`", default="sluicegate")
    metrics: Flag = described(
        "`true`: the receiver gets what `/metrics` shows; of several workers together", default=True
    )
    metrics_interval_seconds: Seconds = described("how often", default=15, formerly="metrics_every_seconds")
    traces_per_second: NoneOrMore = described(
        "spans a second, at most, of Produce requests in which something is wrong, and as many of those in which "
        "nothing is; 0: none",
        default=10,
    )
    timeout_seconds: Seconds = described("timeout of one export, with its retries; no client waits for it", default=10)

    def __post_init__(self) -> None:
        check_one("headers", self.headers, self.headers_file)
        if self.headers is not None:
            headers_in(self.headers.get_secret_value())
        if self.tls is not None and not self.endpoint.startswith("https:"):
            raise ValueError("tls belongs to an https endpoint")

    @property
    def current_headers(self) -> Password:
        """What is sent with each request, as it is when it is asked for; `headers_in` reads it."""
        return Password("otel.headers_file", self.headers, self.headers_file)

    def of_one_worker(self, workers: int) -> "Otel":
        """What one of several workers does: its share of the traces; metrics are sent for all of them together."""
        return replace(self, metrics=False, traces_per_second=-(-self.traces_per_second // workers))
