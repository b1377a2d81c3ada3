"""Which policy a topic has: compiled once from the configuration, then looked up by name."""

import re
from collections.abc import Iterable
from fnmatch import translate
from typing import Any

from config.model import Config, TopicKeys
from validation.cluster_settings import ClusterSettings, stricter_of
from validation.policy import JudgementLimits, TimestampType, TopicPolicy, bound_or_difference

_MAX_REMEMBERED = 10_000


class TopicPolicies:
    """The first pattern that matches a topic's whole name decides; what it leaves open comes from the defaults.

    What the cluster itself has set (`learn`) tightens that.
    """

    def __init__(self, defaults: TopicKeys, topics: Iterable[tuple[str, TopicKeys]]) -> None:
        self._default = _policy(defaults, defaults)
        self._patterns = [(_pattern(match), _policy(keys, defaults)) for match, keys in topics]
        self._from_cluster: dict[str, ClusterSettings] = {}
        self._remembered: dict[str, TopicPolicy] = {}

    def of(self, topic: str) -> TopicPolicy:
        """The policy of `topic`."""
        policy = self._remembered.get(topic)
        if policy is None:
            if len(self._remembered) >= _MAX_REMEMBERED:
                self._remembered.clear()
            policy = self._remembered[topic] = self._find(topic)
        return policy

    def learn(self, topic: str, settings: ClusterSettings | None) -> None:
        """What the cluster has set a topic to; None: it does not tell, or no longer."""
        if settings is None:
            self._from_cluster.pop(topic, None)
        else:
            self._from_cluster[topic] = settings
        self._remembered.pop(topic, None)

    def _find(self, topic: str) -> TopicPolicy:
        found = next((policy for pattern, policy in self._patterns if pattern.fullmatch(topic)), self._default)
        settings = self._from_cluster.get(topic)
        return found if settings is None else stricter_of(found, settings)


def policies_of(config: Config) -> TopicPolicies:
    """The policies that a configuration describes."""
    return TopicPolicies(config.defaults, [(topic.match, topic) for topic in config.topics])


def limits_of(config: Config) -> JudgementLimits:
    """The bounds of a judgement that a configuration describes."""
    return JudgementLimits(config.limits.max_decompressed_bytes, config.limits.max_decompression_ratio)


def _pattern(match: str) -> re.Pattern[str]:
    if len(match) > 1 and match.startswith("/") and match.endswith("/"):
        return re.compile(match.removeprefix("/").removesuffix("/"))
    return re.compile(translate(match))


def _policy(keys: TopicKeys, defaults: TopicKeys) -> TopicPolicy:
    def given(name: str) -> Any:
        own = getattr(keys, name)
        return own if own is not None else getattr(defaults, name)

    difference = given("difference_max_ms")
    cleanup = given("cleanup_policy") or "delete"
    return TopicPolicy(
        TimestampType(given("timestamp_type") or "CreateTime"),
        bound_or_difference(given("before_max_ms"), difference),
        bound_or_difference(given("after_max_ms"), difference),
        "compact" in str(cleanup).replace(" ", "").split(","),
        given("max_message_bytes"),
        (given("checks") or "all") == "all",
    )
