"""The sections `defaults` and `topics`: bounds and rules for topics, and what happens to batches that violate them.

Keys with Kafka's names, dots included, mean the same as on a broker.
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

STRICTNESS_OF_MODE = {"observe": 0, "mark": 1, "reject": 2, "quarantine": 2}  # quarantine rejects too
STRICTNESS_OF_FRAMING = {"broker": 0, "safe": 1, "strict": 2}

_CLEANUP = ("compact", "delete", "compact,delete", "delete,compact")


def _known_cleanup(value: str) -> str:
    if not set(value.replace(" ", "").split(",")) <= set(_CLEANUP[:2]):
        raise ValueError(f"expected compact, delete or compact,delete; found {value!r}")
    return value


CleanupPolicy = Annotated[str, AfterValidator(_known_cleanup), schema.schema_note({"enum": list(_CLEANUP)})]


@section
class Rehearse:
    """Rehearsed bounds: not in force; the records that each would reject are counted."""

    before_max_ms: Candidates = described(
        "bounds for the age of a record's timestamp", name="message.timestamp.before.max.ms", default=()
    )
    after_max_ms: Candidates = described(
        "bounds for how far a record's timestamp may be in the future",
        name="message.timestamp.after.max.ms",
        default=(),
    )

    def __post_init__(self) -> None:
        if not self.before_max_ms and not self.after_max_ms:
            raise ValueError("expected a bound to rehearse, as message.timestamp.after.max.ms: [1m, 1h]")


@section
class Fix:
    """Violations to fix instead of rejecting."""

    timestamp: Literal["now", "clamp", "previous", "unit"] = described(
        "replacement for a timestamp out of bounds: the current time (`now`), the nearest within bounds (`clamp`), "
        "the latest valid timestamp of its partition (`previous`), or the same time in milliseconds if it is plausible "
        "in seconds, micro- or nanoseconds (`unit`; bounds of at most ten years)"
    )


@section
class Enforce:
    """The clients that a policy is enforced for. The batches of other clients are observed."""

    clients: Patterns | None = described(
        "patterns of client ids",
        default=None,
        misnomers=dict.fromkeys(("client_id", "client_ids"), "clients: [{value}]"),
    )
    percent: Percent | None = described(
        "share of clients, from 0 to 100, chosen by a hash of the client id: a larger share includes the clients of a "
        "smaller one",
        default=None,
    )

    def __post_init__(self) -> None:
        if (self.clients is None) == (self.percent is None):
            raise ValueError("expected clients: [billing-*] or percent: 10, one of the two")


@section
class TopicKeys:
    """Kafka's topic configurations, then keys of the proxy. Keys that are not set are inherited from `defaults`.

    An entry's `rules` replace those in `defaults`, as every key does.
    """

    timestamp_type: Literal["CreateTime", "LogAppendTime"] | None = described(
        "source of record timestamps: the producer (`CreateTime`) or the broker (`LogAppendTime`)",
        name="message.timestamp.type",
        default=None,
    )
    before_max_ms: TimeBound | None = described(
        "maximum age of a record's timestamp (KIP-937)", name="message.timestamp.before.max.ms", default=None
    )
    after_max_ms: TimeBound | None = described(
        "maximum distance of a record's timestamp into the future (KIP-937)",
        name="message.timestamp.after.max.ms",
        default=None,
    )
    difference_max_ms: TimeBound | None = described(
        "deprecated (KIP-937): default of the two keys above if they are not set; logs a warning",
        name="message.timestamp.difference.max.ms",
        default=None,
    )
    cleanup_policy: CleanupPolicy | None = described(
        "`compact`, `delete` or `compact,delete`; records of a compacted topic need a key",
        name="cleanup.policy",
        default=None,
    )
    max_message_bytes: SizeBound | None = described("size of the largest batch", name="max.message.bytes", default=None)
    checks: Literal["all", "none"] | None = described(
        "whether batches are validated; `none` forwards them unvalidated",
        default=None,
        corrections=dict.fromkeys(OFF, "none") | dict.fromkeys(ON, "all"),
    )
    mode: Literal["reject", "observe", "mark"] | None = described(
        "handling of a batch with violations: `reject` returns a broker's error, `observe` reports the violations "
        "and forwards the batch unchanged, `mark` forwards it with headers on its bad records "
        "([policies](policies.md)); `mark` excludes `fix` and `quarantine`",
        default=None,
        corrections=dict.fromkeys((*OFF, "none", "disabled", "skip"), "checks: none") | MODES,
    )
    enforce: Enforce | None = described(
        "Gradual enforcement: batches with violations of these clients are handled as `mode` and the other keys say; "
        "those of all other clients are reported and forwarded unchanged, as with `mode: observe` "
        "([policies](policies.md)). Default: all clients.",
        default=None,
    )
    framing: Literal["safe", "strict", "broker"] | None = described(
        "handling of batches that consumers read differently than brokers: `safe` rejects batches of which clients "
        "would read other records than were validated, and reports batches that some clients cannot read; `strict` "
        "rejects both; `broker` checks neither ([framing](framing.md))",
        default=None,
    )
    rehearse: Rehearse | None = described(
        "Rehearsed bounds: not in force; the records and batches that each would reject are counted "
        "([policies](policies.md)).",
        default=None,
    )
    fix: Fix | None = described(
        "Violations to fix instead of rejecting, in batches that can be parsed completely ([policies](policies.md)).",
        default=None,
    )
    rules: Annotated[tuple[Rule, ...], AfterValidator(check_names)] | None = described(
        "Rules about records beyond a broker's checks ([policies](policies.md)), applied in this order. An entry's "
        "list replaces the list in `defaults`.",
        default=None,
    )
    samples: Flag | None = described(
        "whether events contain the first 256 bytes of bad records' keys and values ([policies](policies.md))",
        default=None,
    )
    sensitive: Annotated[tuple[SensitiveFields, ...], AfterValidator(check_names_of_fields)] | None = described(
        "Fields that are masked, hashed or rejected before a batch is stored "
        "([policies](policies.md#sensitive-fields)). They apply in every mode, to all clients, and during a "
        "suspension. Excludes `samples`, `quarantine`, `checks: none` and `framing: broker`; `framing` is `strict`.",
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
        "topic name, glob (only `*`, `?` and `[…]` are special; a dot is a literal dot), or regular expression between "
        "slashes (RE2 syntax)",
        misnomers=dict.fromkeys(("name", "topic", "pattern", "topics"), "match: {value}"),
    )
    quarantine: TopicName | None = described(
        "dead-letter topic; bad records are written there before their batch is rejected, or, with `mode: observe` in "
        "the same entry, before it is forwarded unchanged ([policies](policies.md)); excludes `fix`. Needs "
        "`pip install 'sluicegate[topic]'`",
        default=None,
        corrections=dict.fromkeys(ON, "orders-dead-letters") | dict.fromkeys(OFF, LEAVE_OUT),
        misnomers=dict.fromkeys(("dead_letter_topic", "dead_letter", "dlq"), "quarantine: {value}"),
    )

    def __post_init__(self) -> None:
        if self.mode == "mark":
            others = {"fix": self.fix, "quarantine": self.quarantine, "checks: none": self.checks == "none"}
            raise_all(
                ((), f"mode: mark and {other} exclude each other: only batches that are forwarded are marked")
                for other, is_given in others.items()
                if is_given
            )
        if self.quarantine is not None:
            others = {"fix": self.fix, "checks: none": self.checks == "none"}
            raise_all(
                ((), f"quarantine and {other} exclude each other: only records with violations are quarantined")
                for other, is_given in others.items()
                if is_given
            )
