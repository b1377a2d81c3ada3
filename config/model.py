"""Every key of the configuration file, its default and its bounds. Frozen once read.

Topic keys carry Kafka's own names, dots and all, and mean what they mean on a broker.
"""

import socket
from dataclasses import field, replace
from typing import Annotated, Literal

from pydantic import AfterValidator

from sluicegate.config.dead_letter_topics import check_dead_letters
from sluicegate.config.otel import Otel
from sluicegate.config.quotas import Quota, check_quota_names
from sluicegate.config.registries import Registry
from sluicegate.config.requests import Exempt, RequestRule, check_request_names
from sluicegate.config.section import named, section
from sluicegate.config.topics import Topic, TopicKeys
from sluicegate.config.upstream import Upstream
from sluicegate.config.values.address import HostPort, check_host
from sluicegate.config.values.kinds import (
    AdvertisedHost,
    Bytes,
    FileName,
    Flag,
    FrameBytes,
    ListenAddress,
    Networks,
    NoneOrMore,
    OneOrMore,
    Patterns,
    Port,
    RuleMemory,
    Seconds,
    Secret,
    Text,
    TopicFiles,
    TopicName,
    Workers,
    WrittenFileName,
)
from sluicegate.config.values.password import Password, check_one

NODE_ID = "{node_id}"
MAX_NAMED_NODE = 999_999_999
"""The largest node id that `listen.broker_host` serves."""
_MAX_PORT = 65535
# What counts at once where the file is read again while a proxy runs; everything else with the next start.
POLICIES = frozenset({"defaults", "topics", "topics_from", "requests", "exempt", "quotas", "registries"})


@section
class ListenTls:
    """TLS towards clients. `client_auth` means what ssl.client.auth means on a broker; `allowed_names`: nobody else may
    connect.
    """

    certificate_file: FileName
    key_file: FileName
    key_password: Secret | None = None
    key_password_file: FileName | None = None
    client_auth: Literal["none", "requested", "required"] = "none"
    client_ca_file: FileName | None = None
    allowed_names: Patterns = ()

    def __post_init__(self) -> None:
        if self.client_auth != "none" and self.client_ca_file is None:
            raise ValueError(f"client_auth {self.client_auth} needs client_ca_file: who signs clients' certificates")
        if self.allowed_names and self.client_auth != "required":
            raise ValueError("allowed_names needs client_auth: required: without a certificate nobody has a name")
        check_one("key_password", self.key_password, self.key_password_file)

    @property
    def password_of_key(self) -> Password:
        """What the key is encrypted with."""
        return Password("listen.tls.key_password_file", self.key_password, self.key_password_file)


def _names_each_broker(host: str) -> str:
    if host.count(NODE_ID) != 1:
        raise ValueError(f"expected a host name with {NODE_ID} in it, as broker-{NODE_ID}.kafka.example.com")
    check_host(host.replace(NODE_ID, "0"))
    return host


BrokerHost = Annotated[Text, AfterValidator(_names_each_broker)]


@section
class Listen:
    """Where clients connect. Broker N listens at `broker_ports` + N (default: the bootstrap port + 1 + N), or, with
    `broker_host`, at the bootstrap port under a name of its own that TLS clients ask for (SNI). `proxy_protocol`: load
    balancers at `proxy_protocol_from` say who the client is. `allowed_addresses`: nobody else may connect.
    `oauthbearer_claim`: the claim of a token that the brokers make the principal of.
    """

    bootstrap: ListenAddress
    broker_ports: Port | None = None
    broker_host: BrokerHost | None = None
    advertised_host: AdvertisedHost | None = None
    tls: ListenTls | None = None
    proxy_protocol: Literal["required", "optional"] | None = None
    proxy_protocol_from: Networks = ()
    allowed_addresses: Networks = ()
    oauthbearer_claim: Text | None = named("sasl.oauthbearer.claim", default=None)

    def __post_init__(self) -> None:
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

    def why_unavailable(self, node_id: int) -> tuple[str, str] | None:
        """Why broker `node_id` can have no address for clients, and what to do; None: it can have one."""
        smaller = "give the broker a smaller node.id"
        if self.broker_host is not None:
            if node_id <= MAX_NAMED_NODE:
                return None
            reason = f"broker {node_id} can have no name: listen.broker_host serves ids up to {MAX_NAMED_NODE}"
            return reason, smaller
        if 0 < self.port_of(node_id) <= _MAX_PORT:
            return None
        other = "use listen.broker_host" if node_id <= MAX_NAMED_NODE else smaller
        reason = f"broker {node_id} would need port {self.port_of(node_id)}, which does not exist"
        return reason, f"change listen.broker_ports, or {other}"

    def port_of(self, node_id: int) -> int:
        """The port on which broker `node_id` is offered, where each has its own."""
        base = self.broker_ports if self.broker_ports is not None else self.bootstrap.port + 1
        return base + node_id

    def address_of(self, node_id: int) -> str:
        """Where clients find broker `node_id`, as a person reads it."""
        if self.broker_host is None:
            return str(HostPort(self.host_for_clients, self.port_of(node_id)))
        return str(HostPort(self.broker_host.replace(NODE_ID, str(node_id)), self.bootstrap.port))

    @property
    def host_for_clients(self) -> str:
        """The host that clients are told to connect to."""
        return self.advertised_host or self.bootstrap.host


@section
class Admin:
    """Where /metrics, /livez, /readyz and the page are served; no listen, no admin endpoint. `token`: what who looks at
    the page has to know.
    """

    listen: ListenAddress | None = None
    page: Flag = True
    token: Secret | None = None
    token_file: FileName | None = None

    def __post_init__(self) -> None:
        check_one("admin.token", self.token, self.token_file)

    @property
    def token_of_page(self) -> Password | None:
        """What who looks at the page needs; None: nothing."""
        if self.token is None and self.token_file is None:
            return None
        return Password("admin.token_file", self.token, self.token_file)


@section
class Violations:
    """Where refusals are written, one JSON object each: to a file, a topic of the cluster, or both; neither: log lines
    only.

    A file that has reached `max_file_bytes` is renamed to its name and `.1`, in the place of the one before.
    """

    file: WrittenFileName | None = None
    topic: TopicName | None = None
    max_file_bytes: Bytes = 1 << 30
    max_records: NoneOrMore = 10
    queue_size: OneOrMore = 10_000

    @property
    def is_anywhere(self) -> bool:
        """Whether they are written at all."""
        return self.file is not None or self.topic is not None


@section
class Limits:
    """Bounds on what any client can make the proxy hold or do (bytes unless named otherwise; docs/reliability.md).

    `max_decompressed_bytes`, `max_request_partitions` and `max_record_errors` are for one request as a whole;
    `max_decompression_window_bytes` is what may have to be held at once to read a payload (a zstd window, a snappy
    block). `max_connections` None: as many as the process may have descriptors for. `max_new_connections_per_second`
    None, and that of an address: as fast as they come.
    """

    max_frame_bytes: FrameBytes = 104_857_600
    max_gathered_bytes: Bytes = 536_870_912
    max_decompressed_bytes: Bytes = 134_217_728
    max_decompression_ratio: OneOrMore = 1000
    max_decompression_window_bytes: Bytes = 16_777_216
    max_request_partitions: OneOrMore = 5000
    max_request_records: OneOrMore | None = None
    max_request_headers: OneOrMore | None = None
    max_record_errors: OneOrMore = 1000
    max_quarantined_bytes: Bytes = 134_217_728
    rule_seconds: Seconds = 2
    rule_memory: RuleMemory = 268_435_456
    max_in_flight: OneOrMore = 1000
    max_in_flight_in_all: OneOrMore | None = None
    max_connections: OneOrMore | None = None
    max_connections_per_address: OneOrMore | None = None
    max_new_connections_per_second: OneOrMore | None = None
    max_new_connections_per_second_per_address: OneOrMore | None = None
    max_handshakes: OneOrMore = 1000
    handshake_seconds: Seconds = 30
    frame_seconds: Seconds = 30
    idle_seconds: Seconds = 900

    def __post_init__(self) -> None:
        if self.max_gathered_bytes < self.max_frame_bytes:
            raise ValueError("limits.max_gathered_bytes must be at least limits.max_frame_bytes")


@section
class Log:
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


@section
class Config:
    """The whole file. `topics` holds those of `topics_from` too, which stand behind the file's own. `workers`: how many
    processes share the ports and the work.
    """

    upstream: Upstream
    listen: Listen
    admin: Admin = Admin()
    defaults: TopicKeys = TopicKeys()
    topics: tuple[Topic, ...] = ()
    requests: Annotated[tuple[RequestRule, ...], AfterValidator(check_request_names)] = ()
    exempt: tuple[Exempt, ...] = ()
    quotas: Annotated[tuple[Quota, ...], AfterValidator(check_quota_names)] = ()
    registries: dict[Text, Registry] = field(default_factory=dict)
    violations: Violations = Violations()
    otel: Otel | None = None
    limits: Limits = Limits()
    log: Log = Log()
    on_internal_error: Literal["close", "forward"] = named("on.internal.error", default="close")
    drain_seconds: Seconds = 30
    workers: Workers = 1
    topics_from: TopicFiles = ()

    def check(self) -> None:
        """Whether its sections can be together. Raises ValueError."""
        for rule in (rule for keys in (self.defaults, *self.topics) for rule in keys.rules or ()):
            for content in (rule.key, rule.value):
                named = None if content is None or content.schema_ is None else content.schema_.registry
                if named is not None and named not in self.registries:
                    known = ", ".join(self.registries) or "none"
                    raise ValueError(f"rule {rule.name} names registry {named}, and registries has {known}")
        if self.workers > 1 and not hasattr(socket, "SO_REUSEPORT"):
            raise ValueError("workers: more than one needs SO_REUSEPORT, which this system does not have")
        self._check_brokers()
        check_dead_letters(self.topics, self.violations.topic)

    def _check_brokers(self) -> None:
        """Whether each broker that is named can have an address for clients. Raises ValueError."""
        listen, admin = self.listen, self.admin.listen
        taken = {listen.bootstrap.port: "listen.bootstrap"}
        if admin is not None and admin.host == listen.bootstrap.host:
            taken[admin.port] = "admin.listen"
        for node_id in self.upstream.brokers:
            unavailable = listen.why_unavailable(node_id)
            if unavailable is not None:
                raise ValueError(f"upstream.brokers: {'; '.join(unavailable)}")
            port = listen.port_of(node_id)
            if listen.broker_host is None and port in taken:
                words = f"broker {node_id} would need port {port}, which is that of {taken[port]}"
                raise ValueError(f"upstream.brokers: {words}; change listen.broker_ports")

    def with_policies_of(self, other: "Config") -> "Config":
        """The same with another configuration's policies."""
        return replace(self, **{key: getattr(other, key) for key in POLICIES})

    def of_one_worker(self, bootstrap: HostPort) -> "Config":
        """What each of several workers runs with: its share of what is bounded, and nothing that only one can do."""
        limits, share_of = self.limits, self._share_of
        listen = replace(self.listen, bootstrap=bootstrap)
        otel = None if self.otel is None else self.otel.of_one_worker(self.workers)
        shared = replace(
            limits,
            max_gathered_bytes=max(limits.max_frame_bytes, limits.max_gathered_bytes // self.workers),
            max_quarantined_bytes=max(1, limits.max_quarantined_bytes // self.workers),
            max_in_flight_in_all=share_of(limits.max_in_flight_in_all),
            max_connections=share_of(limits.max_connections),
            max_connections_per_address=share_of(limits.max_connections_per_address),
            max_new_connections_per_second=share_of(limits.max_new_connections_per_second),
            max_new_connections_per_second_per_address=share_of(limits.max_new_connections_per_second_per_address),
            max_handshakes=-(-limits.max_handshakes // self.workers),
        )
        return replace(self, listen=listen, admin=Admin(), limits=shared, otel=otel)

    def _share_of(self, bound: int | None) -> int | None:
        """Of one worker, rounded up; None: there is no bound."""
        return None if bound is None else -(-bound // self.workers)
