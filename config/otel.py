"""What the file says of OpenTelemetry: where metrics and traces go, and how many."""

from dataclasses import replace
from typing import Annotated

from sluicegate.config.http_headers import headers_in
from sluicegate.config.http_url import url_like
from sluicegate.config.kinds import FileName, Flag, NoneOrMore, Seconds, Secret, Text
from sluicegate.config.notes import Checks
from sluicegate.config.password import Password, check_one
from sluicegate.config.section import section


@section
class OtelTls:
    """TLS to the receiver: whom to trust (the system's CAs if no file is named), and the proxy's own certificate."""

    ca_file: FileName | None = None
    certificate_file: FileName | None = None
    key_file: FileName | None = None
    key_password: Secret | None = None
    key_password_file: FileName | None = None

    def __post_init__(self) -> None:
        if (self.certificate_file is None) != (self.key_file is None):
            raise ValueError("certificate_file and key_file belong together")
        check_one("key_password", self.key_password, self.key_password_file)

    @property
    def password_of_key(self) -> Password:
        """What the key is encrypted with."""
        return Password("otel.tls.key_password_file", self.key_password, self.key_password_file)


@section
class Otel:
    """A receiver of OTLP over HTTP. `metrics`: whether it gets what /metrics shows, every `metrics_every_seconds`.
    `traces_per_second`: spans of requests in which something is wrong, and as many of others; 0: none.
    """

    endpoint: Annotated[Text, Checks(url_like("http://collector.internal:4318"))]
    headers: Secret | None = None
    headers_file: FileName | None = None
    tls: OtelTls | None = None
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
