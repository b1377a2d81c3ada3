"""The sections `defaults` and `topics`: bounds and rules for topics, and what happens to batches that violate them.

Keys with Kafka's names, dots included, have the same meaning as on a broker.
"""

from typing import Annotated, Literal

from pydantic import AfterValidator

from sluicegate.config.mistakes import raise_all
from sluicegate.config.rules import Rule, check_names
from sluicegate.config.section import described, section
from sluicegate.config.sensitive import SensitiveFields, check_names_of_fields
from sluicegate.config.teams import Owner
from sluicegate.config.values import json_schema_kinds as schema
from sluicegate.config.values.kinds import (
    LEAVE_OUT,
    MODES,
    OFF,
    ON,
    Candidates,
    Flag,
    Patterns,
    Percent,
    SizeBound,
    TimeBound,
    TopicName,
    TopicPattern,
)

STRICTNESS_OF_MODE = {"observe": 0, "mark": 1, "reject": 2, "quarantine": 2}  # quarantine also rejects
STRICTNESS_OF_FRAMING = {"broker": 0, "safe": 1, "strict": 2}

_CLEANUP = ("compact", "delete", "compact,delete", "delete,compact")


def _known_cleanup(value: str) -> str:
    if not set(value.replace(" ", "").split(",")) <= set(_CLEANUP[:2]):
        raise ValueError(f"expected compact, delete or compact,delete; found {value!r}")
    return value


CleanupPolicy = Annotated[str, AfterValidator(_known_cleanup), schema.schema_note({"enum": list(_CLEANUP)})]


@section
class Rehearse:
    """Rehearsed bounds. They are not enforced: the proxy counts the records that each would reject."""

    before_max_ms: Candidates = described(
        "Rehearsed values of `message.timestamp.before.max.ms`.", name="message.timestamp.before.max.ms", default=()
    )
    after_max_ms: Candidates = described(
        "Rehearsed values of `message.timestamp.after.max.ms`.",
        name="message.timestamp.after.max.ms",
        default=(),
    )

    def __post_init__(self) -> None:
        if not self.before_max_ms and not self.after_max_ms:
            raise ValueError("expected a bound to rehearse, such as message.timestamp.after.max.ms: [1m, 1h]")


@section
class Fix:
    """The violations that the proxy fixes instead of rejecting them."""

    timestamp: Literal["now", "clamp", "previous", "unit"] = described(
        "The replacement for a timestamp out of bounds: the current time (`now`), the nearest time within bounds "
        "(`clamp`), the latest valid timestamp of its partition (`previous`), or the same time in milliseconds if "
        "the value is plausible in seconds, microseconds or nanoseconds (`unit`; bounds of at most ten years)."
    )


@section
class Enforce:
    """The clients for which a policy is enforced. The batches of other clients are only observed."""

    clients: Patterns | None = described(
        "Patterns of client ids.",
        default=None,
        misnomers=dict.fromkeys(("client_id", "client_ids"), "clients: [{value}]"),
    )
    percent: Percent | None = described(
        "The percentage of clients, chosen by a hash of the client id. If you increase it, all clients that were "
        "chosen before stay chosen.",
        default=None,
    )

    def __post_init__(self) -> None:
        if (self.clients is None) == (self.percent is None):
            raise ValueError("expected clients: [billing-*] or percent: 10, one of the two")


@section
class TopicKeys:
    """Kafka's topic configurations, then keys of the proxy. Keys that are not set are inherited from `defaults`.

    An entry's `rules` replace those in `defaults`, as any key of an entry replaces that of `defaults`.
    """

    timestamp_type: Literal["CreateTime", "LogAppendTime"] | None = described(
        "The source of record timestamps: the producer (`CreateTime`) or the broker (`LogAppendTime`).",
        name="message.timestamp.type",
        default=None,
    )
    before_max_ms: TimeBound | None = described(
        "The maximum age of a record's timestamp (KIP-937).", name="message.timestamp.before.max.ms", default=None
    )
    after_max_ms: TimeBound | None = described(
        "The maximum time by which a record's timestamp may be in the future (KIP-937).",
        name="message.timestamp.after.max.ms",
        default=None,
    )
    difference_max_ms: TimeBound | None = described(
        "Deprecated (KIP-937). The value of `message.timestamp.before.max.ms` and `message.timestamp.after.max.ms` "
        "if they are not set. The proxy logs a warning.",
        name="message.timestamp.difference.max.ms",
        default=None,
    )
    cleanup_policy: CleanupPolicy | None = described(
        "The cleanup policy of the topic: `compact`, `delete` or `compact,delete`. Records of a compacted topic "
        "need a key.",
        name="cleanup.policy",
        default=None,
    )
    max_message_bytes: SizeBound | None = described(
        "The maximum size of a batch.", name="max.message.bytes", default=None
    )
    checks: Literal["all", "none"] | None = described(
        "Whether batches are validated. `none` forwards them unvalidated.",
        default=None,
        corrections=dict.fromkeys(OFF, "none") | dict.fromkeys(ON, "all"),
    )
    mode: Literal["reject", "observe", "mark"] | None = described(
        "What happens to a batch with violations: `reject` returns a broker's error, `observe` reports the "
        "violations and forwards the batch unchanged, `mark` forwards the batch with headers on its bad records "
        "([policies](policies.md#modes)). `mark` cannot be combined with `fix` or `quarantine`.",
        default=None,
        corrections=dict.fromkeys((*OFF, "none", "disabled", "skip"), "checks: none") | MODES,
    )
    enforce: Enforce | None = described(
        "The clients for which `mode` and the other keys are enforced. Violations of all other clients are "
        "reported, and their batches forwarded unchanged, as with `mode: observe` "
        "([policies](policies.md#gradual-enforcement)). Default: all clients.",
        default=None,
    )
    framing: Literal["safe", "strict", "broker"] | None = described(
        "What happens to batches that consumers read differently than brokers. `safe` rejects batches in which "
        "clients would read other records than the validated ones, and reports batches that some clients cannot "
        "read. `strict` rejects both. `broker` checks neither ([framing](framing.md)).",
        default=None,
    )
    rehearse: Rehearse | None = described(
        "Bounds that are rehearsed. They are not enforced: the proxy counts the records and batches that each would "
        "reject ([bad records](bad-records.md#rehearsed-bounds)).",
        default=None,
    )
    fix: Fix | None = described(
        "The violations that the proxy fixes instead of rejecting them, in batches that it can parse completely "
        "([bad records](bad-records.md#fixing-timestamps)).",
        default=None,
    )
    rules: Annotated[tuple[Rule, ...], AfterValidator(check_names)] | None = described(
        "Rules about records beyond a broker's checks ([rules](rules.md)), applied in this order. An entry's "
        "list replaces the list in `defaults`.",
        default=None,
    )
    samples: Flag | None = described(
        "Whether events contain the first 256 bytes of the keys and values of bad records "
        "([bad records](bad-records.md#samples-of-bad-records)).",
        default=None,
    )
    sensitive: Annotated[tuple[SensitiveFields, ...], AfterValidator(check_names_of_fields)] | None = described(
        "Fields that are masked, hashed or rejected before a batch is stored "
        "([sensitive fields](sensitive-fields.md)). They apply in every mode, to all clients, and during a "
        "suspension. They cannot be combined with `samples`, `quarantine`, `checks: none` or `framing: broker`, and "
        "they set `framing` to `strict`.",
        default=None,
    )
    owner: Owner | None = described(
        "The team that owns the topics, in violation events, metrics and reports "
        "([policy files](policy-files.md#owners)).",
        default=None,
    )


@section
class Topic(TopicKeys):
    """Settings for the topics with a matching name."""

    match: TopicPattern = described(
        "A topic name, a glob, or a regular expression between slashes (RE2 syntax). In a glob only `*`, `?` and "
        "`[…]` are special, and a dot is a literal dot.",
        misnomers=dict.fromkeys(("name", "topic", "pattern", "topics"), "match: {value}"),
    )
    quarantine: TopicName | None = described(
        "The dead-letter topic. Bad records are written to it before their batch is rejected or, with `mode: "
        "observe` in the same entry, before the batch is forwarded unchanged "
        "([bad records](bad-records.md#quarantine)). Cannot be combined with `fix`. Needs `pip install "
        "'sluicegate[topic]'`.",
        default=None,
        corrections=dict.fromkeys(ON, "orders-dead-letters") | dict.fromkeys(OFF, LEAVE_OUT),
        misnomers=dict.fromkeys(("dead_letter_topic", "dead_letter", "dlq"), "quarantine: {value}"),
    )

    def __post_init__(self) -> None:
        if self.mode == "mark":
            others = {"fix": self.fix, "quarantine": self.quarantine, "checks: none": self.checks == "none"}
            raise_all(
                ((), f"mode: mark and {other} cannot be combined: only batches that are forwarded are marked")
                for other, is_given in others.items()
                if is_given
            )
        if self.quarantine is not None:
            others = {"fix": self.fix, "checks: none": self.checks == "none"}
            raise_all(
                ((), f"quarantine and {other} cannot be combined: only records with violations are quarantined")
                for other, is_given in others.items()
                if is_given
            )
