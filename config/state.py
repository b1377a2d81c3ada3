"""The section `state`: the topics in which the proxies of one cluster keep what they agree on."""

from sluicegate.config.section import described, section
from sluicegate.config.values.kinds import TopicName, WrittenFileName


@section
class StateTopics:
    """What the proxies of one cluster agree on, kept in topics of that cluster ([shared state](shared-state.md)).

    Needs `pip install 'sluicegate[topic]'`.
    """

    topic: TopicName = described(
        "compacted topic with one partition. Suspensions are written to it, and apply to all proxies that name it"
    )
    history_topic: TopicName | None = described(
        "topic with a retention, for the history of changes: who, when, and which proxies took them. Default: the name "
        "of `topic` with `-history`",
        default=None,
    )
    presence_topic: TopicName | None = described(
        "topic with a short retention, in which each proxy announces itself every 5 s. Default: the name of `topic` "
        "with `-presence`",
        default=None,
    )
    snapshot_file: WrittenFileName | None = described(
        "file that keeps the last known state, for a start while the topic cannot be read. Default: such a start is "
        "not ready until the topic can be read",
        default=None,
    )

    @property
    def topics(self) -> frozenset[str]:
        """The names of all topics that only the proxies themselves change."""
        return frozenset({self.topic, self.history, self.presence})

    @property
    def history(self) -> str:
        """The name of the history topic."""
        return self.history_topic if self.history_topic is not None else f"{self.topic}-history"

    @property
    def presence(self) -> str:
        """The name of the presence topic."""
        return self.presence_topic if self.presence_topic is not None else f"{self.topic}-presence"
