"""Validates one batch without a broker, for `try`, `test` and dead letters. Uses the code that validates requests."""

from collections.abc import Sequence
from dataclasses import dataclass

from sluicegate.protocol.produce_request import PartitionData, ProduceRequest, TopicData
from sluicegate.protocol.records.codecs.codec import Codec
from sluicegate.protocol.records.codecs.decompression import Decompressor
from sluicegate.protocol.records.codecs.decompression_budget import DecompressionBudget
from sluicegate.protocol.records.writing import NewRecord, write_batch
from sluicegate.validation.policy import TopicPolicy, ValidationLimits
from sluicegate.validation.produce.request import validate_request
from sluicegate.validation.rules.rule import Client
from sluicegate.validation.validated_request import ValidatedRequest

_VERSION = 12  # the last version with topic names
PLACE = (0, 0)
"""The batch's place in its request."""


@dataclass(frozen=True, slots=True)
class BatchSettings:
    """How a batch is sent. The defaults are the Java producer's.

    `producer` contains the producer id, the epoch and the first sequence number.
    """

    producer: tuple[int, int, int] = (0, 0, 0)
    acks: int = -1
    codec: Codec = Codec.NONE


def validate_batch(
    topic: str,
    records: Sequence[NewRecord],
    policy: TopicPolicy,
    limits: ValidationLimits,
    now_ms: int,
    client: Client,
    sending: BatchSettings = BatchSettings(),  # this default is immutable
) -> ValidatedRequest:
    """Return the verdict on a request that contains one batch, at PLACE."""
    data = bytearray(write_batch(records, sending.producer, sending.codec.value))
    partition = PartitionData(0, 0, 0, len(data))
    request = ProduceRequest(data, _VERSION, None, sending.acks, [TopicData(topic, None, [partition])])
    budget = DecompressionBudget(
        limits.max_decompressed_bytes, limits.max_record_errors, lambda: None, most_headers=limits.max_request_headers
    )
    in_force = policy.for_client(client)
    return validate_request(
        request, {}, lambda _: in_force, limits, lambda: now_ms, Decompressor(), budget, client=client
    )
