"""Every key of the configuration file, its default and its bounds. Frozen once read.

Topic keys carry Kafka's own names, dots and all, and mean what they mean on a broker.
"""

import re
import socket
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

from config.address import Address, HostPort

LONG_MAX = 9223372036854775807
Milliseconds = Annotated[int, Field(ge=0, le=LONG_MAX)]
Port = Annotated[int, Field(ge=1, le=65535)]
Seconds = Annotated[float, Field(gt=0)]
PositiveBytes = Annotated[int, Field(ge=1)]
NODE_ID = "{node_id}"
MAX_WORKERS = 64
_CLEANUP = frozenset({"compact", "delete"})


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=False)


class UpstreamTls(_Section):
    """TLS towards the brokers: whom to trust (the system's CAs if no file is named), and a certificate of its own."""

    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    key_password: SecretStr | None = None
    verify_hostname: bool = True

    @model_validator(mode="after")
    def _certificate_has_key(self) -> "UpstreamTls":
        if (self.certificate_file is None) != (self.key_file is None):
            raise ValueError("certificate_file and key_file belong together")
        return self


class ListenTls(_Section):
    """TLS towards clients. `client_auth` means what ssl.client.auth means on a broker."""

    certificate_file: str
    key_file: str
    key_password: SecretStr | None = None
    client_auth: Literal["none", "requested", "required"] = "none"
    client_ca_file: str | None = None

    @model_validator(mode="after")
    def _knows_whom_to_trust(self) -> "ListenTls":
        if self.client_auth != "none" and self.client_ca_file is None:
            raise ValueError(f"client_auth {self.client_auth} needs client_ca_file: who signs clients' certificates")
        return self


class Sasl(_Section):
    """How the proxy itself logs in, for what it asks the cluster; clients bring their own logins."""

    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
    username: str
    password: SecretStr


class Upstream(_Section):
    """The cluster behind the proxy. `brokers` names addresses by node id, for clusters that tell them only to
    clients that have logged in; they are otherwise learnt. `topic_settings`: read them from the cluster.
    """

    bootstrap: tuple[Address, ...] = Field(min_length=1)
    brokers: dict[int, Address] = Field(default_factory=dict)
    tls: UpstreamTls | None = None
    sasl: Sasl | None = None
    topic_settings: bool = False
    connect_timeout_seconds: Seconds = 10
    refresh_seconds: Seconds = 30


class Listen(_Section):
    """Where clients connect. Broker N listens at `broker_ports` + N (default: the bootstrap port + 1 + N), or, with
    `broker_host`, at the bootstrap port under a name of its own that TLS clients ask for (SNI).
    """

    bootstrap: Address
    broker_ports: Port | None = None
    broker_host: str | None = None
    advertised_host: str | None = None
    tls: ListenTls | None = None

    @field_validator("broker_host")
    @classmethod
    def _names_each_broker(cls, value: str | None) -> str | None:
        if value is not None and value.count(NODE_ID) != 1:
            raise ValueError(f"expected a host name with {NODE_ID} in it, as broker-{NODE_ID}.kafka.example.com")
        return value

    @model_validator(mode="after")
    def _needs_a_name(self) -> "Listen":
        if self.bootstrap.is_wildcard and not self.advertised_host:
            raise ValueError("listen.advertised_host is needed when listen.bootstrap is every address of the machine")
        if self.broker_host is not None and self.tls is None:
            raise ValueError("listen.broker_host needs listen.tls: only TLS clients say which name they want")
        if self.broker_host is not None and self.broker_ports is not None:
            raise ValueError("listen.broker_host and listen.broker_ports exclude each other")
        if self.bootstrap.port == 0 and self.broker_ports is None and self.broker_host is None:
            raise ValueError("listen.broker_ports is needed when listen.bootstrap leaves its port to the system")
        return self

    def port_of(self, node_id: int) -> int:
        """The port on which broker `node_id` is offered, where each has its own."""
        base = self.broker_ports if self.broker_ports is not None else self.bootstrap.port + 1
        return base + node_id

    @property
    def host_for_clients(self) -> str:
        """The host that clients are told to connect to."""
        return self.advertised_host or self.bootstrap.host


class Admin(_Section):
    """Where /metrics, /livez and /readyz are served; no listen, no admin endpoint."""

    listen: Address | None = None


class TopicKeys(_Section):
    """Kafka's topic settings that a judgement depends on; what is not given is inherited from `defaults`.

    `checks: none` leaves a topic's batches unjudged.
    """

    timestamp_type: Literal["CreateTime", "LogAppendTime"] | None = Field(None, alias="message.timestamp.type")
    before_max_ms: Milliseconds | None = Field(None, alias="message.timestamp.before.max.ms")
    after_max_ms: Milliseconds | None = Field(None, alias="message.timestamp.after.max.ms")
    difference_max_ms: Milliseconds | None = Field(None, alias="message.timestamp.difference.max.ms")
    cleanup_policy: str | None = Field(None, alias="cleanup.policy")
    max_message_bytes: PositiveBytes | None = Field(None, alias="max.message.bytes")
    checks: Literal["all", "none"] | None = None

    @field_validator("cleanup_policy")
    @classmethod
    def _known_cleanup(cls, value: str | None) -> str | None:
        if value is not None and not set(value.replace(" ", "").split(",")) <= _CLEANUP:
            raise ValueError(f"expected compact, delete or compact,delete; found {value!r}")
        return value


class Topic(TopicKeys):
    """Settings for the topics whose whole name matches: a glob, or a regular expression between slashes."""

    match: str

    @field_validator("match")
    @classmethod
    def _compiles(cls, value: str) -> str:
        if not value:
            raise ValueError("an empty pattern matches no topic")
        if len(value) > 1 and value.startswith("/") and value.endswith("/"):
            try:
                re.compile(value[1:-1])
            except re.error as error:
                raise ValueError(f"not a regular expression: {error}") from error
        return value


class Violations(_Section):
    """Where refusals are written, one JSON object a line; no file, log lines only."""

    file: str | None = None
    max_records: Annotated[int, Field(ge=0)] = 10
    queue_size: Annotated[int, Field(ge=1)] = 10_000


class Limits(_Section):
    """Bounds on what any client can make the proxy hold (bytes unless named otherwise)."""

    max_frame_bytes: PositiveBytes = 104_857_600
    max_gathered_bytes: PositiveBytes = 536_870_912
    max_decompressed_bytes: PositiveBytes = 134_217_728
    max_decompression_ratio: Annotated[int, Field(ge=1)] = 1000
    max_in_flight: Annotated[int, Field(ge=1)] = 1000
    frame_seconds: Seconds = 30

    @model_validator(mode="after")
    def _fits(self) -> "Limits":
        if self.max_gathered_bytes < self.max_frame_bytes:
            raise ValueError("limits.max_gathered_bytes must be at least limits.max_frame_bytes")
        return self


class Log(_Section):
    """How log lines look: JSON, pretty, or pretty only on a terminal (auto)."""

    format: Literal["auto", "json", "pretty"] = "auto"
    level: Literal["debug", "info", "warning", "error"] = "info"


class Config(_Section):
    """The whole file. `workers`: how many processes share the ports and the work."""

    upstream: Upstream
    listen: Listen
    admin: Admin = Admin()
    defaults: TopicKeys = TopicKeys()
    topics: tuple[Topic, ...] = ()
    violations: Violations = Violations()
    limits: Limits = Limits()
    log: Log = Log()
    drain_seconds: Seconds = 30
    workers: Annotated[int, Field(ge=1, le=MAX_WORKERS)] = 1

    @model_validator(mode="after")
    def _can_share_ports(self) -> "Config":
        if self.workers > 1 and not hasattr(socket, "SO_REUSEPORT"):
            raise ValueError("workers: more than one needs SO_REUSEPORT, which this system does not have")
        return self

    def of_one_worker(self, bootstrap: HostPort) -> "Config":
        """What each of several workers runs with: its share of the memory, and nothing that only one can do."""
        share = max(self.limits.max_frame_bytes, self.limits.max_gathered_bytes // self.workers)
        listen = self.listen.model_copy(update={"bootstrap": bootstrap})
        limits = self.limits.model_copy(update={"max_gathered_bytes": share})
        return self.model_copy(update={"listen": listen, "admin": Admin(), "limits": limits})
