"""librdkafka's mock cluster: brokers in this very process, without Java or Docker.

It stores nothing for good and validates nothing, so whatever is refused here was refused by the proxy.
"""

from confluent_kafka import Producer

_SECONDS = 10


class EmbeddedCluster:
    """Runs as long as this object lives."""

    def __init__(self, brokers: int) -> None:
        # "test.mock.num.brokers" makes a client start its own cluster; its bootstrap setting is then ignored.
        self._host = Producer({"bootstrap.servers": "ignored", "test.mock.num.brokers": brokers, "log_level": 0})
        metadata = self._host.list_topics(timeout=_SECONDS)
        self.bootstrap = [f"{broker.host}:{broker.port}" for broker in metadata.brokers.values()]
