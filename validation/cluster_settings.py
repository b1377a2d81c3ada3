"""What the cluster has set a topic to, and how that goes together with the file: the stricter of the two wins."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from validation.policy import LONG_MAX, TimestampType, TopicPolicy, bound_or_difference

TIMESTAMP_TYPE = "message.timestamp.type"
BEFORE_MAX = "message.timestamp.before.max.ms"
AFTER_MAX = "message.timestamp.after.max.ms"
DIFFERENCE_MAX = "message.timestamp.difference.max.ms"
CLEANUP_POLICY = "cleanup.policy"
MAX_MESSAGE_BYTES = "max.message.bytes"
KEYS = (TIMESTAMP_TYPE, BEFORE_MAX, AFTER_MAX, DIFFERENCE_MAX, CLEANUP_POLICY, MAX_MESSAGE_BYTES)


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """A topic's settings as its brokers have them; fields mean what TopicPolicy's do, None what was not told."""

    timestamp_type: TimestampType | None = None
    before_max_ms: int = LONG_MAX
    after_max_ms: int = LONG_MAX
    compacted: bool = False
    max_message_bytes: int | None = None


def settings_from(values: Mapping[str, str | None]) -> ClusterSettings:
    """From Kafka's names and values. Raises ValueError for a value that no broker has."""
    difference = _number(values.get(DIFFERENCE_MAX))
    timestamp_type = values.get(TIMESTAMP_TYPE)
    return ClusterSettings(
        TimestampType(timestamp_type) if timestamp_type is not None else None,
        bound_or_difference(_number(values.get(BEFORE_MAX)), difference),
        bound_or_difference(_number(values.get(AFTER_MAX)), difference),
        "compact" in (values.get(CLEANUP_POLICY) or "").replace(" ", "").split(","),
        _number(values.get(MAX_MESSAGE_BYTES)),
    )


def stricter_of(policy: TopicPolicy, settings: ClusterSettings) -> TopicPolicy:
    """The file's policy tightened by the cluster's settings; who sets the time only the cluster knows."""
    sizes = [size for size in (policy.max_message_bytes, settings.max_message_bytes) if size is not None]
    return replace(
        policy,
        timestamp_type=settings.timestamp_type or policy.timestamp_type,
        before_max_ms=min(policy.before_max_ms, settings.before_max_ms),
        after_max_ms=min(policy.after_max_ms, settings.after_max_ms),
        compacted=policy.compacted or settings.compacted,
        max_message_bytes=min(sizes, default=None),
    )


def _number(text: str | None) -> int | None:
    return int(text) if text is not None else None
