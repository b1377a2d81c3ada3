"""All policies of all topics as one value: compiled from the configuration, never changed, replaced whole."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sluicegate.config.model import Config
from sluicegate.config.topics import Fix as FixKeys
from sluicegate.config.topics import Rehearse, Topic, TopicKeys
from sluicegate.protocol.topic_name import is_legal_topic_name
from sluicegate.validation.cluster_settings import ClusterSettings, stricter_of
from sluicegate.validation.policy import (
    LONG_MAX,
    Fix,
    JudgementLimits,
    Mode,
    Rehearsed,
    TimestampType,
    TopicPolicy,
    bound_or_difference,
)
from sluicegate.validation.topic_patterns import TopicPatterns
from sluicegate.validation.units import PLAUSIBLE_MS

_NOTHING_TOLD: Mapping[str, ClusterSettings] = {}


class FilePolicies:
    """What the file says: the first pattern that matches a topic's whole name decides, `default` holds for the rest."""

    def __init__(self, default: TopicPolicy, topics: Sequence[tuple[str, TopicPolicy]]) -> None:
        self.default = default
        self._patterns = TopicPatterns([match for match, _ in topics])
        self._by_pattern = [policy for _, policy in topics]

    def of(self, topic: str) -> TopicPolicy:
        """The policy of `topic`, by the file alone."""
        place = self._patterns.first_match(topic)
        return self.default if place is None else self._by_pattern[place]


class Rulebook:
    """What a topic's batches are held to: the file's policy, tightened by what the cluster itself has set.

    Names that no broker could have get the defaults without being matched (a broker says 3 to all of them, whatever
    else is wrong). A rulebook never changes, so whoever has read one judges a whole request by it; another one has
    another `generation`. Any thread may ask; `sluicegate.validation.policy_memo` remembers the answers.
    """

    def __init__(
        self, file: FilePolicies, from_cluster: Mapping[str, ClusterSettings] = _NOTHING_TOLD, generation: int = 0
    ) -> None:
        self.generation = generation
        self._file = file
        self._from_cluster = from_cluster

    def of(self, topic: str) -> TopicPolicy:
        """The policy of `topic`."""
        if not is_legal_topic_name(topic):
            return self._file.default
        policy = self._file.of(topic)
        settings = self._from_cluster.get(topic)
        return policy if settings is None else stricter_of(policy, settings)

    def with_settings(self, told: Mapping[str, ClusterSettings | None]) -> "Rulebook":
        """The next generation, by what the cluster has told of some topics (None: it tells nothing of one, or no
        longer); the same rulebook where that is nothing new.
        """
        known = self._from_cluster
        new = {topic: settings for topic, settings in told.items() if known.get(topic) != settings}
        if not new:
            return self
        learnt = {topic: settings for topic, settings in {**known, **new}.items() if settings is not None}
        return Rulebook(self._file, learnt, self.generation + 1)

    def with_file(self, file: FilePolicies) -> "Rulebook":
        """The next generation, by another file; what the cluster has told stands."""
        return Rulebook(file, self._from_cluster, self.generation + 1)


def compile_policies(defaults: TopicKeys, topics: Iterable[tuple[str, TopicKeys]] = ()) -> FilePolicies:
    """From keys to policies: what an entry of `topics` leaves open comes from `defaults`."""
    return FilePolicies(_policy(defaults, defaults), [(match, _policy(keys, defaults)) for match, keys in topics])


def file_policies_of(config: Config) -> FilePolicies:
    """The policies that a configuration describes."""
    return compile_policies(config.defaults, [(topic.match, topic) for topic in config.topics])


def rulebook_of(config: Config) -> Rulebook:
    """The first rulebook of a configuration: the cluster has told nothing yet."""
    return Rulebook(file_policies_of(config))


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
    dead_letters = keys.quarantine if isinstance(keys, Topic) else None
    fix = _fix(given("fix")) if dead_letters is None else None
    widest = PLAUSIBLE_MS if fix is Fix.UNIT else LONG_MAX
    return TopicPolicy(
        TimestampType(given("timestamp_type") or "CreateTime"),
        min(bound_or_difference(given("before_max_ms"), difference), widest),
        min(bound_or_difference(given("after_max_ms"), difference), widest),
        "compact" in str(cleanup).replace(" ", "").split(","),
        given("max_message_bytes"),
        (given("checks") or "all") == "all",
        Mode(given("mode") or "reject") if dead_letters is None else Mode.QUARANTINE,
        _rehearsed(given("rehearse")),
        fix,
        dead_letters,
    )


def _fix(keys: FixKeys | None) -> Fix | None:
    return None if keys is None else Fix(keys.timestamp)


def _rehearsed(keys: Rehearse | None) -> Rehearsed | None:
    return None if keys is None else Rehearsed(keys.before_max_ms, keys.after_max_ms)
