"""Reads a topic's committed records in order, directly from the brokers."""

from confluent_kafka import Consumer, IsolationLevel, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from tests.broker.eventually import eventually
from tests.faults.load import PARTITIONS, TIMEOUT_SECONDS, Records


def read_stored_numbers(bootstrap: str, topic: str) -> Records:
    """Return the numbers in each partition up to its end. Waits until no transaction is open there."""
    eventually(lambda: _all_is_decided(bootstrap, topic), TIMEOUT_SECONDS, f"no open transaction in {topic}")
    settings = {"bootstrap.servers": bootstrap, "group.id": f"{topic}-reader", "isolation.level": "read_committed"}
    consumer = Consumer(settings | {"enable.partition.eof": True, "enable.auto.commit": False, "log_level": 0})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    found: Records = {partition: [] for partition in range(PARTITIONS)}
    ended: set[int] = set()
    while len(ended) < PARTITIONS:
        message = consumer.poll(TIMEOUT_SECONDS)
        assert message is not None
        if message.error() is None:
            found[message.partition()].append(int(message.value()))
        else:
            ended.add(message.partition())
    consumer.close()
    return found


def _all_is_decided(bootstrap: str, topic: str) -> bool:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    return _ends(admin, topic, IsolationLevel.READ_COMMITTED) == _ends(admin, topic, IsolationLevel.READ_UNCOMMITTED)


def _ends(admin: AdminClient, topic: str, level: IsolationLevel) -> list[int]:
    wanted = {TopicPartition(topic, partition): OffsetSpec.latest() for partition in range(PARTITIONS)}
    found = admin.list_offsets(wanted, isolation_level=level, request_timeout=30)
    return [found[key].result(TIMEOUT_SECONDS).offset for key in found]
