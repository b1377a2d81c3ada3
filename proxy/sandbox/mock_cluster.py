"""librdkafka's mock cluster, which the sandbox and the demo run inside their own process."""

from collections.abc import Iterable

from confluent_kafka import Producer

_SECONDS = 10


class MockCluster:
    """A cluster without Java, which ends when this object is deleted. It stores records in memory, unvalidated."""

    def __init__(self, brokers: int) -> None:
        # With "test.mock.num.brokers" a client starts its own cluster and ignores its bootstrap setting.
        self._host = Producer({"bootstrap.servers": "ignored", "test.mock.num.brokers": brokers, "log_level": 0})
        metadata = self._host.list_topics(timeout=_SECONDS)
        self._node_ids = sorted(metadata.brokers)
        self.bootstrap = [f"{broker.host}:{broker.port}" for broker in metadata.brokers.values()]

    def node_ids(self) -> list[int]:
        """Return the brokers' node ids."""
        return self._node_ids

    def create_topics(self, names: Iterable[str]) -> None:
        """Create topics with the mock cluster's default of four partitions. A request about a topic creates it."""
        for name in names:
            self._host.list_topics(name, timeout=_SECONDS)
