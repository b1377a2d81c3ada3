"""A topic's settings on the cluster, and how they combine with the configuration: the stricter of the two applies."""

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
    """A topic's settings on its brokers; fields as in TopicPolicy, None if the brokers did not return a value."""

    timestamp_type: TimestampType | None = None
    before_max_ms: int = LONG_MAX
    after_max_ms: int = LONG_MAX
    compacted: bool = False
    max_message_bytes: int | None = None


def settings_from(values: Mapping[str, str | None]) -> ClusterSettings:
    """Return the settings from Kafka's names and values. Raises ValueError for an impossible value."""
    difference = _number(values, DIFFERENCE_MAX)
    return ClusterSettings(
        _timestamp_type(values.get(TIMESTAMP_TYPE)),
        bound_or_difference(_number(values, BEFORE_MAX), difference),
        bound_or_difference(_number(values, AFTER_MAX), difference),
        "compact" in (values.get(CLEANUP_POLICY) or "").replace(" ", "").split(","),
        _number(values, MAX_MESSAGE_BYTES),
    )


def stricter_of(policy: TopicPolicy, settings: ClusterSettings) -> TopicPolicy:
    """Return the configured policy, tightened by the cluster's settings; the cluster decides the timestamp type."""
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
    raise ValueError(f"{TIMESTAMP_TYPE} is {text[:50]!r}, which is no valid value")


def _number(values: Mapping[str, str | None], key: str) -> int | None:
    text = values.get(key)
    if text is None:
        return None
    if not _NUMBER.fullmatch(text) or int(text) > LONG_MAX:
        raise ValueError(f"{key} is {text[:50]!r}, which is no valid value")
    return int(text)
