"""Which topics have metric series of their own: those that the cluster or the configuration knows, 500 at most.

A name that only a client has said counts under `other`: else anybody could take all places. When they are all taken,
the topic that was counted longest ago gives up its place, and what it has counted goes to `other`, so that no sum ever
falls.
"""

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import replace

from sluicegate.config.model import Config
from sluicegate.proxy.tally import OTHER, Tally

MAX_TOPICS = 500
_MAX_LEARNT = 10_000
_FEWEST_TOPICS = 25
_PATTERN = frozenset("*?[/")


class TopicLabels:
    """Counts into `tally` by topic. `is_known`: whether the cluster has said that there is such a topic."""

    def __init__(
        self, tally: Tally, is_known: Callable[[str], bool], configured: Iterable[str], max_topics: int = MAX_TOPICS
    ) -> None:
        self._tally = tally
        self._is_known = is_known
        self._configured = frozenset(configured)
        self._max_topics = max_topics
        self._learnt: OrderedDict[str, None] = OrderedDict()
        self._errors: OrderedDict[str, set[str]] = OrderedDict()  # of each topic that has a place
        self._folding = threading.Lock()

    def learn(self, topic: str) -> None:
        """The cluster has just answered in a way that shows that `topic` exists."""
        self._learnt[topic] = None
        self._learnt.move_to_end(topic)
        if len(self._learnt) > _MAX_LEARNT:
            self._learnt.popitem(last=False)

    def knows(self, topic: str) -> bool:
        """Whether `topic` is more than a name that a client has said."""
        return topic in self._configured or topic in self._learnt or self._is_known(topic)

    def refused(self, topic: str | None, error: str, records: int) -> None:
        """A batch was refused, with so many bad records."""
        label = self._label(topic)
        self._tally.refused[label, error] += 1
        self._tally.refused_records[label] += records
        if label is not OTHER:
            self._errors[label].add(error)

    def far_ahead(self, topic: str | None) -> None:
        """A good batch was more than an hour ahead."""
        self._tally.far_ahead[self._label(topic)] += 1

    def counted(self) -> Tally:
        """A copy of the counters at one moment, for another thread."""
        tally = self._tally
        with self._folding:
            return replace(
                tally,
                refused=Counter(tally.refused),
                refused_records=Counter(tally.refused_records),
                far_ahead=Counter(tally.far_ahead),
            )

    def _label(self, topic: str | None) -> str:
        if topic is None or topic == OTHER:
            return OTHER
        if topic in self._errors:
            self._errors.move_to_end(topic)
            return topic
        if not self.knows(topic):
            return OTHER
        if len(self._errors) >= self._max_topics:
            self._fold(*self._errors.popitem(last=False))
        self._errors[topic] = set()
        return topic

    def _fold(self, topic: str, errors: Iterable[str]) -> None:
        tally = self._tally
        with self._folding:
            for error in errors:
                tally.refused[OTHER, error] += tally.refused.pop((topic, error), 0)
            for counts in (tally.refused_records, tally.far_ahead):
                if topic in counts:
                    counts[OTHER] += counts.pop(topic)


def exact_names(config: Config) -> list[str]:
    """The topics that a configuration names, not by a pattern."""
    return [topic.match for topic in config.topics if not _PATTERN & set(topic.match)]


def topics_of_one(workers: int) -> int:
    """How many topics each of several workers labels, so that their sum has not many more than one would have."""
    return max(MAX_TOPICS // workers, _FEWEST_TOPICS)


def with_few_topics(tally: Tally, max_topics: int = MAX_TOPICS) -> Tally:
    """The same counts; where there are more than `max_topics`, those of all topics under `other`."""
    topics = {topic for topic, _ in tally.refused} | tally.refused_records.keys() | tally.far_ahead.keys()
    if len(topics) <= max_topics:
        return tally
    folded = replace(tally, refused=Counter(), refused_records=Counter(), far_ahead=Counter())
    for (_, error), count in tally.refused.items():
        folded.refused[OTHER, error] += count
    folded.refused_records[OTHER] = tally.refused_records.total()
    folded.far_ahead[OTHER] = tally.far_ahead.total()
    return folded
