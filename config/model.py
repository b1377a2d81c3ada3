"""Every key of the configuration file, its default and its bounds. Frozen once read.

Topic keys carry Kafka's own names, dots and all, and mean what they mean on a broker.
"""

import socket
from typing import Literal

from pydantic import Field, field_validator, model_validator

from sluicegate.config.address import HostPort, check_host
from sluicegate.config.dead_letter_topics import check_dead_letters
from sluicegate.config.kinds import (
    Addresses,
    AdvertisedHost,
    BrokerAddress,
    Bytes,
    FileName,
    Flag,
    FrameBytes,
    ListenAddress,
    Networks,
    NodeId,
    NoneOrMore,
    OneOrMore,
    Port,
    Seconds,
    Secret,
    Text,
    TopicFiles,
    TopicName,
    Workers,
)
from sluicegate.config.password import Password, check_one
from sluicegate.config.registries import Registry
from sluicegate.config.requests import Exempt, RequestRule, check_request_names
from sluicegate.config.section import Section
from sluicegate.config.topics import Topic, TopicKeys

NODE_ID = "{node_id}"
# What counts at once where the file is read again while a proxy runs; everything else with the next start.
POLICIES = frozenset({"defaults", "topics", "topics_from", "requests", "exempt", "registries"})


class UpstreamTls(Section):
    """TLS towards the brokers: whom to trust (the system's CAs if no file is named), and a certificate of its own."""

    ca_file: FileName | None = None
    certificate_file: FileName | None = None
    key_file: FileName | None = None
    key_password: Secret | None = None
    key_password_file: FileName | None = None
    verify_hostname: Flag = True

    @model_validator(mode="after")
    def _certificate_has_key(self) -> "UpstreamTls":
        if (self.certificate_file is None) != (self.key_file is None):
            raise ValueError("certificate_file and key_file belong together")
        check_one("key_password", self.key_password, self.key_password_file)
        return self

    @property
    def password_of_key(self) -> Password:
        """What the key is encrypted with."""
        return Password("upstream.tls.key_password_file", self.key_password, self.key_password_file)


class ListenTls(Section):
    """TLS towards clients. `client_auth` means what ssl.client.auth means on a broker."""

    certificate_file: FileName
    key_file: FileName
    key_password: Secret | None = None
    key_password_file: FileName | None = None
    client_auth: Literal["none", "requested", "required"] = "none"
    client_ca_file: FileName | None = None

    @model_validator(mode="after")
    def _knows_whom_to_trust(self) -> "ListenTls":
        if self.client_auth != "none" and self.client_ca_file is None:
            raise ValueError(f"client_auth {self.client_auth} needs client_ca_file: who signs clients' certificates")
        check_one("key_password", self.key_password, self.key_password_file)
        return self

    @property
    def password_of_key(self) -> Password:
        """What the key is encrypted with."""
        return Password("listen.tls.key_password_file", self.key_password, self.key_password_file)


class Sasl(Section):
    """How the proxy itself logs in, for what it asks the cluster; clients bring their own logins."""

    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
    username: Text
    password: Secret | None = None
    password_file: FileName | None = None

    @model_validator(mode="after")
    def _has_a_password(self) -> "Sasl":
        check_one("password", self.password, self.password_file)
        if self.password is None and self.password_file is None:
            raise ValueError("password or password_file is needed")
        return self

    @property
    def current_password(self) -> Password:
        """What to log in with, as it is when it is asked for."""
        return Password("upstream.sasl.password_file", self.password, self.password_file)


class Upstream(Section):
    """The cluster behind the proxy. `brokers` names addresses by node id, for clusters that tell them only to
    clients that have logged in; they are otherwise learnt. `topic_settings`: read topics' from the cluster.
    """

    bootstrap: Addresses
    brokers: dict[NodeId, BrokerAddress] = Field(default_factory=dict)
    tls: UpstreamTls | None = None
    sasl: Sasl | None = None
    topic_settings: Flag = True
    connect_timeout_seconds: Seconds = 10
    refresh_seconds: Seconds = 30


class Listen(Section):
    """Where clients connect. Broker N listens at `broker_ports` + N (default: the bootstrap port + 1 + N), or, with
    `broker_host`, at the bootstrap port under a name of its own that TLS clients ask for (SNI). `proxy_protocol`: load
    balancers at `proxy_protocol_from` say who the client is.
    """

    bootstrap: ListenAddress
    broker_ports: Port | None = None
    broker_host: Text | None = None
    advertised_host: AdvertisedHost | None = None
    tls: ListenTls | None = None
    proxy_protocol: Literal["required", "optional"] | None = None
    proxy_protocol_from: Networks = ()

    @field_validator("broker_host")
    @classmethod
    def _names_each_broker(cls, value: str | None) -> str | None:
        if value is None:
            return None
        if value.count(NODE_ID) != 1:
            raise ValueError(f"expected a host name with {NODE_ID} in it, as broker-{NODE_ID}.kafka.example.com")
        check_host(value.replace(NODE_ID, "0"))
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
        if (self.proxy_protocol is None) == bool(self.proxy_protocol_from):
            raise ValueError(
                "listen.proxy_protocol and listen.proxy_protocol_from belong together: only load balancers that are "
                "named may say who a client is"
            )
        return self

    def port_of(self, node_id: int) -> int:
        """The port on which broker `node_id` is offered, where each has its own."""
        base = self.broker_ports if self.broker_ports is not None else self.bootstrap.port + 1
        return base + node_id

    @property
    def host_for_clients(self) -> str:
        """The host that clients are told to connect to."""
        return self.advertised_host or self.bootstrap.host


class Admin(Section):
    """Where /metrics, /livez and /readyz are served; no listen, no admin endpoint."""

    listen: ListenAddress | None = None


class Violations(Section):
    """Where refusals are written, one JSON object each: to a file, a topic of the cluster, or both; neither: log lines
    only.

    A file that has reached `max_file_bytes` is renamed to its name and `.1`, in the place of the one before.
    """

    file: FileName | None = None
    topic: TopicName | None = None
    max_file_bytes: Bytes = 1 << 30
    max_records: NoneOrMore = 10
    queue_size: OneOrMore = 10_000


class Limits(Section):
    """Bounds on what any client can make the proxy hold or do (bytes unless named otherwise; docs/reliability.md).

    `max_decompressed_bytes`, `max_request_partitions` and `max_record_errors` are for one request as a whole;
    `max_decompression_window_bytes` is what may have to be held at once to read a payload (a zstd window, a snappy
    block). `max_connections` None: as many as the process may have descriptors for.
    """

    max_frame_bytes: FrameBytes = 104_857_600
    max_gathered_bytes: Bytes = 536_870_912
    max_decompressed_bytes: Bytes = 134_217_728
    max_decompression_ratio: OneOrMore = 1000
    max_decompression_window_bytes: Bytes = 16_777_216
    max_request_partitions: OneOrMore = 5000
    max_record_errors: OneOrMore = 1000
    max_quarantined_bytes: Bytes = 134_217_728
    max_in_flight: OneOrMore = 1000
    max_connections: OneOrMore | None = None
    max_connections_per_address: OneOrMore | None = None
    frame_seconds: Seconds = 30
    idle_seconds: Seconds = 900

    @model_validator(mode="after")
    def _fits(self) -> "Limits":
        if self.max_gathered_bytes < self.max_frame_bytes:
            raise ValueError("limits.max_gathered_bytes must be at least limits.max_frame_bytes")
        return self


class Log(Section):
    """How log lines look: JSON, pretty, or pretty only on a terminal (auto). `client`: whose connections are followed
    line by line; without one, `debug` follows all.
    """

    format: Literal["auto", "json", "pretty"] = "auto"
    level: Literal["debug", "info", "warning", "error"] = "info"
    client: Text | None = None

    @property
    def follows_connections(self) -> bool:
        """Whether there are lines of level debug at all: connections' are the only ones."""
        return self.level == "debug" or self.client is not None


class Config(Section):
    """The whole file. `topics` holds those of `topics_from` too, which stand behind the file's own. `workers`: how many
    processes share the ports and the work.
    """

    upstream: Upstream
    listen: Listen
    admin: Admin = Admin()
    defaults: TopicKeys = TopicKeys()
    topics: tuple[Topic, ...] = ()
    requests: tuple[RequestRule, ...] = ()
    exempt: tuple[Exempt, ...] = ()
    registries: dict[Text, Registry] = Field(default_factory=dict)
    violations: Violations = Violations()
    limits: Limits = Limits()
    log: Log = Log()
    drain_seconds: Seconds = 30
    workers: Workers = 1
    topics_from: TopicFiles = ()

    @field_validator("requests")
    @classmethod
    def _named_once(cls, value: tuple[RequestRule, ...]) -> tuple[RequestRule, ...]:
        return check_request_names(value)

    @model_validator(mode="after")
    def _registries_are_there(self) -> "Config":
        for rule in (rule for keys in (self.defaults, *self.topics) for rule in keys.rules or ()):
            for content in (rule.key, rule.value):
                named = None if content is None or content.schema_ is None else content.schema_.registry
                if named is not None and named not in self.registries:
                    known = ", ".join(self.registries) or "none"
                    raise ValueError(f"rule {rule.name} names registry {named}, and registries has {known}")
        return self

    @model_validator(mode="after")
    def _can_share_ports(self) -> "Config":
        if self.workers > 1 and not hasattr(socket, "SO_REUSEPORT"):
            raise ValueError("workers: more than one needs SO_REUSEPORT, which this system does not have")
        return self

    @model_validator(mode="after")
    def _keeps_dead_letters_apart(self) -> "Config":
        """What is quarantined is written to a topic that is not."""
        check_dead_letters(self.topics, self.violations.topic)
        return self

    def with_policies_of(self, other: "Config") -> "Config":
        """The same with another configuration's policies."""
        return self.model_copy(update={key: getattr(other, key) for key in POLICIES})

    def of_one_worker(self, bootstrap: HostPort) -> "Config":
        """What each of several workers runs with: its share of what is bounded, and nothing that only one can do."""
        share = max(self.limits.max_frame_bytes, self.limits.max_gathered_bytes // self.workers)
        connections, of_address = self.limits.max_connections, self.limits.max_connections_per_address
        listen = self.listen.model_copy(update={"bootstrap": bootstrap})
        limits = self.limits.model_copy(
            update={
                "max_gathered_bytes": share,
                "max_quarantined_bytes": max(1, self.limits.max_quarantined_bytes // self.workers),
                "max_connections": None if connections is None else -(-connections // self.workers),
                "max_connections_per_address": None if of_address is None else -(-of_address // self.workers),
            }
        )
        return self.model_copy(update={"listen": listen, "admin": Admin(), "limits": limits})
