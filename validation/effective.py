"""Returns a topic's effective policy: the value of each key that is in force, and its source.

Every display uses this module: `sluicegate explain` and `try`, the web UI's API, and violation events.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sluicegate.config.files.source import Path
from sluicegate.protocol.integers import LONG_MAX
from sluicegate.validation.cluster_settings import (
    AFTER_MAX,
    BEFORE_MAX,
    CLEANUP_POLICY,
    MAX_MESSAGE_BYTES,
    TIMESTAMP_TYPE,
)
from sluicegate.validation.origins import TOPIC_SETTINGS, OriginKind
from sluicegate.validation.policy import RehearsedBounds, TopicPolicy
from sluicegate.validation.verdict import Reason

Value = int | str | bool | None

KEYS_BY_REASON = {
    Reason.TIMESTAMP_TOO_OLD: BEFORE_MAX,
    Reason.TIMESTAMP_IN_FUTURE: AFTER_MAX,
    Reason.LOG_APPEND_TIME: TIMESTAMP_TYPE,
    Reason.NULL_KEY: CLEANUP_POLICY,
    Reason.BATCH_TOO_LARGE: MAX_MESSAGE_BYTES,
    Reason.AMBIGUOUS_FRAMING: "framing",
    Reason.UNREADABLE_FRAMING: "framing",
    Reason.RULE_VIOLATED: "rules",
    Reason.REQUEST_RULE_VIOLATED: "requests",
    Reason.DEPENDENCY_UNAVAILABLE: "rules",
    Reason.SCHEMA_UNUSABLE: "rules",
}
"""The key that a violation is about. Violations of a broker's format checks have none."""

_BEFORE_RULES: Mapping[str, Callable[[TopicPolicy], Value]] = {
    TIMESTAMP_TYPE: lambda policy: policy.timestamp_type.value,
    BEFORE_MAX: lambda policy: policy.before_max_ms,
    AFTER_MAX: lambda policy: policy.after_max_ms,
    CLEANUP_POLICY: lambda policy: "compact" if policy.compacted else "delete",
    MAX_MESSAGE_BYTES: lambda policy: policy.max_message_bytes,
    "checks": lambda policy: "all" if policy.checked else "none",
    "mode": lambda policy: policy.mode.value,
    "enforce": lambda policy: None if policy.enforced is None else str(policy.enforced),
    "framing": lambda policy: policy.framing.value,
    "rehearse": lambda policy: None if policy.rehearsed is None else _rehearsed_text(policy.rehearsed),
    "fix": lambda policy: None if policy.fix is None else policy.fix.value,
}
_AFTER_RULES: Mapping[str, Callable[[TopicPolicy], Value]] = {
    "samples": lambda policy: policy.samples,
    "quarantine": lambda policy: policy.dead_letters,
    "sensitive": lambda policy: None if policy.sensitive is None else str(policy.sensitive),
    "owner": lambda policy: None if policy.owner is None else str(policy.owner),
}
"""The value of each key that is not a list, in the order of the configuration reference."""

# Keys that a suspension disables.
_SUSPENDED = frozenset({"enforce", "fix", "quarantine"})


@dataclass(frozen=True, slots=True)
class EffectiveValue:
    """The value of one key.

    If the configuration sets the key, `path` is the key's path there, and `place` its position (`file:line`). If a
    topic setting sets it, `path` is the name of that setting, and `place` is None. If a stricter cluster setting
    overrides either, `configured` is the overridden value, and `place` and `path` refer to that value.
    """

    key: str
    value: Value
    kind: OriginKind
    place: str | None = None
    path: str | None = None
    configured: Value = None

    @property
    def source(self) -> str:
        """Return the source for display, for example `sluicegate.yaml:5, topics[0].mode` or `cluster topic setting`."""
        if self.kind is OriginKind.CONFIGURATION:
            return f"{self.place}, {self.path}"
        if self.kind is OriginKind.TOPIC_SETTING:
            return f"{self.kind.value} {self.path}"
        if self.path is None:
            return self.kind.value
        where = f"{self.place}, {self.path}" if self.place is not None else str(self.path)
        return f"{self.kind.value}, instead of {self.configured} in {where}"

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object for events and the API (docs/violations.md). An unlimited bound becomes null."""
        fields: dict[str, Any] = {
            "key": self.key,
            "value": None if self.value == LONG_MAX else self.value,
            "source": self.kind.value,
            "place": self.place,
            "path": self.path,
        }
        if self.configured is not None:
            fields["configured"] = None if self.configured == LONG_MAX else self.configured
        return fields


def effective_policy(policy: TopicPolicy) -> tuple[EffectiveValue, ...]:
    """Return the value and source of each key and rule that applies to a topic, in the order of the configuration."""
    found = [_value(policy, key, of(policy)) for key, of in _BEFORE_RULES.items()]
    found += _rules(policy)
    found += [_value(policy, key, of(policy)) for key, of in _AFTER_RULES.items()]
    found += [_of_request_rule(policy, rule.name) for rule in policy.requests]
    if policy.quota is not None:
        found.append(_named(policy, "quotas", policy.quota.name, policy.origins.quotas.get(policy.quota.name)))
    return tuple(found)


def violated_value(policy: TopicPolicy, reason: Reason, rule: str | None = None) -> EffectiveValue | None:
    """Return the value that a violation is about; None for a broker's format check, which no key sets.

    `rule` is the violated rule, or None for other violations.
    """
    key = KEYS_BY_REASON.get(reason)
    if key is None:
        return None
    if rule is not None:
        return _of_request_rule(policy, rule) if reason is Reason.REQUEST_RULE_VIOLATED else _of_rule(policy, rule)
    return value_of(policy, key)


def value_of(policy: TopicPolicy, key: str) -> EffectiveValue | None:
    """Return the value of a key. For a list such as `rules`, return its first item."""
    of = _BEFORE_RULES.get(key) or _AFTER_RULES.get(key)
    if of is not None:  # only the first item, because events need one value per key
        return _value(policy, key, of(policy))
    return next((value for value in effective_policy(policy) if value.key == key), None)


def _rules(policy: TopicPolicy) -> list[EffectiveValue]:
    names = dict.fromkeys(named.name for named in (policy.rules.rules if policy.rules is not None else ()))
    return [_of_rule(policy, name) for name in names] or [_value(policy, "rules", None)]


def _value(policy: TopicPolicy, key: str, value: Value) -> EffectiveValue:
    origins = policy.origins
    path = origins.paths.get(key)
    if origins.is_suspended and (key == "mode" or (key in _SUSPENDED and path is not None)):
        return EffectiveValue(key, value, OriginKind.SUSPENSION)
    overriding = origins.cluster.get(key)
    if overriding is None:
        return EffectiveValue(key, value, OriginKind.BUILT_IN) if path is None else _from_path(policy, key, value, path)
    if path is None:
        return EffectiveValue(key, value, overriding.kind)
    given = _from_path(policy, key, value, path)
    return EffectiveValue(key, value, overriding.kind, given.place, given.path, overriding.configured)


def _from_path(policy: TopicPolicy, key: str, value: Value, path: Path) -> EffectiveValue:
    if path[0] == TOPIC_SETTINGS:
        return EffectiveValue(key, value, OriginKind.TOPIC_SETTING, None, str(path[1]))
    source = policy.origins.source
    return EffectiveValue(key, value, OriginKind.CONFIGURATION, source.place_of(path), source.key_of(path))


def _of_rule(policy: TopicPolicy, name: str) -> EffectiveValue:
    path = policy.origins.rules.get(name)
    return (
        EffectiveValue("rules", name, OriginKind.BUILT_IN) if path is None else _from_path(policy, "rules", name, path)
    )


def _of_request_rule(policy: TopicPolicy, name: str) -> EffectiveValue:
    return _named(policy, "requests", name, policy.origins.requests.get(name))


def _named(policy: TopicPolicy, key: str, name: str, position: int | None) -> EffectiveValue:
    """Return an item of one of the configuration's lists, by its position in the list."""
    if position is None:
        return EffectiveValue(key, name, OriginKind.BUILT_IN)
    return _from_path(policy, key, name, (key, position))


def _rehearsed_text(rehearsed: RehearsedBounds) -> str:
    bounds = ((BEFORE_MAX, rehearsed.before_max_ms), (AFTER_MAX, rehearsed.after_max_ms))
    return ", ".join(f"{key}: {list(values)}" for key, values in bounds if values)
