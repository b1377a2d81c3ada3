"""Which topics have metric series of their own: those that the cluster or the configuration knows, 500 at most.

A name that only a client has said counts under `other`: else anybody could take all places. When they are all taken,
a topic of the client that has the most gives up its place, the one counted longest ago. What it has counted goes to
`other`, so that no sum ever falls.
"""

import threading
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from sluicegate.config.model import Config
from sluicegate.proxy.reporting.metrics.batch_events import BatchEvent, Unit
from sluicegate.proxy.reporting.metrics.counters import OTHER, Tally
from sluicegate.proxy.reporting.metrics.fair_label_slots import FairLabelSlots
from sluicegate.proxy.reporting.metrics.families import BATCH_COUNTERS
from sluicegate.proxy.reporting.metrics.family import TOPIC
from sluicegate.validation.verdict import Rejected

MAX_TOPICS = 500
_MAX_LEARNT = 10_000
_FEWEST_TOPICS = 25
_PATTERN = frozenset("*?[/")
_BY_TOPIC = tuple(family for family in BATCH_COUNTERS if TOPIC in family.labels)


_Counter = tuple[Counter[Any], int, bool, Callable[[Rejected], bool] | None]
"""A metric's counts, the place of its key in what `count` makes, whether it counts records, and `Counted.when`."""
_BY_LABELS = {(True, False): 0, (True, True): 1, (False, True): 2, (False, False): 3}
"""Whether a metric has the label topic, whether it has another: the place of its key."""


class TopicLabels:
    """Counts into `tally` by topic. `is_known`: whether the cluster has said that there is such a topic. `owner` is for
    whom something is counted (`ClientDetails.owner`). `folding` is held while counts move to `other`.
    """

    def __init__(
        self, tally: Tally, is_known: Callable[[str], bool], configured: Iterable[str], max_topics: int = MAX_TOPICS
    ) -> None:
        self._tally = tally
        self._is_known = is_known
        self._configured = frozenset(configured)
        self._learnt: OrderedDict[str, None] = OrderedDict()
        self._places: FairLabelSlots[str] = FairLabelSlots(max_topics)
        self._noted: defaultdict[str, set[str]] = defaultdict(set)  # what else a topic's counts are told apart by
        self._counters = _counters(tally)
        self.folding = threading.Lock()

    def configure(self, names: Iterable[str]) -> None:
        """Another file names topics now; what has a place keeps it."""
        self._configured = frozenset(names)

    def learn(self, topic: str) -> None:
        """The cluster has just answered in a way that shows that `topic` exists."""
        self._learnt[topic] = None
        self._learnt.move_to_end(topic)
        if len(self._learnt) > _MAX_LEARNT:
            self._learnt.popitem(last=False)

    def knows(self, topic: str) -> bool:
        """Whether `topic` is more than a name that a client has said."""
        return topic in self._configured or topic in self._learnt or self._is_known(topic)

    def count(
        self,
        event: BatchEvent,
        topic: str | None,
        owner: str,
        detail: str = "",
        records: int = 0,
        rejected: Rejected | None = None,
    ) -> str:
        """Count what happened to a batch in every metric of that event. Return the topic's label.

        `detail`: the value of the label that the event has beside `topic`; `records`: how many are bad or fixed;
        `rejected`: the verdict, where there is one.
        """
        label = self.label(topic, owner)
        keys = (label, (label, detail), detail, ())
        for counts, by, is_in_records, when in self._counters[event]:
            if when is None or (rejected is not None and when(rejected)):
                counts[keys[by]] += records if is_in_records else 1
        if detail and label is not OTHER:
            self._noted[label].add(detail)
        return label

    def counted(self) -> Tally:
        """A copy of the counters at one moment, for another thread."""
        with self.folding:
            return self._tally.copied()

    def label(self, topic: str | None, owner: str) -> str:
        """What counts under its name from now on, or `other`."""
        if topic is None or topic == OTHER:
            return OTHER
        if topic in self._places:
            self._places.use(topic, owner)
            return topic
        if not self.knows(topic):
            return OTHER
        if self._places.are_taken:
            replaced = self._places.of_others(owner) or self._places.of_its_own(owner)
            if replaced is None:
                return OTHER
            self._places.drop(replaced)
            self._fold(replaced, self._noted.pop(replaced, ()))
        self._places.add(topic, owner)
        return topic

    def _fold(self, topic: str, details: Iterable[str]) -> None:
        with self.folding:
            for family in _BY_TOPIC:
                counts = self._tally.batch_counts[family.name]
                if len(family.labels) == 1:
                    if topic in counts:
                        counts[OTHER] += counts.pop(topic)
                    continue
                for detail in details:
                    if (topic, detail) in counts:
                        counts[OTHER, detail] += counts.pop((topic, detail))


def _counters(tally: Tally) -> tuple[tuple[_Counter, ...], ...]:
    """For each event, in their order, what it adds to."""
    counters: list[list[_Counter]] = [[] for _ in BatchEvent]
    for family in BATCH_COUNTERS:
        assert family.counted is not None
        counts = tally.batch_counts.setdefault(family.name, Counter())
        by = _BY_LABELS[TOPIC in family.labels, bool({*family.labels} - {TOPIC})]
        counter: _Counter = (counts, by, family.counted.unit is Unit.RECORDS, family.counted.when)
        for event in family.counted.events:
            counters[event].append(counter)
    return tuple(map(tuple, counters))


def exact_names(config: Config) -> list[str]:
    """The topics that a configuration names, not by a pattern."""
    return [topic.match for topic in config.topics if not _PATTERN & set(topic.match)]


def topics_of_one(workers: int) -> int:
    """How many topics each of several workers labels, so that their sum has not many more than one would have."""
    return max(MAX_TOPICS // workers, _FEWEST_TOPICS)


def with_few_topics(tally: Tally, max_topics: int = MAX_TOPICS) -> Tally:
    """The same counts; where there are more than `max_topics`, those of all topics under `other`."""
    topics = {_topic_of(key) for family in _BY_TOPIC for key in tally.batch_counts[family.name]}
    if len(topics) <= max_topics:
        return tally
    counts = tally.batch_counts.copied()
    counts.update({family.name: _folded(counts[family.name]) for family in _BY_TOPIC})
    return replace(tally, batch_counts=counts)


def _topic_of(key: str | tuple[str, str]) -> str:
    return key if isinstance(key, str) else key[0]


def _folded(counts: Counter[Any]) -> Counter[Any]:
    folded: Counter[Any] = Counter()
    for key, count in counts.items():
        folded[OTHER if isinstance(key, str) else (OTHER, key[1])] += count
    return folded
