"""Stored batches validated one by one, by the code that audits them on the wire."""

import time
from dataclasses import replace

from sluicegate.pipeline.jobs.audit.as_sent import CURRENT_VERSION, OLD_VERSION, as_sent, has_gaps
from sluicegate.pipeline.kafka.cluster import TopicPartition
from sluicegate.pipeline.kafka.fetching import StoredBatch
from sluicegate.protocol.produce_request import PartitionData, ProduceRequest, TopicData
from sluicegate.protocol.records.codecs.decompression import Decompressor
from sluicegate.protocol.records.codecs.decompression_budget import Allowance
from sluicegate.validation.policy import Framing, TopicPolicy, ValidationLimits
from sluicegate.validation.previous_times import PreviousTimes
from sluicegate.validation.produce import ValidatedRequest, validate_request
from sluicegate.validation.rulebook import Rulebook
from sluicegate.validation.verdict import Reason

PLACE = (0, 0)
"""Of the one batch in the request that it is validated as."""
_ALL_REPLICAS = -1
_PATIENCE_SECONDS = 30.0
_PAUSE_SECONDS = 1.0  # as long as a registry that has failed is left alone


class CannotBeValidated(Exception):
    """What a rule depends on does not answer, so nobody knows what it would say; the text says what to do."""


class PartitionValidator:
    """Of one partition; its batches come in their order, because some policies look at what came before."""

    def __init__(self, of: TopicPartition, rulebook: Rulebook, limits: ValidationLimits) -> None:
        self._of = of
        self._policy = rulebook.of(of.topic)
        self._policy_of_compacted = replace(self._policy, framing=Framing.BROKER)
        self._limits = limits
        self._decompressor = Decompressor()
        self._previous = PreviousTimes()

    def audit(self, batch: StoredBatch, now_ms: int) -> ValidatedRequest:
        """The verdict on a batch, at PLACE, as if it were a request of its own. Raises CannotBeValidated."""
        frame = as_sent(batch)
        version = OLD_VERSION if batch.header is None else CURRENT_VERSION
        topic = TopicData(self._of.topic, None, [PartitionData(self._of.partition, 0, 0, len(frame))])
        request = ProduceRequest(frame, version, None, _ALL_REPLICAS, [topic])
        given_up = time.monotonic() + _PATIENCE_SECONDS
        while True:
            validated = self._validated(request, self._policy_of(batch), now_ms)
            outage = _outage(validated)
            if outage is None:
                for partition, latest in validated.times.values():
                    self._previous.stored(*partition, latest)  # it is, in the log
                return validated
            if time.monotonic() > given_up:
                raise CannotBeValidated(
                    f"{self._of}: {outage}; nothing is known of the records from offset {batch.first_offset} on. "
                    "See to it, and start again"
                )
            time.sleep(_PAUSE_SECONDS)  # nothing announces that it answers again

    def _policy_of(self, batch: StoredBatch) -> TopicPolicy:
        """A batch with gaps was written by the log cleaner: its framing is sound, and its offsets are not as sent."""
        return self._policy_of_compacted if has_gaps(batch) else self._policy

    def _validated(self, request: ProduceRequest, policy: TopicPolicy, now_ms: int) -> ValidatedRequest:
        limits = self._limits
        allowance = Allowance(limits.max_decompressed_bytes, limits.max_record_errors, _go_on)
        return validate_request(
            request,
            {},
            lambda _topic: policy,
            limits,
            lambda: now_ms,
            self._decompressor,
            allowance,
            self._previous,
        )


def _outage(validated: ValidatedRequest) -> str | None:
    for told in (validated.rejected, validated.observed):
        if PLACE in told and told[PLACE].reason is Reason.OUTAGE:
            return told[PLACE].message or Reason.OUTAGE.value
    return None


def _go_on() -> None:
    """Nobody else waits for this thread."""
