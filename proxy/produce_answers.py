"""What a client gets for a judged Produce request: the broker's answer, ours, or both merged."""

from protocol.produce_request import ProduceRequest
from protocol.produce_response import (
    BrokerAnswer,
    PartitionRefusal,
    RecordError,
    TopicKey,
    build_answer,
    encode_refusal,
)
from validation.produce import JudgedRequest
from validation.verdict import Refused


def answer_for(
    request: ProduceRequest,
    judged: JudgedRequest,
    correlation_id: int,
    broker: BrokerAnswer | None = None,
    tail: bytes | None = None,
) -> bytes:
    """The answer frame (without size), partitions in the order of the request.

    `broker` is what the broker said about the partitions that were forwarded, None when none was; `tail` its
    throttle time and tags.
    """
    topics: list[tuple[TopicKey, list[bytes]]] = []
    for t, topic in enumerate(request.topics):
        key: TopicKey = topic.name if topic.name is not None else (topic.topic_id or b"")
        entries = []
        for p, partition in enumerate(topic.partitions):
            refused = judged.refused.get((t, p))
            if refused is not None:
                entries.append(encode_refusal(partition.index, _as_answered(refused), request.version))
            elif broker is not None and (key, partition.index) in broker.entries:
                entries.append(broker.entries[key, partition.index])
        if entries:
            topics.append((key, entries))
    return build_answer(correlation_id, request.version, topics, tail)


def _as_answered(refused: Refused) -> PartitionRefusal:
    errors = tuple(RecordError(record.index, record.message) for record in refused.bad_records)
    return PartitionRefusal(refused.code, refused.message, errors)
