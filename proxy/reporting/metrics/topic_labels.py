"""Which topics have metric series of their own: those that the cluster or the configuration knows, 500 at most.

A name that only a client has said counts under `other`: else anybody could take all places. When they are all taken,
a topic of the client that has the most gives up its place, the one counted longest ago. What it has counted goes to
`other`, so that no sum ever falls.
"""

import threading
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace

from sluicegate.config.model import Config
from sluicegate.proxy.reporting.metrics.counters import OTHER, Tally
from sluicegate.proxy.reporting.metrics.fair_label_slots import FairPlaces
from sluicegate.proxy.reporting.metrics.histogram import Durations

MAX_TOPICS = 500
_MAX_LEARNT = 10_000
_FEWEST_TOPICS = 25
_PATTERN = frozenset("*?[/")
# A Tally's counters by topic alone, and by topic and one thing more.
_BY_TOPIC = (
    *("refused_records", "far_ahead", "unreadable", "observed_records", "fixed", "fixed_records"),
    *("quarantined_records", "quarantine_failures", "broker_failed"),
)
_COPIED = (
    *("rehearsed_clients", "rule_batches", "rule_records", "violations", "judged_batches", "judged_records"),
    *("judged_bytes", "fast_taken", "closely_taken", "looked_closer", "request_errors", "broker_invalid"),
    *("cluster_looks", "connections_refused", "connections_delayed", "limits_reached"),
    *("throttled", "throttled_ms"),
    *("cut_off", "unsupported_versions"),
)
_BY_TOPIC_AND_MORE = ("refused", "observed", "quarantined", "rehearsed", "rehearsed_records")


class TopicLabels:
    """Counts into `tally` by topic. `is_known`: whether the cluster has said that there is such a topic. `owner` is for
    whom something is counted (`Who.owner`). `folding` is held while counts move to `other`.
    """

    def __init__(
        self, tally: Tally, is_known: Callable[[str], bool], configured: Iterable[str], max_topics: int = MAX_TOPICS
    ) -> None:
        self._tally = tally
        self._is_known = is_known
        self._configured = frozenset(configured)
        self._learnt: OrderedDict[str, None] = OrderedDict()
        self._places: FairPlaces[str] = FairPlaces(max_topics)
        self._noted: defaultdict[str, set[str]] = defaultdict(set)  # what else a topic's counts are told apart by
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

    def refused(self, topic: str | None, error: str, records: int, owner: str) -> str:
        """A batch was refused, with so many bad records. Gives what it counts under."""
        label = self.label(topic, owner)
        self._tally.refused[label, error] += 1
        self._tally.refused_records[label] += records
        self._note(label, error)
        return label

    def observed(self, topic: str | None, error: str, records: int, owner: str) -> str:
        """A batch was forwarded that would have been refused, with so many bad records."""
        label = self.label(topic, owner)
        self._tally.observed[label, error] += 1
        self._tally.observed_records[label] += records
        self._note(label, error)
        return label

    def fixed(self, topic: str | None, records: int, owner: str) -> str:
        """A batch was forwarded with so many records given other times."""
        label = self.label(topic, owner)
        self._tally.fixed[label] += 1
        self._tally.fixed_records[label] += records
        return label

    def quarantined(self, topic: str | None, error: str, records: int, owner: str) -> str:
        """A batch was refused, and so many bad records of it were kept in another topic."""
        label = self.label(topic, owner)
        self._tally.quarantined[label, error] += 1
        self._tally.quarantined_records[label] += records
        self._note(label, error)
        return label

    def not_quarantined(self, topic: str | None, owner: str) -> None:
        """The bad records of a batch could not be kept."""
        self._tally.quarantine_failures[self.label(topic, owner)] += 1

    def rehearsed(self, topic: str | None, bound: str, records: int, owner: str) -> None:
        """A bound that is only tried would have refused so many records of a batch."""
        label = self.label(topic, owner)
        self._tally.rehearsed[label, bound] += 1
        self._tally.rehearsed_records[label, bound] += records
        self._note(label, bound)

    def far_ahead(self, topic: str | None, owner: str) -> None:
        """A good batch was more than an hour ahead."""
        self._tally.far_ahead[self.label(topic, owner)] += 1

    def unreadable(self, topic: str | None, owner: str) -> str:
        """A batch was forwarded that some clients cannot read. Returns the label it counts under."""
        label = self.label(topic, owner)
        self._tally.unreadable[label] += 1
        return label

    def counted(self) -> Tally:
        """A copy of the counters at one moment, for another thread."""
        tally = self._tally
        with self.folding:
            copied = replace(tally)
            for name in (*_BY_TOPIC, *_BY_TOPIC_AND_MORE, *_COPIED):
                setattr(copied, name, Counter(getattr(tally, name)))
            copied.proxy_seconds = tally.proxy_seconds.copied()
            copied.upstream_seconds = tally.upstream_seconds.copied()
            copied.loop_delay = tally.loop_delay + Durations()
            return copied

    def _note(self, label: str, error: str) -> None:
        if label is not OTHER:
            self._noted[label].add(error)

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

    def _fold(self, topic: str, others: Iterable[str]) -> None:
        with self.folding:
            for name in _BY_TOPIC_AND_MORE:
                pairs: Counter[tuple[str, str]] = getattr(self._tally, name)
                for other in others:
                    if (topic, other) in pairs:
                        pairs[OTHER, other] += pairs.pop((topic, other))
            for name in _BY_TOPIC:
                counts: Counter[str] = getattr(self._tally, name)
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
    topics = {topic for name in _BY_TOPIC for topic in getattr(tally, name)}
    topics |= {topic for name in _BY_TOPIC_AND_MORE for topic, _ in getattr(tally, name)}
    if len(topics) <= max_topics:
        return tally
    folded = replace(tally)
    for name in _BY_TOPIC_AND_MORE:
        setattr(folded, name, _folded(getattr(tally, name)))
    for name in _BY_TOPIC:
        total = getattr(tally, name).total()
        setattr(folded, name, Counter({OTHER: total} if total else {}))
    return folded


def _folded(pairs: Counter[tuple[str, str]]) -> Counter[tuple[str, str]]:
    folded: Counter[tuple[str, str]] = Counter()
    for (_, other), count in pairs.items():
        folded[OTHER, other] += count
    return folded
