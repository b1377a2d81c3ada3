"""Converts Produce requests of versions 0 to 2 to version 3, for clusters that no longer accept the older versions.

First, each partition is validated as a broker of Kafka 3.9 would validate these formats before converting them. Then
its messages are written as one batch, which `validate_request` validates like any other batch.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from sluicegate.protocol.errors import ErrorCode
from sluicegate.protocol.legacy_produce import with_batches
from sluicegate.protocol.produce_request import ProduceRequest
from sluicegate.protocol.records.batch_output import BatchTooLarge
from sluicegate.protocol.records.codecs.codec import Codec
from sluicegate.protocol.records.codecs.decompression import DecompressedStream, Decompressor
from sluicegate.protocol.records.codecs.decompression_budget import (
    DecompressionBudget,
    OverLimit,
    PayloadLimits,
)
from sluicegate.protocol.records.legacy import BatchSizes, NegativeTimestamp, convert_messages
from sluicegate.protocol.records.message_set import Message
from sluicegate.protocol.records.record_batch import CODEC_MASK, MAGIC_2, magic_at, next_batch_end
from sluicegate.protocol.records.stand_in import stand_in
from sluicegate.validation.dispositions.rewritten import GrowthAllowance
from sluicegate.validation.findings import finding_over_limit
from sluicegate.validation.policy import Framing, TimestampType, TopicPolicy, ValidationLimits
from sluicegate.validation.produce.request import finding_about_request
from sluicegate.validation.validated_request import Place
from sluicegate.validation.validator import Submission, validate_partition
from sluicegate.validation.verdict import Accepted, FaultStage, Finding, Reason, Verdict

# The cost of each partition, in bytes of work.
_PARTITION_WORK = 4096
_CODECS = tuple(Codec)
_NOTHING = memoryview(b"")
_FORMATS_REMEMBERED = 256
_ATTRIBUTES_AT = 17  # in a message of magic 0 or 1


@dataclass(frozen=True, slots=True)
class ConvertedRequest:
    """A request converted to version 3. `version` is the original version.

    `settled` contains verdicts on partitions without a converted batch: a finding if a broker of Kafka 3.9 would reject
    the messages, or an acceptance if there are none. These partitions contain a stand-in.
    """

    request: ProduceRequest
    version: int
    settled: Mapping[Place, Verdict]


def convert_request(
    request: ProduceRequest,
    policy_of: Callable[[str], TopicPolicy],
    limits: ValidationLimits,
    now_ms: Callable[[], int],
    decompressor: Decompressor,
    budget: DecompressionBudget,
) -> ConvertedRequest:
    """Convert a request of version 0 to 2.

    `budget` is the budget of the whole request. The validation that follows counts the payloads again. Raises Abandoned
    and OutOfTime.
    """
    whole = finding_about_request(request)
    conversion = _Conversion(limits, decompressor, budget.for_rereading())
    batches: dict[Place, bytes] = {}
    settled: dict[Place, Verdict] = {}
    for t, topic in enumerate(request.topics):
        name = topic.name or ""
        policy = policy_of(name)
        for p, partition in enumerate(topic.partitions):
            budget.worked(_PARTITION_WORK)
            submission = Submission(name, partition.index, request.records(t, p), request.version)
            if whole is not None:
                settled[t, p] = replace(whole, stage=FaultStage.LOG)
                batches[t, p] = stand_in(_NOTHING)
                continue
            found = conversion.converted(submission, policy, now_ms())
            if isinstance(found, bytes):
                batches[t, p] = found
            else:
                batches[t, p] = stand_in(_NOTHING)
                settled[t, p] = found
    return ConvertedRequest(with_batches(request, batches), request.version, settled)


@lru_cache(maxsize=_FORMATS_REMEMBERED)
def _remembered_formats(timestamp_type: TimestampType, max_message_bytes: int | None) -> TopicPolicy:
    """Return a policy with only those checks of the old formats that the converted batch does not undergo itself."""
    return TopicPolicy(timestamp_type=timestamp_type, max_message_bytes=max_message_bytes, framing=Framing.BROKER)


def _is_plain(records: memoryview) -> bool:
    """Return whether the first message is not compressed.

    Wrong sizes in such a message make a broker fail. The same finding about a compressed one has more causes, most of
    which a broker rejects.
    """
    return len(records) > _ATTRIBUTES_AT and not records[_ATTRIBUTES_AT] & CODEC_MASK


class _Conversion:
    def __init__(self, limits: ValidationLimits, decompressor: Decompressor, budget: DecompressionBudget) -> None:
        """Create a converter. `budget` must allow for reading each payload twice."""
        self._limits = limits
        self._decompressor = decompressor
        self._budget = budget
        self._growth = GrowthAllowance()

    def converted(self, submission: Submission, policy: TopicPolicy, now_ms: int) -> bytes | Verdict:
        """Return the batch for one partition, or the verdict if there is none."""
        formats = _remembered_formats(policy.timestamp_type, policy.max_message_bytes)
        verdict = self._verdict(submission, formats, now_ms)
        records = submission.records
        if isinstance(verdict, Accepted) and records is not None:
            end = next_batch_end(records, 0)
            if end is None:
                return Accepted(0, 0)
            if magic_at(records, 0) == MAGIC_2:  # brokers accept magic 2 in old requests, too
                return bytes(records[:end])
            found = self._batch_or_finding(submission, records, verdict.records)
            if isinstance(found, bytes):
                return found
            verdict = found
        if isinstance(verdict, Accepted):  # the records are null; brokers of Kafka 3.9 send no response to that
            return Finding(ErrorCode.INVALID_RECORD, Reason.NO_BATCH)
        # If there are several faults, report the same one as a broker.
        first = self._verdict(submission, policy, now_ms)
        if isinstance(first, Finding):
            verdict = first
        if verdict.reason is Reason.RECORD_FORMAT and records is not None and _is_plain(records):
            verdict = replace(verdict, code=ErrorCode.UNKNOWN_SERVER_ERROR)
        return replace(verdict, stage=FaultStage.LOG, bad_records=(), bad_count=0)  # absent in old responses

    def _verdict(self, submission: Submission, policy: TopicPolicy, now_ms: int) -> Verdict:
        return validate_partition(submission, policy, self._limits, now_ms, self._decompressor, self._budget)

    def _batch_or_finding(self, submission: Submission, records: memoryview, count: int) -> bytes | Finding:
        try:
            return self._batch_of(records, count)
        except NegativeTimestamp:
            text = "A time before 1970 cannot be converted to the record format of Kafka 4."
            return Finding(ErrorCode.UNKNOWN_SERVER_ERROR, Reason.RECORD_FORMAT, text, records=count)
        except BatchTooLarge:
            return Finding(ErrorCode.MESSAGE_TOO_LARGE, Reason.BATCH_TOO_LARGE, records=count)
        except OverLimit as over:
            return finding_over_limit(submission.topic, submission.partition, over, count)
        finally:
            self._decompressor.close()

    def _batch_of(self, records: memoryview, count: int) -> bytes:
        limits = self._limits
        most = self._growth.most_bytes(len(records))
        sizes = BatchSizes(most, limits.max_decompressed_bytes, limits.max_decompression_window_bytes)
        batch = convert_messages(records, count, lambda wrapper: self._opened(records, wrapper), sizes, self._budget)
        self._growth.spend(len(records), len(batch))
        return batch

    def _opened(self, records: memoryview, wrapper: Message) -> DecompressedStream:
        value = records[wrapper.value_at : wrapper.value_at + wrapper.value_size]
        window = self._limits.max_decompression_window_bytes
        bounds = PayloadLimits(self._limits.plain_limit(len(value)), window, self._budget)
        return self._decompressor.open(_CODECS[wrapper.codec_id], value, bounds, wrapper.magic)
