"""Defines the configuration file: every key with its default, bounds and description. Immutable once read.

Keys with dots have Kafka's names and the same meaning as on a broker.
"""

import socket
from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import AfterValidator

from sluicegate.config.dead_letter_topics import MappedDeadLetters
from sluicegate.config.files.source import Path
from sluicegate.config.limits import Limits
from sluicegate.config.listen import Listen
from sluicegate.config.mistakes import Mistake, raise_all
from sluicegate.config.otel import Otel
from sluicegate.config.quotas import Quota, check_quota_names
from sluicegate.config.registries import Registry
from sluicegate.config.requests import Exempt, RequestRule, check_request_names
from sluicegate.config.section import described, section
from sluicegate.config.state import StateTopics
from sluicegate.config.teams import ClientOwner, ContractFiles, Floor, TopicFiles
from sluicegate.config.topic_policies import TopicPolicies
from sluicegate.config.topics import Topic, TopicKeys
from sluicegate.config.upstream import Upstream
from sluicegate.config.values.address import HostPort
from sluicegate.config.values.kinds import (
    FILE_VERSION,
    LEAVE_OUT,
    OFF,
    ON,
    Bytes,
    FileName,
    FileVersion,
    Flag,
    ListenAddress,
    Names,
    NoneOrMore,
    OneOrMore,
    Seconds,
    Secret,
    Text,
    TopicName,
    Workers,
    WrittenFileName,
)
from sluicegate.config.values.password import Password, check_one_source
from sluicegate.config.written_topics import mistakes_in_written_topics

# Keys that take effect on a reload. Changes to all other keys need a restart.
POLICIES = frozenset(
    {
        "client_owners",
        "contracts",
        "dead_letter_topics",
        "defaults",
        "exempt",
        "floor",
        "quotas",
        "registries",
        "requests",
        "topic_files",
        "topic_policies",
        "topics",
    }
)


_MOST_LETTER_TOPICS = 20


@section
class Admin:
    """The admin endpoint: /metrics, /livez, /readyz and the web UI."""

    listen: ListenAddress | None = described(
        "The address of `/metrics`, `/livez`, `/readyz` and the [web UI](web-ui.md). Default: no admin endpoint.",
        default=None,
    )
    web_ui: Flag = described(
        "Whether the web UI is served at `/`. Without a token it is served only on a loopback address.",
        default=True,
        formerly="page",
    )
    token: Secret | None = described(
        "The token for the web UI. `/metrics`, `/livez` and `/readyz` need no token.",
        default=None,
    )
    token_file: FileName | None = described(
        "The file with the token, instead of `token`. The proxy reads it for each request.", default=None
    )
    dead_letters: Names = described(
        "The topics of dead letters that the web UI shows, at most 20. The proxy reads them with its own login when "
        "somebody opens the view ([dead letters](web-ui.md#dead-letters)). Needs `pip install 'sluicegate[topic]'`. "
        "Default: no topics.",
        default=(),
    )

    def __post_init__(self) -> None:
        check_one_source("admin.token", self.token, self.token_file)
        if len(self.dead_letters) > _MOST_LETTER_TOPICS:
            raise ValueError(f"admin.dead_letters names at most {_MOST_LETTER_TOPICS} topics")

    @property
    def web_ui_token(self) -> Password | None:
        """Return the web UI's token, or None if there is none."""
        if self.token is None and self.token_file is None:
            return None
        return Password("admin.token_file", self.token, self.token_file)


@section
class Violations:
    """The destination of violation events: a file, a topic of the cluster, or both. Without one, events are only
    logged.
    """

    file: WrittenFileName | None = described(
        "The file to which events are written. A relative path is relative to the working directory, which must be "
        "writable (a volume, if the root file system is read-only). Default: events are only logged.",
        default=None,
        corrections=dict.fromkeys(ON, "violations.jsonl") | dict.fromkeys(OFF, LEAVE_OUT),
        misnomers={"path": "file: {value}"},
    )
    topic: TopicName | None = described(
        "The topic in the upstream cluster to which events are written, in addition to or instead of the file. "
        "Needs `pip install 'sluicegate[topic]'`. Default: no topic.",
        default=None,
        corrections=dict.fromkeys(ON, "sluicegate-violations") | dict.fromkeys(OFF, LEAVE_OUT),
    )
    format: Literal["json", "cloudevents"] = described(
        "The format of events: `json` writes the event itself, `cloudevents` writes it in the JSON format of "
        "CloudEvents 1.0.",
        default="json",
    )
    max_file_bytes: Bytes = described(
        "The size at which the file is renamed to `NAME.1`. The renamed file replaces the previous one.",
        default=1 << 30,
    )
    max_records: NoneOrMore = described("The maximum number of bad records that one event lists.", default=10)
    queue_size: OneOrMore = described(
        "The maximum number of events that wait to be written. Further events are dropped and counted.", default=10_000
    )

    @property
    def has_destination(self) -> bool:
        """Return whether events are written to a file or a topic."""
        return self.file is not None or self.topic is not None


@section
class Log:
    """The format and level of log lines."""

    format: Literal["auto", "json", "pretty"] = described(
        "The log format. `auto` is `pretty` on a terminal, otherwise `json`.", default="auto"
    )
    level: Literal["debug", "info", "warning", "error"] = described(
        "The lowest level that is logged. `debug` traces every connection: its client, each request's API, version "
        "and size, the error codes of responses, pauses, and the side that closed it. No level logs a payload or a "
        "secret.",
        default="info",
    )
    client_id: Text | None = described(
        "The client id whose connections are traced at any `log.level`.", default=None, formerly="client"
    )

    @property
    def follows_connections(self) -> bool:
        """Return whether connections are traced, which is the only use of level debug."""
        return self.level == "debug" or self.client_id is not None


@section
class Config:
    """The whole file. `topics` also contains the entries of `topic_files`, after the file's own."""

    upstream: Upstream = described("The cluster behind the proxy.")
    listen: Listen = described("The addresses on which clients connect.")
    admin: Admin = described("The admin endpoint.", default=Admin())
    defaults: TopicKeys = described(
        "Default values for all topics. The default `none` means a broker's default: CreateTime, 9223372036854775807 "
        "for both time bounds, delete, and the broker's `max.message.bytes`. The other defaults are `checks: all` and "
        "`mode: reject`.",
        default=TopicKeys(),
    )
    floor: tuple[Floor, ...] = described(
        "Policies that no entry of `topics` can weaken, in any file. For each key, the stricter "
        "value applies. The first entry with a pattern that matches the topic name applies "
        "([policy files](policy-files.md#the-floor)).",
        default=(),
    )
    topics: tuple[Topic, ...] = described(
        "The first entry with a pattern that matches the whole topic name applies; keys that it does not set come "
        "from `defaults`.",
        default=(),
    )
    requests: Annotated[tuple[RequestRule, ...], AfterValidator(check_request_names)] = described(
        "Rules about Produce requests and their clients ([rules](rules.md#rules-about-requests)). Every matching rule "
        "applies.",
        default=(),
    )
    exempt: tuple[Exempt, ...] = described(
        "Clients that are not validated. No rule and no bound applies to them except the broker's own "
        "([policies](policies.md#clients-that-are-exempt)).",
        default=(),
    )
    quotas: Annotated[tuple[Quota, ...], AfterValidator(check_quota_names)] = described(
        "The rates of Produce requests for each client or topic, and the number of connections for each client "
        "([quotas](quotas.md)). The first matching quota applies, for the client and for the topic.",
        default=(),
    )
    registries: dict[Text, Registry] = described("Schema registries, by the name that rules use.", default_factory=dict)
    violations: Violations = described(
        "[Violation events](violations.md), one JSON object for each batch with a violation.", default=Violations()
    )
    otel: Otel | None = described(
        "[OpenTelemetry](how-to/opentelemetry.md): metrics and traces by OTLP over HTTP. Needs `pip install "
        "'sluicegate[otel]'`. Default: none.",
        default=None,
    )
    state: StateTopics | None = described(
        "The topics through which the proxies of one cluster share their suspensions "
        "([shared state](shared-state.md)). Default: each proxy has its own.",
        default=None,
    )
    limits: Limits = described(
        "Limits on the memory, time and connections that clients can use. Errors name the key.",
        default=Limits(),
    )
    log: Log = described("The format and the level of log lines.", default=Log())
    on_internal_error: Literal["close", "forward"] = described(
        "What happens to a Produce request that cannot be validated because of a bug in sluicegate: `close` closes "
        "the connection, `forward` forwards the request unvalidated and logs it.",
        default="close",
        formerly="on.internal.error",
    )
    drain_timeout_seconds: Seconds = described(
        "The time that requests in flight have to finish after SIGTERM. The proxy accepts no new connections during "
        "it.",
        default=30,
        formerly="drain_seconds",
    )
    workers: Workers = described(
        "The number of worker processes. They share the ports (SO_REUSEPORT), one admin endpoint and summed "
        "metrics. A worker that dies is restarted and counted (`sluicegate_worker_restarts_total`).",
        default=1,
    )
    version: FileVersion = described(
        "The version of this file's format. A sluicegate that is too old for the version reports this, instead of "
        "unknown keys ([upgrade](how-to/upgrade.md)).",
        default=FILE_VERSION,
    )
    topic_files: TopicFiles = described(
        "Further files with entries of `topics`. Their entries are appended to the entries of this file, in the "
        "order of file names ([policy files](policy-files.md)). An item is a section, or only its `path`, for "
        "example `policies/*.yaml`.",
        default=(),
        formerly="topics_from",
    )

    topic_policies: tuple[TopicPolicies, ...] = described(
        "The keys of policies that the owners of topics set in the cluster, as topic settings with the prefix "
        "`sluicegate.` ([policies as topic settings](topic-policies.md)). Needs `state`. Default: none.",
        default=(),
    )

    contracts: ContractFiles = described(
        "Data contracts (Open Data Contract Standard 3; AsyncAPI 2 and 3), which add rules and an owner to their "
        "topics ([data contracts](how-to/data-contracts.md)). An item is a section, or only its `path`, for example "
        "`contracts/*.odcs.yaml`. Needs `pip install 'sluicegate[rules]'`.",
        default=(),
    )

    client_owners: tuple[ClientOwner, ...] = described(
        "The owners of clients, by principal or client id. A violation of a topic without an owner names the owner "
        "of the client.",
        default=(),
    )

    dead_letter_topics: tuple[MappedDeadLetters, ...] = described(
        "Topics of dead letters whose writer `sluicegate dead-letters` does not know, with the meaning of their "
        "headers ([dead letters](dead-letters.md#topics-of-other-writers)). The first entry with a pattern that "
        "matches applies. The proxy does not use it.",
        default=(),
    )

    def check(self) -> None:
        """Check rules that involve several sections. Raises ValueError."""
        written_topics = mistakes_in_written_topics(self.topics, self.violations.topic, self.state)
        raise_all([*self._unknown_registries(), *self._rules_with_names_of_the_floor(), *written_topics])
        if self.topic_policies and self.state is None:
            raise ValueError("topic_policies: topic settings are kept in the topic of state; add state: {topic: ...}")
        if self.workers > 1 and not hasattr(socket, "SO_REUSEPORT"):
            raise ValueError("workers: several workers need SO_REUSEPORT, which this system does not have")
        self._check_brokers()

    def sections_with_rules(self) -> Iterator[tuple[Path, TopicKeys | Floor]]:
        """Yield `defaults`, each entry of `topics` and each of `floor`, with its path."""
        yield ("defaults",), self.defaults
        yield from ((("topics", i), topic) for i, topic in enumerate(self.topics))
        yield from ((("floor", i), floor) for i, floor in enumerate(self.floor))

    def _rules_with_names_of_the_floor(self) -> Iterator[Mistake]:
        """Yield each topic rule with the name of a floor rule, because both may apply to the same topic."""
        taken = {rule.name: i for i, floor in reversed(list(enumerate(self.floor))) for rule in floor.rules or ()}
        for path, keys in self.sections_with_rules() if taken else ():
            for i, rule in enumerate(keys.rules or ()):
                if rule.name in taken and path[0] != "floor":
                    words = f"a rule of floor[{taken[rule.name]}] is named {rule.name} too; names must be unique"
                    yield (*path, "rules", i, "name"), words

    def _unknown_registries(self) -> Iterator[Mistake]:
        known = ", ".join(self.registries) or "none"
        for path, keys in self.sections_with_rules():
            for i, rule in enumerate(keys.rules or ()):
                for side, content in (("key", rule.key), ("value", rule.value)):
                    named = None if content is None or content.schema_ is None else content.schema_.registry
                    if named is not None and named not in self.registries:
                        words = f"rule {rule.name} uses registry {named}, and registries has {known}"
                        yield (*path, "rules", i, side, "schema", "registry"), words
            for i, fields in enumerate(getattr(keys, "sensitive", None) or ()):
                named = None if fields.schema_ is None else fields.schema_.registry
                if named is not None and named not in self.registries:
                    words = f"sensitive fields {fields.name} use registry {named}, and registries has {known}"
                    yield (*path, "sensitive", i, "schema", "registry"), words

    def _check_brokers(self) -> None:
        """Check that each named broker can have an address for clients. Raises ValueError."""
        named = {
            "upstream.brokers": tuple(self.upstream.brokers),
            "listen.broker_port_map": tuple(self.listen.broker_port_map),
        }
        for key, brokers in named.items():
            for node_id in brokers:
                unavailable = self.why_no_client_address(node_id)
                if unavailable is not None:
                    raise ValueError(f"{key}: {'; '.join(unavailable)}")

    def why_no_client_address(self, node_id: int) -> tuple[str, str] | None:
        """Return why broker `node_id` can have no address for clients, and the remedy. Return None if it can."""
        listen, admin = self.listen, self.admin.listen
        unavailable = listen.why_no_client_address(node_id)
        if unavailable is not None or listen.broker_host is not None:
            return unavailable
        taken = {listen.bootstrap.port: "listen.bootstrap"}
        if admin is not None and admin.host == listen.bootstrap.host:
            taken[admin.port] = "admin.listen"
        port = listen.port_of(node_id)
        if port not in taken:
            return None
        return (
            f"broker {node_id} would need port {port}, which {taken[port]} already uses",
            "change listen.broker_port_base or listen.broker_port_map",
        )

    def with_policies_of(self, other: "Config") -> "Config":
        """Return this configuration with the policies of another one."""
        return replace(self, **{key: getattr(other, key) for key in POLICIES})

    def of_one_worker(self, bootstrap: HostPort) -> "Config":
        """Return one worker's configuration, with its share of each limit and without the supervisor's tasks."""
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
        """Return one worker's share of a limit, rounded up, or None if there is no limit."""
        return None if bound is None else -(-bound // self.workers)
