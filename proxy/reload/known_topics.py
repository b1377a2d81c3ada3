"""The topics that a proxy knows: those in policies, those with traffic, and those in the cluster."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from sluicegate.config.loading import Loaded
from sluicegate.config.values.near_names import did_you_mean
from sluicegate.config.values.topic_pattern import exact_name_of
from sluicegate.proxy.cluster.topics import ListedNames
from sluicegate.validation.topic_patterns import TopicPatterns


class NoSuchTopic(Exception):
    """Neither the policies nor the cluster contain this topic, or no topic matches this pattern.

    The message lists similar names.
    """


@dataclass(frozen=True, slots=True)
class KnownTopics:
    """Finds known topics. The functions may block.

    `loaded` returns the configuration in force. `with_traffic` returns the topics that clients have used. `listed`
    returns the cluster's topics; its argument is the topic in question, or None.
    """

    loaded: Callable[[], Loaded]
    with_traffic: Callable[[], Iterable[str]]
    listed: Callable[[str | None], ListedNames]

    def matching(self, pattern: str, also: Iterable[str] = ()) -> list[str]:
        """Return the known topics that `pattern` matches, sorted by name.

        `also` contains more known topics. If the cluster does not respond, or hides the topic, a name is accepted
        unchecked. Raises NoSuchTopic. Blocks.
        """
        exact = exact_name_of(pattern)
        known = {*self._named(), *also}
        if exact in known:
            return [pattern]
        cluster = self.listed(exact)
        known.update(cluster.names)
        if exact is not None:
            if exact in known or cluster.reason is not None or cluster.is_hidden:
                return [pattern]
            raise NoSuchTopic(_no_topic(exact, known))
        patterns = TopicPatterns([pattern])
        if found := sorted(name for name in known if patterns.first_match(name) is not None):
            return found
        reason = f"; the cluster was not queried: {cluster.reason}" if cluster.reason else ""
        raise NoSuchTopic(
            f"{pattern} matches no topic of a policy, and none that the cluster lists for the proxy's login{reason}"
        )

    def doubt(self, topic: str) -> str | None:
        """Return a sentence with similar names if no entry matches this topic and the cluster does not contain it.

        Otherwise return None. If the cluster does not respond, or hides the topic, the sentence is returned only if a
        policy contains a similar name. Blocks.
        """
        known = self._named()
        if topic in known:
            return None
        entries = TopicPatterns([entry.match for entry in self.loaded().config.topics])
        if entries.first_match(topic) is not None:
            return None  # the explanation names the entry, and reports that the cluster has no such topic
        cluster = self.listed(topic)
        known.update(cluster.names)
        if topic in known:
            return None
        if cluster.reason is None and not cluster.is_hidden:
            return _no_topic(topic, known)
        near = did_you_mean(topic, known)
        return f"no policy names the topic {topic}{near}" if near else None

    def _named(self) -> set[str]:
        named = (exact_name_of(topic.match) for topic in self.loaded().config.topics)
        return {name for name in (*named, *self.with_traffic()) if name is not None}


def _no_topic(name: str, known: Iterable[str]) -> str:
    return f"neither a policy nor the cluster has the topic {name}{did_you_mean(name, known)}"
