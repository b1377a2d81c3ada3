"""What a client gets for a judged Produce request: the broker's answer, ours, or both merged."""

from collections.abc import Mapping
from dataclasses import dataclass

from protocol.produce_request import ProduceRequest
from protocol.produce_response import (
    BrokerAnswer,
    PartitionRefusal,
    RecordError,
    TopicKey,
    build_answer,
    encode_refusal,
)
from validation.produce import Place
from validation.verdict import Refused


@dataclass(frozen=True, slots=True)
class AnswerShape:
    """What an answer has to name, without the request's bytes: those need not be kept until the broker answers."""

    correlation_id: int
    version: int
    topics: tuple[tuple[TopicKey, tuple[int, ...]], ...]


def shape_of(request: ProduceRequest, correlation_id: int) -> AnswerShape:
    """The shape of the answer to a request."""
    topics = tuple(
        (topic.name if topic.name is not None else topic.topic_id or b"", tuple(p.index for p in topic.partitions))
        for topic in request.topics
    )
    return AnswerShape(correlation_id, request.version, topics)


def answer_for(
    shape: AnswerShape,
    refused: Mapping[Place, Refused],
    broker: BrokerAnswer | None = None,
    tail: bytes | None = None,
) -> bytes:
    """The answer frame (without size), partitions in the order of the request.

    `broker` is what the broker said about the partitions that were forwarded, None when none was; `tail` its
    throttle time and tags.
    """
    topics: list[tuple[TopicKey, list[bytes]]] = []
    for t, (key, indexes) in enumerate(shape.topics):
        entries = []
        for p, index in enumerate(indexes):
            refusal = refused.get((t, p))
            if refusal is not None:
                entries.append(encode_refusal(index, _as_answered(refusal), shape.version))
            elif broker is not None and (key, index) in broker.entries:
                entries.append(broker.entries[key, index])
        if entries:
            topics.append((key, entries))
    return build_answer(shape.correlation_id, shape.version, topics, tail)


def _as_answered(refused: Refused) -> PartitionRefusal:
    errors = tuple(RecordError(record.index, record.message) for record in refused.bad_records)
    return PartitionRefusal(refused.code, refused.message, errors)
