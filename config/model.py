"""Every key of the configuration file, with its default, its bounds and its description. Frozen once read.

Topic keys carry Kafka's own names, dots and all, and mean what they mean on a broker.
"""

import socket
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import AfterValidator

from sluicegate.config.dead_letter_topics import check_dead_letters
from sluicegate.config.otel import Otel
from sluicegate.config.quotas import Quota, check_quota_names
from sluicegate.config.registries import Registry
from sluicegate.config.requests import Exempt, RequestRule, check_request_names
from sluicegate.config.section import described, section
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
    """TLS towards clients."""

    certificate_file: FileName = described("the certificate that clients see and its chain, PEM")
    key_file: FileName = described("its key, PEM")
    key_password: Secret | None = described("what the key is encrypted with", default=None)
    key_password_file: FileName | None = described("a file that holds it, instead", default=None)
    client_auth: Literal["none", "requested", "required"] = described(
        "whether clients show certificates, as `ssl.client.auth` on a broker", default="none"
    )
    client_ca_file: FileName | None = described(
        "who signs clients' certificates, PEM; needed unless `client_auth` is `none`", default=None
    )
    allowed_names: Patterns = described(
        "who may connect, by one of its certificate's names: the common name, and the alternative names (hosts, "
        "mail addresses, URIs, addresses), upper and lower case as they stand; needs `client_auth: required`; none: "
        "who has a certificate",
        default=(),
    )

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
    """Where clients connect, and which of them may."""

    bootstrap: ListenAddress = described(
        "where clients bootstrap; an empty host or `0.0.0.0` is every address of the machine"
    )
    broker_ports: Port | None = described(
        "broker N listens at this + N, so that a restart keeps every port; none: the bootstrap port + 1", default=None
    )
    broker_host: BrokerHost | None = described(
        "with TLS, instead of a port for each broker: one port, and a name for each, as "
        "`broker-{node_id}.kafka.example.com` (SNI); for node ids up to 999,999,999",
        default=None,
    )
    advertised_host: AdvertisedHost | None = described(
        "the host that clients are told, without a port; none: that of `listen.bootstrap`", default=None
    )
    tls: ListenTls | None = described(
        "TLS to clients. Files that change are read again. Absent: plaintext.", default=None
    )
    proxy_protocol: Literal["required", "optional"] | None = described(
        "take who the client is from load balancers in front (PROXY protocol v2): `required` of all connections, or "
        "`optional`; none: nobody is believed",
        default=None,
    )
    proxy_protocol_from: Networks = described(
        "the load balancers' networks or addresses; with `required` nobody else may connect, with `optional` nobody "
        "else is believed",
        default=(),
    )
    allowed_addresses: Networks = described(
        "networks or addresses that clients may connect from, before any TLS handshake; where a load balancer tells "
        "who the client is, that address counts; none: all",
        default=(),
    )
    oauthbearer_claim: Text | None = described(
        "the claim of an OAUTHBEARER token that the brokers take the principal from, as their "
        "`sasl.oauthbearer.sub.claim.name`, which is `sub` by default; none: principals of such logins are "
        "unverified, and no exemption matches them ([TLS and SASL](how-to/tls-and-sasl.md))",
        name="sasl.oauthbearer.claim",
        default=None,
    )

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
    """Where /metrics, /livez, /readyz and the web UI are served."""

    listen: ListenAddress | None = described(
        "where `/metrics`, `/livez`, `/readyz` and the [page](page.md) are; none: nowhere", default=None
    )
    page: Flag = described("whether there is a page at `/`; without a token only on a loopback address", default=True)
    token: Secret | None = described(
        "what who looks at the page has to know; `/metrics`, `/livez` and `/readyz` are answered without it",
        default=None,
    )
    token_file: FileName | None = described("a file that holds it, instead; read again each time", default=None)

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
    """Where rejections are written: to a file, to a topic of the cluster, or both. If neither: log lines only."""

    file: WrittenFileName | None = described(
        "where events go; none: log lines only. A relative path begins where the proxy was started, which must be "
        "writable: with a read-only root, a volume",
        default=None,
    )
    topic: TopicName | None = described(
        "a topic of the cluster that events go to, as well as or instead of the file; `upstream` says how it is "
        "reached. Needs `pip install 'sluicegate[topic]'`; none: no topic",
        default=None,
    )
    max_file_bytes: Bytes = described(
        "a file that has reached this is renamed to its name and `.1`, in the place of the one before", default=1 << 30
    )
    max_records: NoneOrMore = described("bad records that are listed in each event", default=10)
    queue_size: OneOrMore = described(
        "events that may wait to be written; further ones are dropped and counted", default=10_000
    )

    @property
    def is_anywhere(self) -> bool:
        """Whether they are written at all."""
        return self.file is not None or self.topic is not None


@section
class Limits:
    """Bounds on what any client can make the proxy hold or do (docs/reliability.md)."""

    max_frame_bytes: FrameBytes = described("largest request or gathered answer", default=104_857_600)
    max_gathered_bytes: Bytes = described(
        "all requests that are being gathered, of all connections together; at least `max_frame_bytes`",
        default=536_870_912,
    )
    max_decompressed_bytes: Bytes = described(
        "what the compressed batches of one request may become, all together", default=134_217_728
    )
    max_decompression_ratio: OneOrMore = described(
        "how many times its size a compressed batch may become (above 1 MiB)", default=1000
    )
    max_decompression_window_bytes: Bytes = described(
        "what may have to be held at once to read a payload: a zstd window, a snappy block", default=16_777_216
    )
    max_request_partitions: OneOrMore = described("partitions in one Produce request", default=5000)
    max_request_records: OneOrMore | None = described(
        "records in one Produce request, as its batches say; none: any number that fits `max_frame_bytes` and "
        "`max_decompressed_bytes`",
        default=None,
    )
    max_request_headers: OneOrMore | None = described(
        "headers of all records of one Produce request that are judged; none: any number that fits the same",
        default=None,
    )
    max_record_errors: OneOrMore = described(
        "record errors that are listed in one answer, all partitions together", default=1000
    )
    max_quarantined_bytes: Bytes = described(
        "what bad records that are being quarantined may take, of all connections together", default=134_217_728
    )
    rule_seconds: Seconds = described(
        "CPU time that the rules process may spend for the records of one Produce request, and for compiling one "
        "schema of a registry ([policies](policies.md#the-rules-process))",
        default=2,
    )
    rule_memory: RuleMemory = described(
        "memory of the rules process beyond what its libraries take; each worker has one such process, if its rules "
        "need one",
        default=268_435_456,
    )
    max_in_flight: OneOrMore = described("requests of one connection without an answer", default=1000)
    max_in_flight_in_all: OneOrMore | None = described(
        "requests of all connections together without an answer, long polls included (each consumer has one); none: "
        "any number",
        default=None,
    )
    max_connections: OneOrMore | None = described(
        "connections of all clients; none: as many as the process may have descriptors for", default=None
    )
    max_connections_per_address: OneOrMore | None = described(
        "connections from one address; none: no bound of its own", default=None
    )
    max_new_connections_per_second: OneOrMore | None = described(
        "new connections a second, on all listeners together, and as many at once after a quiet time; who comes "
        "faster waits, as with `max.connection.creation.rate` of a broker; none: no bound",
        default=None,
    )
    max_new_connections_per_second_per_address: OneOrMore | None = described(
        "new connections a second from one address, and as many at once after a quiet time; what comes faster is "
        "closed; where a load balancer tells who the client is, that address counts; none: no bound",
        default=None,
    )
    max_handshakes: OneOrMore = described(
        "TLS handshakes and PROXY protocol headers that are under way at once (57 kB each)", default=1000
    )
    handshake_seconds: Seconds = described("how long a TLS handshake, or a PROXY protocol header, may take", default=30)
    frame_seconds: Seconds = described("how long a request may take to arrive", default=30)
    idle_seconds: Seconds = described("how long a connection may say nothing", default=900)

    def __post_init__(self) -> None:
        if self.max_gathered_bytes < self.max_frame_bytes:
            raise ValueError("limits.max_gathered_bytes must be at least limits.max_frame_bytes")


@section
class Log:
    """How log lines look, and which are written."""

    format: Literal["auto", "json", "pretty"] = described("`auto` is pretty on a terminal, else JSON", default="auto")
    level: Literal["debug", "info", "warning", "error"] = described(
        "from which level on lines are written; `debug` follows every connection: who it is, each request's API, "
        "version and size, each answer's codes, what holds it up, who ends it; never a payload or a secret",
        default="info",
    )
    client: Text | None = described(
        "follow only the connections of this client id, whatever `log.level` says", default=None
    )

    @property
    def follows_connections(self) -> bool:
        """Whether there are lines of level debug at all: connections' are the only ones."""
        return self.level == "debug" or self.client is not None


@section
class Config:
    """The whole file. `topics` holds those of `topics_from` too, after the file's own."""

    upstream: Upstream = described("The cluster behind the proxy.")
    listen: Listen = described("Where clients connect.")
    admin: Admin = described("The admin endpoint.", default=Admin())
    defaults: TopicKeys = described(
        "What holds where an entry of `topics` does not say otherwise. Values that are named `none` here are those "
        "of a broker: CreateTime, 9223372036854775807 twice, delete, the broker's `max.message.bytes`; and `all`, "
        "`reject`.",
        default=TopicKeys(),
    )
    topics: tuple[Topic, ...] = described(
        "The first entry whose pattern matches a topic's whole name decides; what it leaves open comes from "
        "`defaults`.",
        default=(),
    )
    requests: Annotated[tuple[RequestRule, ...], AfterValidator(check_request_names)] = described(
        "What is asked of Produce requests and of who sends them ([policies](policies.md)). All that concern a "
        "batch are asked.",
        default=(),
    )
    exempt: tuple[Exempt, ...] = described(
        "Clients that are asked nothing: no rule, no bound, no check of ours; the broker's own hold "
        "([policies](policies.md)).",
        default=(),
    )
    quotas: Annotated[tuple[Quota, ...], AfterValidator(check_quota_names)] = described(
        "How much each client may send with Produce, and on how many connections, or how much each topic may be "
        "sent ([quotas](quotas.md)). The first that is about a client holds, and the first that is about a topic.",
        default=(),
    )
    registries: dict[Text, Registry] = described("A schema registry, by a name that rules use.", default_factory=dict)
    violations: Violations = described(
        "[Violation events](violations.md), one JSON object for each refused partition.", default=Violations()
    )
    otel: Otel | None = described(
        "[OpenTelemetry](how-to/opentelemetry.md): metrics and traces by OTLP over HTTP. Needs `pip install "
        "'sluicegate[otel]'`. Absent: none.",
        default=None,
    )
    limits: Limits = described(
        "What any client can make the proxy hold or do. What goes beyond is refused, with the key's name.",
        default=Limits(),
    )
    log: Log = described("Log lines.", default=Log())
    on_internal_error: Literal["close", "forward"] = described(
        "what becomes of a Produce request that cannot be judged because sluicegate itself fails: its connection is "
        "closed (`close`), or it is forwarded as it came, and told (`forward`)",
        name="on.internal.error",
        default="close",
    )
    drain_seconds: Seconds = described(
        "after SIGTERM: accept nothing, let what is in flight finish, at most this long", default=30
    )
    workers: Workers = described(
        "processes that share the ports and the work (SO_REUSEPORT), one admin endpoint, metrics summed; one that "
        "dies is started again and counted (`sluicegate_worker_restarts_total`)",
        default=1,
    )
    topics_from: TopicFiles = described(
        "further files with entries of `topics`, names or globs, as `policies/*.yaml`, relative to this file; they "
        "stand behind its own, file by file in the order of their names ([policy files](policy-files.md))",
        default=(),
    )

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
