"""Compiles the policies of dead letters' original topics with the cluster's settings, as a running proxy does."""

import time
from collections.abc import Collection
from pathlib import Path

from sluicegate.config.loading import Loaded
from sluicegate.dead_letters.verdicts import LetterValidator, TimeOf, own_time
from sluicegate.proxy.cluster.topics import read_settings_now
from sluicegate.proxy.registry.registries import Registries
from sluicegate.proxy.registry.schema_rules import SchemaRules
from sluicegate.proxy.reload.config_check import checked_policies
from sluicegate.proxy.reload.topic_explanation import NOT_ASKED, TopicExplanation
from sluicegate.validation.from_keys import limits_of
from sluicegate.validation.policy import TopicPolicy, ValidationLimits

_MOST_POLICIES = 1000


class LetterPolicies:
    """A configuration's policies. `topics` exist in the cluster `upstream`, so their settings are read there."""

    def __init__(self, loaded: Loaded, topics: Collection[str]) -> None:
        self._loaded = loaded
        self._topics = topics
        self._policies: dict[str, TopicPolicy] = {}

    @property
    def limits(self) -> ValidationLimits:
        """Return the limits of the configuration."""
        return limits_of(self._loaded.config)

    def of(self, topic: str) -> TopicPolicy:
        """Return a topic's policy. Blocks while settings and schemas are read. Raises RuleUnusable."""
        if topic not in self._policies:
            if len(self._policies) >= _MOST_POLICIES:  # anyone can write letters that name arbitrary topics
                self._policies.clear()
            self._policies[topic] = self._compiled(topic)
        return self._policies[topic]

    def validator(self, time_of: TimeOf = own_time, now_ms: int | None = None) -> LetterValidator:
        """Create a validator of letters, as of `now_ms` (Unix time, ms) or of the present time."""
        return LetterValidator(self.of, self.limits, time.time_ns() // 1_000_000 if now_ms is None else now_ms, time_of)

    def _compiled(self, topic: str) -> TopicPolicy:
        config = self._loaded.config
        settings = read_settings_now(config.upstream, topic) if topic in self._topics else NOT_ASKED
        maker = SchemaRules(Registries().by_name(config.registries))
        return TopicExplanation(topic, self._loaded, settings, maker=maker).policy


def read_policies(file: Path, topics: Collection[str]) -> LetterPolicies:
    """Return the policies of a configuration file. `topics` contains its cluster's topics. Raises ConfigError."""
    return LetterPolicies(checked_policies(file), topics)
