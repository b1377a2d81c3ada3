"""The section `state`: the topics with the state that a cluster's proxies share."""

from sluicegate.config.section import described, section
from sluicegate.config.values.kinds import TopicName, WrittenFileName


@section
class StateTopics:
    """The topics of the cluster through which its proxies share their state ([shared state](shared-state.md)).

    Needs `pip install 'sluicegate[topic]'`.
    """

    topic: TopicName = described(
        "A compacted topic with one partition. Suspensions are written to it and apply to all proxies that name it."
    )
    history_topic: TopicName | None = described(
        "A topic with a retention, for the history of changes: the person who made each change, its time, and the "
        "proxies that applied it. Default: the name of `topic` with `-history`.",
        default=None,
    )
    presence_topic: TopicName | None = described(
        "A topic with a short retention, in which each proxy announces itself every 5 s. Default: the name of "
        "`topic` with `-presence`.",
        default=None,
    )
    snapshot_file: WrittenFileName | None = described(
        "A file with the last known state, with which the proxy can start while the topic cannot be read. Default: "
        "the proxy is not ready until the topic can be read.",
        default=None,
    )

    @property
    def topics(self) -> frozenset[str]:
        """Return the names of all topics that only the proxies write."""
        return frozenset({self.topic, self.history, self.presence})

    @property
    def history(self) -> str:
        """The name of the history topic."""
        return self.history_topic if self.history_topic is not None else f"{self.topic}-history"

    @property
    def presence(self) -> str:
        """The name of the presence topic."""
        return self.presence_topic if self.presence_topic is not None else f"{self.topic}-presence"
