"""Defines the headers that each writer of dead letters adds, and records with these headers."""

import struct

from sluicegate.dead_letters import Headers, Letter, StoredRecord, read_letter

TIME = 1_764_500_000_000
OWN: Headers = ((b"trace", b"7"), (b"trace", None))

SLUICEGATE: Headers = (
    (b"sluicegate.reason", b"timestamp_in_future"),
    (b"sluicegate.topic", b"orders"),
    (b"sluicegate.partition", b"2"),
    (b"sluicegate.index", b"0"),
    (b"sluicegate.timestamp", b"-5"),
    (b"sluicegate.client.id", b"shop"),
    (b"sluicegate.client.address", b"10.0.0.1:5000"),
    (b"sluicegate.version", b"0.1.0"),
)
# The headers of Kafka 4.3.1's DeadLetterQueueReporter.populateContextHeaders, which are strings in this order.
CONNECT: Headers = (
    (b"__connect.errors.topic", b"orders"),
    (b"__connect.errors.partition", b"2"),
    (b"__connect.errors.offset", b"41"),
    (b"__connect.errors.connector.name", b"to-warehouse"),
    (b"__connect.errors.task.id", b"0"),
    (b"__connect.errors.stage", b"VALUE_CONVERTER"),
    (b"__connect.errors.class.name", b"org.apache.kafka.connect.json.JsonConverter"),
    (b"__connect.errors.exception.class.name", b"org.apache.kafka.connect.errors.DataException"),
    (b"__connect.errors.exception.message", b"Converting byte[] to Kafka Connect data failed"),
    (b"__connect.errors.exception.stacktrace", b"org.apache.kafka..."),
)
# The headers of Kafka 4.3.1's ExceptionHandlerUtils.buildDeadLetterQueueRecord.
STREAMS: Headers = (
    (b"__streams.errors.exception", b"org.apache.kafka.common.errors.SerializationException"),
    (b"__streams.errors.message", b"Size of data received by LongDeserializer is not 8"),
    (b"__streams.errors.stacktrace", b"org.apache.kafka..."),
    (b"__streams.errors.topic", b"orders"),
    (b"__streams.errors.partition", b"2"),
    (b"__streams.errors.offset", b"41"),
)
# The headers of Kafka 4.4.0's ShareGroupDLQStateManager.ProduceRequestHandler.headers.
SHARE_GROUP: Headers = (
    (b"__dlq.errors.topic", b"orders"),
    (b"__dlq.errors.partition", b"2"),
    (b"__dlq.errors.offset", b"41"),
    (b"__dlq.errors.group", b"packers"),
    (b"__dlq.errors.delivery.count", b"5"),
    (b"__dlq.errors.message", b"Offset delivery count exceeded the threshold."),
)
# The headers of Spring Kafka's DeadLetterPublishingRecoverer. Numbers come from Java's ByteBuffer, which is big-endian.
SPRING: Headers = (
    (b"kafka_dlt-exception-fqcn", b"org.springframework.kafka.listener.ListenerExecutionFailedException"),
    (b"kafka_dlt-exception-cause-fqcn", b"java.lang.IllegalStateException"),
    (b"kafka_dlt-exception-message", b"Listener failed; order 17 has no lines"),
    (b"kafka_dlt-exception-stacktrace", b"org.springframework..."),
    (b"kafka_dlt-original-topic", b"orders"),
    (b"kafka_dlt-original-partition", struct.pack(">i", 2)),
    (b"kafka_dlt-original-offset", struct.pack(">q", 41)),
    (b"kafka_dlt-original-timestamp", struct.pack(">q", 1_764_000_000_000)),
    (b"kafka_dlt-original-timestamp-type", b"CreateTime"),
    (b"kafka_dlt-original-consumer-group", b"packers"),
)


def record(headers: Headers, value: bytes | None = b"v", offset: int = 0, time: int = TIME) -> StoredRecord:
    return StoredRecord("dead", 0, offset, time, b"k", value, headers)


def letter(headers: Headers, value: bytes | None = b"v", offset: int = 0, time: int = TIME) -> Letter:
    found = read_letter(record(headers, value, offset, time))
    assert found is not None
    return found


def streams_letter(text: str, offset: int = 0) -> Letter:
    headers = tuple((name, text.encode() if name.endswith(b".message") else value) for name, value in STREAMS)
    return letter(headers, offset=offset)
