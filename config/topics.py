"""What the file says of topics: what their batches are held to, and what becomes of those that break it.

Keys that carry Kafka's own names, dots and all, mean what they mean on a broker.
"""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator

from sluicegate.config import schema_kinds as schema
from sluicegate.config.kinds import Bytes, Candidates, Milliseconds, Text, TopicName
from sluicegate.config.rules import Rule, check_names
from sluicegate.config.section import Section
from sluicegate.config.topic_pattern import regular_expression_of

_CLEANUP = ("compact", "delete", "compact,delete", "delete,compact")


def _known_cleanup(value: str) -> str:
    if not set(value.replace(" ", "").split(",")) <= set(_CLEANUP[:2]):
        raise ValueError(f"expected compact, delete or compact,delete; found {value!r}")
    return value


CleanupPolicy = Annotated[str, AfterValidator(_known_cleanup), schema.told({"enum": list(_CLEANUP)})]


class Rehearse(Section):
    """Bounds that are not in force: what each of them would refuse is counted."""

    before_max_ms: Candidates = Field((), alias="message.timestamp.before.max.ms")
    after_max_ms: Candidates = Field((), alias="message.timestamp.after.max.ms")

    @model_validator(mode="after")
    def _has_any(self) -> "Rehearse":
        if not self.before_max_ms and not self.after_max_ms:
            raise ValueError("expected a bound to rehearse, as message.timestamp.after.max.ms: [1m, 1h]")
        return self


class Fix(Section):
    """What is put right instead of refused."""

    timestamp: Literal["now", "clamp", "previous", "unit"]


class TopicKeys(Section):
    """What a judgement depends on, Kafka's topic settings first; what is not given is inherited from `defaults`.

    `checks: none` leaves a topic's batches unjudged; `mode: observe` forwards what would be refused, and says so. An
    entry's `rules` stand in the place of those in `defaults`, as every key does.
    """

    timestamp_type: Literal["CreateTime", "LogAppendTime"] | None = Field(None, alias="message.timestamp.type")
    before_max_ms: Milliseconds | None = Field(None, alias="message.timestamp.before.max.ms")
    after_max_ms: Milliseconds | None = Field(None, alias="message.timestamp.after.max.ms")
    difference_max_ms: Milliseconds | None = Field(None, alias="message.timestamp.difference.max.ms")
    cleanup_policy: CleanupPolicy | None = Field(None, alias="cleanup.policy")
    max_message_bytes: Bytes | None = Field(None, alias="max.message.bytes")
    checks: Literal["all", "none"] | None = None
    mode: Literal["reject", "observe"] | None = None
    rehearse: Rehearse | None = None
    fix: Fix | None = None
    rules: tuple[Rule, ...] | None = None

    @field_validator("rules")
    @classmethod
    def _named_once(cls, value: tuple[Rule, ...] | None) -> tuple[Rule, ...] | None:
        return check_names(value)


class Topic(TopicKeys):
    """Settings for the topics whose whole name matches: a glob, or a regular expression between slashes.

    `quarantine`: where the bad records of refused batches are kept.
    """

    match: Text
    quarantine: TopicName | None = None

    @field_validator("match")
    @classmethod
    def _compiles(cls, value: str) -> str:
        regular_expression_of(value)
        return value

    @model_validator(mode="after")
    def _does_one_thing(self) -> "Topic":
        if self.quarantine is not None:
            others = {"mode: observe": self.mode == "observe", "fix": self.fix, "checks: none": self.checks == "none"}
            for other in (key for key, is_given in others.items() if is_given):
                raise ValueError(f"quarantine and {other} exclude each other: only what is refused is quarantined")
        return self
