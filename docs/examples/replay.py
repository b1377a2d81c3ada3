"""Sends the records of a dead-letter topic to where they were meant to go, with their nanoseconds made milliseconds.

Records with times of another kind are passed over, and counted.
"""

import sys

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition

FIRST_NANOSECOND = 10**17  # as milliseconds, this is three million years from now
OURS = "sluicegate."

server, dead_letters = sys.argv[1:]
consumer = Consumer(
    {
        "bootstrap.servers": server,
        "group.id": f"replay-{dead_letters}",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
    }
)
producer = Producer({"bootstrap.servers": server, "enable.idempotence": True})
known = consumer.list_topics(dead_letters, timeout=10).topics[dead_letters].partitions
places = consumer.committed([TopicPartition(dead_letters, partition) for partition in known])
for place in places:
    if place.offset < 0:
        place.offset = OFFSET_BEGINNING
consumer.assign(places)

unread, rejected, sent, passed_over = set(known), [], 0, 0
while unread:
    record = consumer.poll(1)
    if record is None:
        continue
    if record.error():
        if record.error().code() != KafkaError._PARTITION_EOF:
            sys.exit(record.error().str())
        unread.discard(record.partition())
        continue
    headers = record.headers() or []
    ours = {name: value.decode() for name, value in headers if name.startswith(OURS)}  # the last of equal records
    time = int(ours["sluicegate.timestamp"])
    if time < FIRST_NANOSECOND:
        passed_over += 1
        continue
    sent += 1
    producer.produce(
        ours["sluicegate.topic"],
        record.value(),
        record.key(),
        timestamp=time // 1_000_000,
        headers=[header for header in headers if not header[0].startswith(OURS)],
        on_delivery=lambda error, _: rejected.append(error) if error else None,
    )
    producer.poll(0)
producer.flush()
if rejected:
    sys.exit(f"{len(rejected)} of {sent} were rejected, so nothing is marked as done: {rejected[0].str()}")
if sent or passed_over:
    consumer.commit(asynchronous=False)
consumer.close()
print(f"{sent} sent, {passed_over} passed over")
