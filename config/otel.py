"""What the file says of OpenTelemetry: where metrics and traces go, and how many."""

from dataclasses import replace
from typing import Annotated

from pydantic import AfterValidator

from sluicegate.config.section import section
from sluicegate.config.server_tls import ServerTls
from sluicegate.config.values.http import headers_in, url_like
from sluicegate.config.values.kinds import FileName, Flag, NoneOrMore, Seconds, Secret, Text
from sluicegate.config.values.password import Password, check_one


@section
class Otel:
    """A receiver of OTLP over HTTP. `metrics`: whether it gets what /metrics shows, every `metrics_every_seconds`.
    `traces_per_second`: spans of requests in which something is wrong, and as many of others; 0: none.
    """

    endpoint: Annotated[Text, AfterValidator(url_like("http://collector.internal:4318"))]
    headers: Secret | None = None
    headers_file: FileName | None = None
    tls: ServerTls | None = None
    service_name: Text = "sluicegate"
    metrics: Flag = True
    metrics_every_seconds: Seconds = 15
    traces_per_second: NoneOrMore = 10
    timeout_seconds: Seconds = 10

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
