"""Keeps the rulebook that is in force, and caches its policies per thread."""

from collections.abc import Callable, Mapping

from sluicegate.validation.cluster_settings import ClusterSettings
from sluicegate.validation.policy import TopicPolicy
from sluicegate.validation.rulebook import FilePolicies, Rulebook, SuspendedTopics

# The size of each half of the cache. A name is dropped if it is not looked up while a half fills.
_HALF = 2_000
_LONGEST = 249


class RulesInForce:
    """The current rulebook. One thread replaces `rulebook` as a whole; other threads read it once per request.

    `generation` is the rulebook's, so that policy caches can compare it.
    """

    __slots__ = ("generation", "rulebook")

    def __init__(self, rulebook: Rulebook) -> None:
        self.rulebook = rulebook
        self.generation = rulebook.generation

    def learn(self, settings: Mapping[str, ClusterSettings | None]) -> None:
        """Apply the cluster's settings for some topics (`Rulebook.with_settings`)."""
        self._replace(self.rulebook.with_settings(settings))

    def adopt(self, file: FilePolicies) -> None:
        """Replace the configuration file's policies."""
        self._replace(self.rulebook.with_file(file))

    def suspend(self, suspended: SuspendedTopics) -> None:
        """Suspend enforcement for these topics, and for no others."""
        self._replace(self.rulebook.with_suspended(suspended))

    def _replace(self, rulebook: Rulebook) -> None:
        self.rulebook = rulebook
        self.generation = rulebook.generation


class PolicyMemo:
    """A cache of one rulebook's policies, for one thread. It avoids matching patterns for each request.

    Names that are too long for a topic are not cached, because clients may invent any number of them.
    """

    def __init__(self) -> None:
        self._rulebook: Rulebook | None = None
        self._young: dict[str, TopicPolicy] = {}
        self._old: dict[str, TopicPolicy] = {}

    def policies_by(self, rulebook: Rulebook) -> Callable[[str], TopicPolicy]:
        """Return a function that maps a topic to its policy in this rulebook. It is valid until the next call."""
        if rulebook is not self._rulebook:
            self._rulebook = rulebook
            self._young = {}
            self._old = {}
        return self.policy_of

    def policy_of(self, topic: str) -> TopicPolicy:
        """Return a topic's policy in the rulebook that was last passed to `policies_by`."""
        policy = self._young.get(topic)
        return policy if policy is not None else self._find(topic)

    def _find(self, topic: str) -> TopicPolicy:
        assert self._rulebook is not None
        policy = self._old.get(topic)
        if policy is None:
            policy = self._rulebook.policy_of(topic)
            if len(topic) > _LONGEST:
                return policy
        if len(self._young) >= _HALF:
            self._old = self._young
            self._young = {}
        self._young[topic] = policy
        return policy
