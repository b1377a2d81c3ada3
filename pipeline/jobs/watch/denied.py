"""Tracks the topics in a watch that its login may not read.

The watch continues with the other topics, and reads a denied topic again as soon as the login may read it.
"""

from collections.abc import Iterable
from dataclasses import replace

from sluicegate.pipeline.jobs.repair.required_acls import acl_sentence
from sluicegate.pipeline.kafka.acls import BrokerOperation, RequiredAcl, Resource, find_missing_acls
from sluicegate.pipeline.kafka.cluster import TopicTrouble, TopicUnknown
from sluicegate.pipeline.source.topics import Topics


class DeniedTopics:
    """The topics of a watch that are currently denied, each with the missing ACL."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self._denied: dict[str, str] = {}
        self._notices: list[str] = []

    @property
    def names(self) -> list[str]:
        """Return the denied topics."""
        return sorted(self._denied)

    def readable(self) -> Topics:
        """Check the denied topics again, and return the topics that can be read.

        Raises TopicTrouble if all are denied, and BrokerUnreachable.
        """
        if self._denied:
            still = self._lacking(self._denied)
            for name in sorted(set(self._denied) - set(still)):
                self._notices.append(f"{name} may be read again")
            self._denied = still
        names = tuple(name for name in self._topics.names if name not in self._denied)
        if not names:
            raise TopicTrouble(f"this login may not read any of the topics: {'; '.join(self._denied.values())}")
        return replace(self._topics, names=names)

    def find(self, topics: Topics) -> bool:
        """Find the denied topics after an error, and return whether there is a new one.

        Raises BrokerUnreachable.
        """
        found = {name: why for name, why in self._lacking(topics.names).items() if name not in self._denied}
        for name, why in sorted(found.items()):
            self._notices.append(f"{name} cannot be read; the other topics are watched without it. {why}")
        self._denied |= found
        return bool(found)

    def readable_topics(self) -> Topics:
        """Return the existing topics that the login may read.

        Raises TopicTrouble, BrokerUnreachable and ClusterLoginRejected.
        """
        while True:
            topics = self.readable()
            try:
                topics.partitions()
            except TopicUnknown:
                raise
            except TopicTrouble:
                if not self.find(topics):
                    raise
            else:
                return topics

    def take_notices(self) -> list[str]:
        """Return a sentence for each topic that was denied or granted since the last call."""
        taken, self._notices = self._notices, []
        return taken

    def _lacking(self, names: Iterable[str]) -> dict[str, str]:
        with self._topics.cluster() as cluster:
            lacks = find_missing_acls(
                cluster, [RequiredAcl(Resource.TOPIC, name, BrokerOperation.READ) for name in names]
            )
        return {right.name: acl_sentence(self._topics, right) for right in lacks}
