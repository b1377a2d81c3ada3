"""What the file says of topics: what their batches are held to, and what becomes of those that break it.

Keys that carry Kafka's own names, dots and all, mean what they mean on a broker.
"""

from typing import Annotated, Literal

from pydantic import AfterValidator

from sluicegate.config.reference import json_schema_kinds as schema
from sluicegate.config.rules import Rule, check_names
from sluicegate.config.section import described, section
from sluicegate.config.values.kinds import Bytes, Candidates, Flag, Milliseconds, Pattern, TopicName

_CLEANUP = ("compact", "delete", "compact,delete", "delete,compact")


def _known_cleanup(value: str) -> str:
    if not set(value.replace(" ", "").split(",")) <= set(_CLEANUP[:2]):
        raise ValueError(f"expected compact, delete or compact,delete; found {value!r}")
    return value


CleanupPolicy = Annotated[str, AfterValidator(_known_cleanup), schema.told({"enum": list(_CLEANUP)})]


@section
class Rehearse:
    """Bounds that are not in force: what each of them would reject is counted."""

    before_max_ms: Candidates = described(
        "bounds for how far a record's time may lie behind now", name="message.timestamp.before.max.ms", default=()
    )
    after_max_ms: Candidates = described(
        "bounds for how far a record's time may lie ahead of now", name="message.timestamp.after.max.ms", default=()
    )

    def __post_init__(self) -> None:
        if not self.before_max_ms and not self.after_max_ms:
            raise ValueError("expected a bound to rehearse, as message.timestamp.after.max.ms: [1m, 1h]")


@section
class Fix:
    """What is put right instead of rejected."""

    timestamp: Literal["now", "clamp", "previous", "unit"] = described(
        "what a time that breaks a bound becomes: `now`, the nearest that keeps it (`clamp`), the latest good one "
        "of its partition (`previous`), or itself in milliseconds where it is plausible in seconds, micro- or "
        "nanoseconds (`unit`: bounds are ten years at most then)"
    )


@section
class TopicKeys:
    """What a validation depends on, Kafka's topic settings first; what is not given is inherited from `defaults`.

    An entry's `rules` replace those in `defaults`, as every key does.
    """

    timestamp_type: Literal["CreateTime", "LogAppendTime"] | None = described(
        "who sets a record's time", name="message.timestamp.type", default=None
    )
    before_max_ms: Milliseconds | None = described(
        "how far a record's time may lie behind now (KIP-937)", name="message.timestamp.before.max.ms", default=None
    )
    after_max_ms: Milliseconds | None = described(
        "how far a record's time may lie ahead of now (KIP-937)", name="message.timestamp.after.max.ms", default=None
    )
    difference_max_ms: Milliseconds | None = described(
        "deprecated: stands for each of the two that is not set, with a warning",
        name="message.timestamp.difference.max.ms",
        default=None,
    )
    cleanup_policy: CleanupPolicy | None = described(
        "`compact`, `delete` or `compact,delete`; records of a compacted topic need a key",
        name="cleanup.policy",
        default=None,
    )
    max_message_bytes: Bytes | None = described("the largest batch", name="max.message.bytes", default=None)
    checks: Literal["all", "none"] | None = described("`none` forwards a topic's batches unvalidated", default=None)
    mode: Literal["reject", "observe"] | None = described(
        "what becomes of a batch that is rejected: `reject` answers as a broker would, `observe` forwards it as it "
        "came and only says so ([policies](policies.md))",
        default=None,
    )
    framing: Literal["safe", "strict", "broker"] | None = described(
        "what becomes of batches that brokers store and consumers read otherwise: `safe` rejects those of which "
        "clients would read other records than were validated, and reports those that some clients cannot read; "
        "`strict` rejects both; `broker` looks for neither ([framing](framing.md))",
        default=None,
    )
    rehearse: Rehearse | None = described(
        "Bounds that are not in force: how many records and batches each of them would reject is counted "
        "([policies](policies.md)).",
        default=None,
    )
    fix: Fix | None = described(
        "What is put right instead of rejected, where the whole batch is understood ([policies](policies.md)).",
        default=None,
    )
    rules: Annotated[tuple[Rule, ...], AfterValidator(check_names)] | None = described(
        "What is asked of records beyond what a broker asks ([policies](policies.md)), in this order. An entry's "
        "list stands in the place of that in `defaults`.",
        default=None,
    )
    samples: Flag | None = described(
        "`true`: violation events show the beginning of bad records' keys and values, at most 256 bytes each "
        "([policies](policies.md)); else nothing of them",
        default=None,
    )


@section
class Topic(TopicKeys):
    """Settings for the topics whose whole name matches."""

    match: Pattern = described(
        "a glob, in which only `*`, `?` and `[…]` are special (a dot is a dot), or a regular expression between "
        "slashes, in RE2's syntax"
    )
    quarantine: TopicName | None = described(
        "a topic that the bad records of rejected batches are written to before the batch is answered "
        "([policies](policies.md)); excludes `mode: observe` and `fix`. Needs `pip install 'sluicegate[topic]'`",
        default=None,
    )

    def __post_init__(self) -> None:
        if self.quarantine is not None:
            others = {"mode: observe": self.mode == "observe", "fix": self.fix, "checks: none": self.checks == "none"}
            for other in (key for key, is_given in others.items() if is_given):
                raise ValueError(f"quarantine and {other} exclude each other: only what is rejected is quarantined")
