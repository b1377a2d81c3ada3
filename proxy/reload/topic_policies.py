"""Compiles the cluster's topic settings (`sluicegate.*`) to topic policies.

A setting that cannot be used has no effect, but the others apply. A reload may have withdrawn its delegation, or
another version of sluicegate may have accepted it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from sluicegate.config.files.source import Source
from sluicegate.config.model import Config
from sluicegate.proxy.state.settings_table import TopicValues
from sluicegate.validation.origins import NOWHERE
from sluicegate.validation.policy import TopicPolicy
from sluicegate.validation.rulebook import FilePolicies
from sluicegate.validation.rules.from_keys import RuleMaker
from sluicegate.validation.topic_entry import TopicEntry
from sluicegate.validation.topic_policy import policy_by_usable_settings

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Configured:
    """A configuration with its compiled policies, and the object that creates its rules."""

    config: Config
    file: FilePolicies
    maker: RuleMaker
    source: Source = field(default_factory=lambda: NOWHERE)


@dataclass(frozen=True, slots=True)
class CompiledTopicPolicies:
    """Topic policies that come from topic settings.

    - `policies`: each topic's policy.
    - `entries`: the keys from which the policy was made, for explanations.
    - `problems`: the settings that have no effect, by topic, each with the reason.
    """

    policies: Mapping[str, TopicPolicy] = field(default_factory=dict)
    entries: Mapping[str, TopicEntry] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)

    @property
    def rules_name_principals(self) -> bool:
        """Whether a rule of these topics depends on the principal."""
        return any(rule.names_principals for entry in self.entries.values() for rule in entry.keys.rules or ())

    def with_changes(self, changed: Iterable[str], new: "CompiledTopicPolicies") -> "CompiledTopicPolicies":
        """Return a copy with the policies of some topics replaced, or removed if `new` has none."""
        gone = frozenset(changed)
        return CompiledTopicPolicies(
            _merged(self.policies, gone, new.policies),
            _merged(self.entries, gone, new.entries),
            _merged(self.problems, gone, new.problems),
        )


def _merged(old: Mapping[str, T], gone: frozenset[str], new: Mapping[str, T]) -> dict[str, T]:
    return {topic: each for topic, each in old.items() if topic not in gone} | dict(new)


def topic_policies_of(configured: Configured, settings: Mapping[str, TopicValues | None]) -> CompiledTopicPolicies:
    """Return the policies of topics with these settings. Blocks, with many topics for several seconds."""
    policies, entries, problems = {}, {}, {}
    config, file, maker, source = configured.config, configured.file, configured.maker, configured.source
    for topic, its in settings.items():
        if its is None:
            continue
        place = file.place_of(topic)
        policy, entry, reasons = policy_by_usable_settings(config, topic, its.values, place, maker, source)
        if policy is not None and entry is not None:
            policies[topic], entries[topic] = policy, entry
        if reasons:
            problems[topic] = "; ".join(reasons)
    return CompiledTopicPolicies(policies, entries, problems)
