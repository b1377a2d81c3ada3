"""What the cluster has set a topic to, and how that goes together with the file: the stricter of the two wins."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from sluicegate.protocol.integers import LONG_MAX
from sluicegate.validation.policy import TimestampType, TopicPolicy, bound_or_difference

TIMESTAMP_TYPE = "message.timestamp.type"
BEFORE_MAX = "message.timestamp.before.max.ms"
AFTER_MAX = "message.timestamp.after.max.ms"
DIFFERENCE_MAX = "message.timestamp.difference.max.ms"
CLEANUP_POLICY = "cleanup.policy"
MAX_MESSAGE_BYTES = "max.message.bytes"
KEYS = (TIMESTAMP_TYPE, BEFORE_MAX, AFTER_MAX, DIFFERENCE_MAX, CLEANUP_POLICY, MAX_MESSAGE_BYTES)

_TIMESTAMP_TYPES = frozenset(kind.value for kind in TimestampType)
_NUMBER = re.compile("[0-9]{1,19}")


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
    difference = _number(values, DIFFERENCE_MAX)
    return ClusterSettings(
        _timestamp_type(values.get(TIMESTAMP_TYPE)),
        bound_or_difference(_number(values, BEFORE_MAX), difference),
        bound_or_difference(_number(values, AFTER_MAX), difference),
        "compact" in (values.get(CLEANUP_POLICY) or "").replace(" ", "").split(","),
        _number(values, MAX_MESSAGE_BYTES),
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


def _timestamp_type(text: str | None) -> TimestampType | None:
    if text is None:
        return None
    if text in _TIMESTAMP_TYPES:
        return TimestampType(text)
    raise ValueError(f"{TIMESTAMP_TYPE} is {text[:50]!r}, which no broker can have")


def _number(values: Mapping[str, str | None], key: str) -> int | None:
    text = values.get(key)
    if text is None:
        return None
    if not _NUMBER.fullmatch(text) or int(text) > LONG_MAX:
        raise ValueError(f"{key} is {text[:50]!r}, which no broker can have")
    return int(text)
