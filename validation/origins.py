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
    """A setting of the cluster that applies instead of the configuration's value."""

    kind: OriginKind
    configured: int | str | None


@dataclass(frozen=True, slots=True)
class PolicyOrigins:
    """The origin of each key of a policy.

    - `source` resolves paths.
    - `paths`: the path of each key that the configuration sets, by the key's name. Other keys have their defaults.
    - `rules`: the path of each rule, by name.
    - `requests` and `quotas`: the positions of rules about requests and of quotas, by name.
    - `cluster`: the settings of the cluster that apply, by the key's name.
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
"""The first part of the path of a key that a topic setting gives (`sluicegate.*`). The second is the setting's name."""
UNKNOWN_ORIGINS = PolicyOrigins()


def rule_paths(rules: Sequence[Rule] | None, path: Path | None) -> dict[str, Path]:
    """Return the path of each rule by its name. `path` is that of their list; None if it has none."""
    return {} if path is None else {rule.name: (*path, i) for i, rule in enumerate(rules or ())}
