"""The rules for one topic, fixed once from the configuration, and the bounds of every validation."""

from dataclasses import dataclass, field, replace
from enum import Enum

from sluicegate.protocol.integers import LONG_MAX
from sluicegate.validation.requests.quota import Quota
from sluicegate.validation.requests.request_rule import RequestRule
from sluicegate.validation.rules.rule import Mode
from sluicegate.validation.rules.rule_set import RuleSet


class TimestampType(Enum):
    """Who sets a record's time (KIP-32)."""

    CREATE_TIME = "CreateTime"
    LOG_APPEND_TIME = "LogAppendTime"


class Framing(Enum):
    """What becomes of batches that brokers store and that consumers read otherwise, or not at all (docs/framing.md)."""

    SAFE = "safe"  # records that consumers read otherwise are rejected, data that some cannot read is reported
    STRICT = "strict"  # both are rejected
    BROKER = "broker"  # neither is looked for


class Fix(Enum):
    """What a time that breaks a bound becomes."""

    NOW = "now"
    CLAMP = "clamp"  # the nearest that keeps the bound
    PREVIOUS = "previous"  # the latest good one of its partition
    UNIT = "unit"  # what it is in milliseconds, where it is plausible in another unit


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """Bounds that are not in force, ascending (ms): what each would reject is counted."""

    before_max_ms: tuple[int, ...] = ()
    after_max_ms: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TopicPolicy:
    """What a topic accepts, and what becomes of the rest (`mode`).

    `checked`: whether anything is validated at all.
    `before_max_ms`, `after_max_ms`: how far a record's time may lie behind or ahead of the broker's, inclusive, in
    ms (KIP-937). `compacted`: records need a key. `max_message_bytes`: largest batch, None where only the broker
    knows. They mean what Kafka's message.timestamp.*, cleanup.policy and max.message.bytes mean. `dead_letters`: the
    topic that bad records are written to where `mode` is QUARANTINE. `rules` are asked about records that keep all of
    that, `requests` about who sends them and how. `samples`: whether what bad records hold is shown in events.
    `quota`: how much the topic may be sent. `framing`: whether batches that consumers read otherwise than brokers pass.
    """

    timestamp_type: TimestampType = TimestampType.CREATE_TIME
    before_max_ms: int = LONG_MAX
    after_max_ms: int = LONG_MAX
    compacted: bool = False
    max_message_bytes: int | None = None
    checked: bool = True
    mode: Mode = Mode.REJECT
    rehearsed: Rehearsed | None = None
    fix: Fix | None = None
    dead_letters: str | None = None
    rules: RuleSet | None = None
    requests: tuple[RequestRule, ...] = ()
    samples: bool = False
    quota: Quota | None = None
    framing: Framing = Framing.SAFE
    is_plain: bool = field(init=False)

    def __post_init__(self) -> None:
        asks_more = self.rehearsed is not None or self.fix is not None or self.has_rules or self.samples
        object.__setattr__(self, "is_plain", self.mode is not Mode.OBSERVE and not asks_more)

    @property
    def has_rules(self) -> bool:
        """Whether more is asked than a broker would."""
        return self.rules is not None or bool(self.requests)

    @property
    def ordinary(self) -> "TopicPolicy | None":
        """What the fast path may hold batches to, so that whatever keeps it needs no closer look; None: all do."""
        if (
            self.quota is not None
            or self.fix is Fix.PREVIOUS
            or self.requests
            or (self.rules is not None and self.rules.ordinary is None)
        ):
            return None
        return self.narrowest

    @property
    def narrowest(self) -> "TopicPolicy":
        """The same with the narrowest of all bounds, rehearsed ones too: of what keeps these nothing is to be told."""
        rehearsed = self.rehearsed
        if rehearsed is None:
            return self
        return replace(
            self,
            before_max_ms=min(self.before_max_ms, min(rehearsed.before_max_ms, default=LONG_MAX)),
            after_max_ms=min(self.after_max_ms, min(rehearsed.after_max_ms, default=LONG_MAX)),
        )


EXEMPT = TopicPolicy(checked=False)
"""What holds for clients that are asked nothing, whatever the topic."""


def bound_or_difference(bound: int | None, difference: int | None) -> int:
    """A bound (ms), or what the deprecated difference says where the bound is still at its default (KIP-937)."""
    if bound is not None and bound != LONG_MAX:
        return bound
    return difference if difference is not None else LONG_MAX


@dataclass(frozen=True, slots=True)
class ValidationLimits:
    """Bounds on what validating one request may cost, in bytes unless named otherwise.

    `max_decompressed_bytes`: what its payloads become, together. `max_decompression_ratio`: of one payload, to its
    compressed size; counts only above `ratio_free_bytes`, so that small, very regular batches pass.
    `max_decompression_window_bytes`: what a payload makes us hold at once. `max_record_errors`: how many are listed.
    `max_samples`: of how many bad records of a batch is kept what they hold, where their topic's policy says so.
    `max_request_records` and `max_request_headers`: of all records of a request; None: any number.
    """

    max_decompressed_bytes: int = 128 << 20
    max_decompression_ratio: int = 1000
    ratio_free_bytes: int = 1 << 20
    max_decompression_window_bytes: int = 16 << 20
    max_record_errors: int = 1000
    max_samples: int = 0
    max_request_records: int | None = None
    max_request_headers: int | None = None

    def plain_limit(self, compressed_bytes: int) -> int:
        """How many bytes a payload of this size may become."""
        return max(self.ratio_free_bytes, compressed_bytes * self.max_decompression_ratio)
