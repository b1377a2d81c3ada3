"""The plan for creating the shared state's topics, which `doctor` prints and `bootstrap --state` carries out."""

from collections.abc import Mapping
from dataclasses import dataclass

from sluicegate.config.state import StateTopics

REPLICAS = 3
_RIGHTS = "allow the proxy's login READ, WRITE, DESCRIBE and DESCRIBE_CONFIGS on it"
_IN_SYNC = "min.insync.replicas"
_PRESENCE = {
    "cleanup.policy": "delete",
    "retention.ms": "3600000",
    "segment.ms": "600000",
    "message.timestamp.type": "LogAppendTime",  # so that each proxy's clock can be compared with the broker's
}
_NINETY_DAYS_MS = 90 * 86_400_000


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """One topic's settings. `key` is the configuration key that names the topic."""

    key: str
    name: str
    settings: Mapping[str, str]
    replicas: int = REPLICAS

    @property
    def options(self) -> str:
        """The options for kafka-topics.sh."""
        settings = " ".join(f"--config {name}={value}" for name, value in self.settings.items())
        return f"--partitions 1 --replication-factor {self.replicas} {settings}"

    @property
    def remedy(self) -> str:
        """The advice if the topic is missing or the proxy may not use it."""
        return f"run sluicegate bootstrap --state FILE, or create {self.name} with {self.options}, and {_RIGHTS}"


def plans_of(keys: StateTopics, brokers: int = REPLICAS) -> tuple[TopicPlan, ...]:
    """Return the plan for each topic, for a cluster with `brokers` brokers.

    With fewer than three brokers, topics have fewer replicas.
    """
    replicas = min(REPLICAS, brokers)
    in_sync = {_IN_SYNC: str(min(2, replicas))}
    retained = {"cleanup.policy": "delete", "retention.ms": str(_NINETY_DAYS_MS)}
    return (
        TopicPlan("state.topic", keys.topic, {"cleanup.policy": "compact", **in_sync}, replicas),
        TopicPlan("state.history_topic", keys.history, {**retained, **in_sync}, replicas),
        TopicPlan("state.presence_topic", keys.presence, _PRESENCE, replicas),
    )
