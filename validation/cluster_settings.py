"""Combines a topic's settings on the cluster with the configuration: the stricter of the two applies."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from sluicegate.protocol.integers import LONG_MAX
from sluicegate.validation.origins import OriginKind, OverridingSetting
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
    """A topic's settings on its brokers. The fields are those of TopicPolicy; None if the brokers returned no value.

    `set_on_topic` contains the keys that are set on the topic itself. Other keys are cluster defaults.
    """

    timestamp_type: TimestampType | None = None
    before_max_ms: int = LONG_MAX
    after_max_ms: int = LONG_MAX
    compacted: bool = False
    max_message_bytes: int | None = None
    set_on_topic: frozenset[str] = frozenset()


def settings_from(values: Mapping[str, str | None], set_on_topic: Collection[str] = ()) -> ClusterSettings:
    """Return the settings from Kafka's names and values.

    `set_on_topic` contains the names that are set on the topic itself. Raises ValueError for an impossible value.
    """
    difference = _number(values, DIFFERENCE_MAX)
    return ClusterSettings(
        _timestamp_type(values.get(TIMESTAMP_TYPE)),
        bound_or_difference(_number(values, BEFORE_MAX), difference),
        bound_or_difference(_number(values, AFTER_MAX), difference),
        "compact" in (values.get(CLEANUP_POLICY) or "").replace(" ", "").split(","),
        _number(values, MAX_MESSAGE_BYTES),
        frozenset(set_on_topic),
    )


def stricter_of(policy: TopicPolicy, settings: ClusterSettings) -> TopicPolicy:
    """Return the configured policy, tightened by the cluster's settings. The timestamp type is always the cluster's."""
    sizes = [size for size in (policy.max_message_bytes, settings.max_message_bytes) if size is not None]
    return replace(
        policy,
        origins=replace(policy.origins, cluster=dict(_overriding(policy, settings))),
        timestamp_type=settings.timestamp_type or policy.timestamp_type,
        before_max_ms=min(policy.before_max_ms, settings.before_max_ms),
        after_max_ms=min(policy.after_max_ms, settings.after_max_ms),
        compacted=policy.compacted or settings.compacted,
        max_message_bytes=min(sizes, default=None),
    )


def _overriding(policy: TopicPolicy, settings: ClusterSettings) -> Iterator[tuple[str, OverridingSetting]]:
    """Yield the cluster settings that override the configuration's values or the proxy's defaults."""
    paths = policy.origins.paths
    bounds = (
        (BEFORE_MAX, policy.before_max_ms, settings.before_max_ms),
        (AFTER_MAX, policy.after_max_ms, settings.after_max_ms),
        (MAX_MESSAGE_BYTES, policy.max_message_bytes, settings.max_message_bytes),
    )
    for key, ours, theirs in bounds:
        if theirs is not None and (ours is None or theirs < ours or (theirs == ours and key not in paths)):
            yield key, OverridingSetting(_kind_of(key, settings), ours)
    if settings.timestamp_type is not None:
        kind = _kind_of(TIMESTAMP_TYPE, settings)
        yield TIMESTAMP_TYPE, OverridingSetting(kind, policy.timestamp_type.value)
    if not policy.compacted and (settings.compacted or CLEANUP_POLICY not in paths):
        yield CLEANUP_POLICY, OverridingSetting(_kind_of(CLEANUP_POLICY, settings), "delete")


def _kind_of(key: str, settings: ClusterSettings) -> OriginKind:
    names = (key, DIFFERENCE_MAX) if key in (BEFORE_MAX, AFTER_MAX) else (key,)
    is_set = not settings.set_on_topic.isdisjoint(names)
    return OriginKind.CLUSTER_TOPIC if is_set else OriginKind.CLUSTER_DEFAULT


def _timestamp_type(text: str | None) -> TimestampType | None:
    if text is None:
        return None
    if text in _TIMESTAMP_TYPES:
        return TimestampType(text)
    raise ValueError(f"{TIMESTAMP_TYPE} is {text[:50]!r}, which is not a valid value")


def _number(values: Mapping[str, str | None], key: str) -> int | None:
    text = values.get(key)
    if text is None:
        return None
    if not _NUMBER.fullmatch(text) or int(text) > LONG_MAX:
        raise ValueError(f"{key} is {text[:50]!r}, which is not a valid value")
    return int(text)
