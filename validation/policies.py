"""Which policy a topic has: compiled once from the configuration, then looked up by name."""

from collections.abc import Iterable
from typing import Any

from sluicegate.config.model import Config, TopicKeys
from sluicegate.protocol.topic_name import is_legal_topic_name
from sluicegate.validation.cluster_settings import ClusterSettings, stricter_of
from sluicegate.validation.policy import JudgementLimits, TimestampType, TopicPolicy, bound_or_difference
from sluicegate.validation.topic_patterns import TopicPatterns

MAX_FROM_CLUSTER = 20_000
# Of each of two generations: names that are not asked for while one fills up are forgotten.
_GENERATION = 2_000


class TopicPolicies:
    """The first pattern that matches a topic's whole name decides; what it leaves open comes from the defaults.

    What the cluster itself has set (`learn`) tightens that. Names that no broker could have get the defaults: they are
    neither matched nor remembered (a broker says 3 to all of them, whatever else is wrong).

    One thread learns, any thread asks. What is remembered of the file never changes, so it does not matter who
    remembers it when; what the cluster says stands apart and is replaced whole. `generation` is another number whenever
    a policy may be another.
    """

    def __init__(self, defaults: TopicKeys, topics: Iterable[tuple[str, TopicKeys]]) -> None:
        given = list(topics)
        self._default = _policy(defaults, defaults)
        self._patterns = TopicPatterns([match for match, _ in given])
        self._by_pattern = [_policy(keys, defaults) for _, keys in given]
        self._from_cluster: dict[str, TopicPolicy] = {}
        self._young: dict[str, TopicPolicy] = {}
        self._old: dict[str, TopicPolicy] = {}
        self.generation = 0

    def of(self, topic: str) -> TopicPolicy:
        """The policy of `topic`."""
        policy = self._from_cluster.get(topic) if self._from_cluster else None
        if policy is None:
            policy = self._young.get(topic)
        return policy if policy is not None else self._find(topic)

    def learn(self, topic: str, settings: ClusterSettings | None) -> None:
        """What the cluster has set a topic to; None: it does not tell, or no longer.

        At most MAX_FROM_CLUSTER topics are known so; the ones that were learnt the longest ago are forgotten.
        """
        known = self._from_cluster
        if settings is None or not is_legal_topic_name(topic):
            if known.pop(topic, None) is not None:
                self.generation += 1
            return
        policy = stricter_of(self._young.get(topic) or self._find(topic), settings)
        if known.pop(topic, None) != policy:
            self.generation += 1
        known[topic] = policy
        if len(known) > MAX_FROM_CLUSTER:
            del known[next(iter(known))]

    def _find(self, topic: str) -> TopicPolicy:
        policy = self._old.get(topic)
        if policy is None:
            if not is_legal_topic_name(topic):
                return self._default
            policy = self._from_file(topic)
        if len(self._young) >= _GENERATION:
            self._old = self._young
            self._young = {}
        self._young[topic] = policy
        return policy

    def _from_file(self, topic: str) -> TopicPolicy:
        place = self._patterns.first_match(topic)
        return self._default if place is None else self._by_pattern[place]


def policies_of(config: Config) -> TopicPolicies:
    """The policies that a configuration describes."""
    return TopicPolicies(config.defaults, [(topic.match, topic) for topic in config.topics])


def limits_of(config: Config) -> JudgementLimits:
    """The bounds of a judgement that a configuration describes."""
    limits = config.limits
    return JudgementLimits(
        limits.max_decompressed_bytes,
        limits.max_decompression_ratio,
        max_decompression_window_bytes=limits.max_decompression_window_bytes,
        max_record_errors=limits.max_record_errors,
    )


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
