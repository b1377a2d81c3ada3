"""Validates stored batches one by one, with the code that validates them on the wire.

A broker changes batches before it stores them: it assigns offsets and may set times. `batch_as_sent` reverts these
changes, so that the batch is validated as its producer sent it. The proxy's own marks (`mode: mark`) are also removed.
Recompression (`compression.type`) and conversion cannot be reverted; in these cases the sizes are those that the broker
stored.
"""

import time
from collections import Counter
from dataclasses import replace
from struct import Struct
from zlib import crc32

from crc32c import crc32c

from sluicegate.pipeline.jobs.audit.policies import EncryptedCounts
from sluicegate.pipeline.kafka.cluster import TopicPartition
from sluicegate.pipeline.kafka.fetching import StoredBatch
from sluicegate.pipeline.runs.errors import PipelineError
from sluicegate.protocol.integers import LONG_MAX
from sluicegate.protocol.produce_request import PartitionData, ProduceRequest, TopicData
from sluicegate.protocol.records.codecs.decompression import Decompressor
from sluicegate.protocol.records.codecs.decompression_budget import DecompressionBudget
from sluicegate.protocol.records.record_batch import LOG_APPEND_TIME, RecordBatch, has_valid_crc
from sluicegate.validation.dispositions.marks import without_marks
from sluicegate.validation.policy import Framing, TimeFix, TopicPolicy, ValidationLimits
from sluicegate.validation.previous_times import PreviousTimes
from sluicegate.validation.produce.request import validate_request
from sluicegate.validation.rulebook import Rulebook
from sluicegate.validation.rules.built_in import MonotonicTime
from sluicegate.validation.rules.rule import Mode
from sluicegate.validation.validated_request import ValidatedRequest
from sluicegate.validation.verdict import Reason

CURRENT_VERSION, OLD_VERSION = 12, 2
"""Versions of Produce: the last version with topic names, and the last version with messages of magic 0 and 1."""

_INT32, _UINT32, _INT64 = Struct(">i"), Struct(">I"), Struct(">q")
_CRC_AT, _ATTRIBUTES_LOW_AT, _LAST_DELTA_AT = 17, 22, 23
_MESSAGE_CRC_AT, _MESSAGE_MAGIC_AT, _MESSAGE_ATTRIBUTES_AT = 12, 16, 17


def batch_as_sent(batch: StoredBatch) -> bytearray:
    """Return a copy with the offsets that a producer assigns: they begin at 0, without the gaps that compaction leaves.

    LogAppendTime, which only brokers set, is removed. A wrong CRC stays wrong.
    """
    frame = bytearray(batch.data[batch.start : batch.end])
    if batch.header is None:
        _clear_message(frame)
        return frame
    _INT64.pack_into(frame, 0, 0)
    header = batch.header
    is_stamped = header.attributes & LOG_APPEND_TIME != 0
    if (has_gaps(batch) or is_stamped) and has_valid_crc(
        memoryview(frame), RecordBatch(memoryview(frame), 0, len(frame))
    ):
        if has_gaps(batch):
            _INT32.pack_into(frame, _LAST_DELTA_AT, header.record_count - 1)
        frame[_ATTRIBUTES_LOW_AT] &= ~LOG_APPEND_TIME
        _UINT32.pack_into(frame, _CRC_AT, crc32c(frame[_CRC_AT + 4 :]))
    return frame


def has_gaps(batch: StoredBatch) -> bool:
    """Return whether compaction removed some, but not all, of the records in a batch of magic 2."""
    header = batch.header
    return header is not None and header.record_count > 0 and header.last_offset_delta + 1 != header.record_count


def _clear_message(frame: bytearray) -> None:
    stored = _UINT32.unpack_from(frame, _MESSAGE_CRC_AT)[0]
    is_stamped = frame[_MESSAGE_MAGIC_AT] > 0 and frame[_MESSAGE_ATTRIBUTES_AT] & LOG_APPEND_TIME
    if is_stamped and crc32(frame[_MESSAGE_MAGIC_AT:]) == stored:
        frame[_MESSAGE_ATTRIBUTES_AT] &= ~LOG_APPEND_TIME
        _UINT32.pack_into(frame, _MESSAGE_CRC_AT, crc32(frame[_MESSAGE_MAGIC_AT:]))


PLACE = (0, 0)
"""Key of the request's only batch."""
_ALL_REPLICAS = -1
TIMEOUT_SECONDS = 30.0
PAUSE_SECONDS = 1.0  # the wait before the validator tries a failed registry again


def depends_on_earlier_batches(policy: TopicPolicy) -> bool:
    """Return whether the verdict on a batch depends on earlier batches of its partition."""
    rules = () if policy.rules is None else policy.rules.rules
    return policy.fix is TimeFix.PREVIOUS or any(isinstance(named.rule, MonotonicTime) for named in rules)


class CannotBeValidated(PipelineError):
    """Raised if a rule cannot validate records because a dependency does not respond. The message gives a fix."""


class PartitionValidator:
    """Validates the batches of one partition in order, because some policies depend on earlier batches.

    If the policy does not depend on them (`depends_on_earlier_batches`), a batch may be validated several times, each
    time as of another time. `bounds_age` is whether a record can be too old. `encrypted` contains the numbers of
    records in the last batch that serializers encrypted, by registry and encrypted part.
    """

    def __init__(
        self,
        of: TopicPartition,
        rulebook: Rulebook,
        limits: ValidationLimits,
        encrypted_counts: EncryptedCounts | None = None,
    ) -> None:
        self._of = of
        self._policy = rulebook.policy_of(of.topic)
        self._policy_of_compacted = replace(self._policy, framing=Framing.BROKER)
        self._limits = limits
        self._decompressor = Decompressor()
        self._previous = PreviousTimes()
        self._encrypted_counts = encrypted_counts or EncryptedCounts()
        self.encrypted = Counter[tuple[str, str]]()
        self.depends_on_earlier_batches = depends_on_earlier_batches(self._policy)
        self.bounds_age = self._policy.before_max_ms != LONG_MAX

    def validate(self, batch: StoredBatch, now_ms: int) -> ValidatedRequest:
        """Return the verdict on a batch, at PLACE, as if it were a separate request. Raises CannotBeValidated."""
        frame = batch_as_sent(batch)
        if self._policy.mode is Mode.MARK and batch.header is not None:
            frame = self._unmarked(frame)
        version = OLD_VERSION if batch.header is None else CURRENT_VERSION
        topic = TopicData(self._of.topic, None, [PartitionData(self._of.partition, 0, 0, len(frame))])
        request = ProduceRequest(frame, version, None, _ALL_REPLICAS, [topic])
        given_up = time.monotonic() + TIMEOUT_SECONDS
        while True:
            self._encrypted_counts.take()
            validated = self._validated(request, self._policy_of(batch), now_ms)
            self.encrypted = self._encrypted_counts.take()
            outage = _outage(validated)
            if outage is None:
                for partition, latest in validated.times.values():
                    self._previous.note_stored(*partition, latest)  # the batch is stored
                return validated
            if time.monotonic() > given_up:
                raise CannotBeValidated(
                    f"{self._of}: {outage}; records from offset {batch.first_offset} on were not validated. Fix this "
                    f"and start again"
                )
            time.sleep(PAUSE_SECONDS)  # a registry does not announce its recovery

    def _unmarked(self, frame: bytearray) -> bytearray:
        """Return the batch without the headers that the proxy added. A wrong CRC stays wrong."""
        records = memoryview(frame)
        if not has_valid_crc(records, RecordBatch(records, 0, len(frame))):
            return frame
        found = without_marks(records, self._limits, self._decompressor)
        return frame if found is None else bytearray(found)

    def _policy_of(self, batch: StoredBatch) -> TopicPolicy:
        """Return the policy for a batch.

        If the batch has gaps, the policy does not check the framing, because the log cleaner changed the offsets.
        """
        return self._policy_of_compacted if has_gaps(batch) else self._policy

    def _validated(self, request: ProduceRequest, policy: TopicPolicy, now_ms: int) -> ValidatedRequest:
        limits = self._limits
        budget = DecompressionBudget(limits.max_decompressed_bytes, limits.max_record_errors, _no_check)
        return validate_request(
            request,
            {},
            lambda _topic: policy,
            limits,
            lambda: now_ms,
            self._decompressor,
            budget,
            self._previous,
        )


def _outage(validated: ValidatedRequest) -> str | None:
    rejected = validated.rejected.get(PLACE)
    for found in (*(() if rejected is None else (rejected,)), *validated.observed.get(PLACE, ())):
        if found.reason is Reason.DEPENDENCY_UNAVAILABLE:
            return found.message or Reason.DEPENDENCY_UNAVAILABLE.value
    return None


def _no_check() -> None:
    """Do nothing, because no other client waits for this thread."""
