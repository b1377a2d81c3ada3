"""What one thread remembers of rulebooks, so that patterns are not matched again for each request."""

from collections.abc import Callable

from sluicegate.validation.policy import TopicPolicy
from sluicegate.validation.rulebook import Rulebook

# Of each of two halves: names that are not asked for while one fills up are forgotten.
_HALF = 2_000
_LONGEST = 249


class PolicyMemo:
    """For one thread, and one request at a time. What it remembers is of one rulebook.

    Names longer than any topic's are not remembered: clients may invent them without end.
    """

    def __init__(self) -> None:
        self._rulebook: Rulebook | None = None
        self._young: dict[str, TopicPolicy] = {}
        self._old: dict[str, TopicPolicy] = {}

    def by(self, rulebook: Rulebook) -> Callable[[str], TopicPolicy]:
        """What gives a topic's policy by this rulebook, until another one is asked for."""
        if rulebook is not self._rulebook:
            self._rulebook = rulebook
            self._young = {}
            self._old = {}
        return self.of

    def of(self, topic: str) -> TopicPolicy:
        """The policy of `topic`, by the rulebook that was asked for last."""
        policy = self._young.get(topic)
        return policy if policy is not None else self._find(topic)

    def _find(self, topic: str) -> TopicPolicy:
        assert self._rulebook is not None
        policy = self._old.get(topic)
        if policy is None:
            policy = self._rulebook.of(topic)
            if len(topic) > _LONGEST:
                return policy
        if len(self._young) >= _HALF:
            self._old = self._young
            self._young = {}
        self._young[topic] = policy
        return policy
