"""Every key of the configuration file, with its default, its bounds and its description. Frozen once read.

Topic keys carry Kafka's own names, dots and all, and mean what they mean on a broker.
"""

import socket
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import AfterValidator

from sluicegate.config.dead_letter_topics import check_dead_letters
from sluicegate.config.limits import Limits
from sluicegate.config.listen import Listen
from sluicegate.config.otel import Otel
from sluicegate.config.quotas import Quota, check_quota_names
from sluicegate.config.registries import Registry
from sluicegate.config.requests import Exempt, RequestRule, check_request_names
from sluicegate.config.section import described, section
from sluicegate.config.topics import Topic, TopicKeys
from sluicegate.config.upstream import Upstream
from sluicegate.config.values.address import HostPort
from sluicegate.config.values.kinds import (
    Bytes,
    FileName,
    Flag,
    ListenAddress,
    NoneOrMore,
    OneOrMore,
    Seconds,
    Secret,
    Text,
    TopicFiles,
    TopicName,
    Workers,
    WrittenFileName,
)
from sluicegate.config.values.password import Password, check_one

# What counts at once where the file is read again while a proxy runs; everything else with the next start.
POLICIES = frozenset({"defaults", "topics", "topic_files", "requests", "exempt", "quotas", "registries"})


@section
class Admin:
    """Where /metrics, /livez, /readyz and the web UI are served."""

    listen: ListenAddress | None = described(
        "where `/metrics`, `/livez`, `/readyz` and the [web UI](web-ui.md) are; none: nowhere", default=None
    )
    web_ui: Flag = described(
        "whether there is a page at `/`; without a token only on a loopback address", default=True, formerly="page"
    )
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
class Log:
    """How log lines look, and which are written."""

    format: Literal["auto", "json", "pretty"] = described("`auto` is pretty on a terminal, else JSON", default="auto")
    level: Literal["debug", "info", "warning", "error"] = described(
        "from which level on lines are written; `debug` follows every connection: who it is, each request's API, "
        "version and size, each answer's codes, what holds it up, who ends it; never a payload or a secret",
        default="info",
    )
    client_id: Text | None = described(
        "follow only the connections of this client id, whatever `log.level` says", default=None, formerly="client"
    )

    @property
    def follows_connections(self) -> bool:
        """Whether there are lines of level debug at all: connections' are the only ones."""
        return self.level == "debug" or self.client_id is not None


@section
class Config:
    """The whole file. `topics` holds those of `topic_files` too, after the file's own."""

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
        "[Violation events](violations.md), one JSON object for each rejected partition.", default=Violations()
    )
    otel: Otel | None = described(
        "[OpenTelemetry](how-to/opentelemetry.md): metrics and traces by OTLP over HTTP. Needs `pip install "
        "'sluicegate[otel]'`. Absent: none.",
        default=None,
    )
    limits: Limits = described(
        "What any client can make the proxy hold or do. What goes beyond is rejected, with the key's name.",
        default=Limits(),
    )
    log: Log = described("Log lines.", default=Log())
    on_internal_error: Literal["close", "forward"] = described(
        "what becomes of a Produce request that cannot be validated because sluicegate itself fails: its connection is "
        "closed (`close`), or it is forwarded as it came, and told (`forward`)",
        default="close",
        formerly="on.internal.error",
    )
    drain_timeout_seconds: Seconds = described(
        "after SIGTERM: accept nothing, let what is in flight finish, at most this long",
        default=30,
        formerly="drain_seconds",
    )
    workers: Workers = described(
        "processes that share the ports and the work (SO_REUSEPORT), one admin endpoint, metrics summed; one that "
        "dies is started again and counted (`sluicegate_worker_restarts_total`)",
        default=1,
    )
    topic_files: TopicFiles = described(
        "further files with entries of `topics`, names or globs, as `policies/*.yaml`, relative to this file; they "
        "stand behind its own, file by file in the order of their names ([policy files](policy-files.md))",
        default=(),
        formerly="topics_from",
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
                raise ValueError(f"upstream.brokers: {words}; change listen.broker_port_base")

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
            max_buffered_bytes=max(limits.max_frame_bytes, limits.max_buffered_bytes // self.workers),
            max_quarantined_bytes=max(1, limits.max_quarantined_bytes // self.workers),
            max_in_flight_total=share_of(limits.max_in_flight_total),
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
