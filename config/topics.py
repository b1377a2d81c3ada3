"""What the file says of topics: what their batches are held to, and what becomes of those that break it.

Keys that carry Kafka's own names, dots and all, mean what they mean on a broker.
"""

from typing import Annotated, Literal

from pydantic import AfterValidator

from sluicegate.config.reference import json_schema_kinds as schema
from sluicegate.config.rules import Rule, check_names
from sluicegate.config.section import named, section
from sluicegate.config.values.kinds import Bytes, Candidates, Flag, Milliseconds, Pattern, TopicName

_CLEANUP = ("compact", "delete", "compact,delete", "delete,compact")


def _known_cleanup(value: str) -> str:
    if not set(value.replace(" ", "").split(",")) <= set(_CLEANUP[:2]):
        raise ValueError(f"expected compact, delete or compact,delete; found {value!r}")
    return value


CleanupPolicy = Annotated[str, AfterValidator(_known_cleanup), schema.told({"enum": list(_CLEANUP)})]


@section
class Rehearse:
    """Bounds that are not in force: what each of them would refuse is counted."""

    before_max_ms: Candidates = named("message.timestamp.before.max.ms", default=())
    after_max_ms: Candidates = named("message.timestamp.after.max.ms", default=())

    def __post_init__(self) -> None:
        if not self.before_max_ms and not self.after_max_ms:
            raise ValueError("expected a bound to rehearse, as message.timestamp.after.max.ms: [1m, 1h]")


@section
class Fix:
    """What is put right instead of refused."""

    timestamp: Literal["now", "clamp", "previous", "unit"]


@section
class TopicKeys:
    """What a judgement depends on, Kafka's topic settings first; what is not given is inherited from `defaults`.

    `checks: none` leaves a topic's batches unjudged; `mode: observe` forwards what would be refused, and says so. An
    entry's `rules` stand in the place of those in `defaults`, as every key does. `samples` shows of bad records what
    they hold. `framing`: what becomes of batches that consumers read otherwise than brokers.
    """

    timestamp_type: Literal["CreateTime", "LogAppendTime"] | None = named("message.timestamp.type", default=None)
    before_max_ms: Milliseconds | None = named("message.timestamp.before.max.ms", default=None)
    after_max_ms: Milliseconds | None = named("message.timestamp.after.max.ms", default=None)
    difference_max_ms: Milliseconds | None = named("message.timestamp.difference.max.ms", default=None)
    cleanup_policy: CleanupPolicy | None = named("cleanup.policy", default=None)
    max_message_bytes: Bytes | None = named("max.message.bytes", default=None)
    checks: Literal["all", "none"] | None = None
    mode: Literal["reject", "observe"] | None = None
    framing: Literal["safe", "strict", "broker"] | None = None
    rehearse: Rehearse | None = None
    fix: Fix | None = None
    rules: Annotated[tuple[Rule, ...], AfterValidator(check_names)] | None = None
    samples: Flag | None = None


@section
class Topic(TopicKeys):
    """Settings for the topics whose whole name matches: a glob, or a regular expression between slashes.

    `quarantine`: where the bad records of refused batches are kept.
    """

    match: Pattern
    quarantine: TopicName | None = None

    def __post_init__(self) -> None:
        if self.quarantine is not None:
            others = {"mode: observe": self.mode == "observe", "fix": self.fix, "checks: none": self.checks == "none"}
            for other in (key for key, is_given in others.items() if is_given):
                raise ValueError(f"quarantine and {other} exclude each other: only what is refused is quarantined")
