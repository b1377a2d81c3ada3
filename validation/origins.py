"""Records where the values of a topic's policy come from: the configuration, the cluster, or the proxy's defaults."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from sluicegate.config.files.source import Path, Source
from sluicegate.config.rules import Rule

NOWHERE = Source("configuration")
"""The source of a configuration that was not read from a file."""


class OriginKind(StrEnum):
    """The kind of an origin, as explanations, events and the API name it (docs/violations.md)."""

    CONFIGURATION = "configuration"
    CLUSTER_TOPIC = "cluster topic setting"
    CLUSTER_DEFAULT = "cluster default"
    BUILT_IN = "sluicegate default"
    SUSPENSION = "suspension"
    TOPIC_SETTING = "sluicegate topic setting"


class OverridingSetting(NamedTuple):
    """A cluster setting that overrides the configuration's value."""

    kind: OriginKind
    configured: int | str | None


@dataclass(frozen=True, slots=True)
class PolicyOrigins:
    """The origin of each key in a policy.

    - `source`: resolves paths.
    - `paths`: the path of each key that the configuration sets, by key name. All other keys have their defaults.
    - `rules`: the path of each rule, by name.
    - `requests` and `quotas`: the positions of request rules and of quotas, by name.
    - `cluster`: the cluster settings that apply, by key name.
    - `is_suspended`: whether enforcement is suspended.
    """

    source: Source = field(default_factory=lambda: NOWHERE)
    paths: Mapping[str, Path] = field(default_factory=dict)
    rules: Mapping[str, Path] = field(default_factory=dict)
    requests: Mapping[str, int] = field(default_factory=dict)
    quotas: Mapping[str, int] = field(default_factory=dict)
    cluster: Mapping[str, OverridingSetting] = field(default_factory=dict)
    is_suspended: bool = False


TOPIC_SETTINGS = "topic settings"
"""The first part of a key's path if a topic setting (`sluicegate.*`) sets the key. The second is the setting's name."""
UNKNOWN_ORIGINS = PolicyOrigins()


def rule_paths(rules: Sequence[Rule] | None, path: Path | None) -> dict[str, Path]:
    """Return each rule's path by the rule's name. `path` is the path of the list of rules, or None if it has none."""
    return {} if path is None else {rule.name: (*path, i) for i, rule in enumerate(rules or ())}
