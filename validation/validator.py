"""Validates a partition's records as a broker with this topic's settings would before storing them.

The checks run in a broker's order: first those of the request, then of the log, then of the validator (docs/checks.md).
`validate_partition` is pure: the time is an argument, and the same bytes at the same time get the same verdict.

One check is left to the broker: whether a compressed batch's inner offsets are 0, 1, 2, and so on. A broker renumbers
such records if the topic's compression.type differs from the batch's codec, and fails otherwise.
"""

from sluicegate.protocol.errors import ErrorCode
from sluicegate.protocol.produce_versions import ONE_BATCH_SINCE
from sluicegate.protocol.records.codecs.codec import Codec, Piece
from sluicegate.protocol.records.codecs.decompression import DecompressedStream, Decompressor
from sluicegate.protocol.records.codecs.decompression_budget import DecompressionBudget, OverLimit, PayloadLimits
from sluicegate.protocol.records.message_set import BrokenMessage, Message
from sluicegate.protocol.records.record_batch import (
    CODEC_MASK,
    HEADER_BYTES,
    MAGIC_2,
    CorruptBatch,
    RecordBatch,
    magic_at,
    next_batch_end,
)
from sluicegate.protocol.records.scan import (
    BAD_LENGTH,
    OUT_OF_WINDOW,
    RAN_OUT,
    WHOLE,
    Ambiguity,
    RehearsalCounter,
    scan_records,
)
from sluicegate.validation.findings import (
    DESCRIBED_WORK,
    TEXTS_AT_LEAST,
    RecordErrors,
    finding_about_ambiguity,
    finding_about_odd_payload,
    finding_about_records,
    finding_over_limit,
    scan_checks_of,
)
from sluicegate.validation.legacy import check_stored_message, validate_message_set
from sluicegate.validation.policy import Framing, TopicPolicy, ValidationLimits
from sluicegate.validation.structure import check_header, check_request_rules, check_stored_form
from sluicegate.validation.timestamps import window_of
from sluicegate.validation.verdict import Accepted, FaultStage, Finding, Reason, Verdict

_PLAIN = Codec.NONE.value
_CODECS = tuple(Codec)
_NOTHING = memoryview(b"")
# The cost of checking the header of each further batch, in bytes of work.
_BATCH_WORK = 512


class Submission:
    """A partition's records in a Produce request of `version`. `records` is None if they are null."""

    def __init__(self, topic: str, partition: int, records: memoryview | None, version: int) -> None:
        self.topic = topic
        self.partition = partition
        self.records = records
        self.version = version


def validate_partition(
    submission: Submission,
    policy: TopicPolicy,
    limits: ValidationLimits,
    now_ms: int,
    decompressor: Decompressor,
    budget: DecompressionBudget,
    rehearsal: RehearsalCounter | None = None,
) -> Verdict:
    """Return the verdict on one partition at `now_ms`, within its request's budget. Raises Abandoned.

    `rehearsal` counts the records that rehearsed bounds would reject, for a magic 2 batch whose timestamps are
    validated.
    """
    records = submission.records if submission.records is not None else _NOTHING
    has_rules = submission.version >= ONE_BATCH_SINCE
    try:
        first_end = next_batch_end(records, 0)
        finding = check_request_rules(records, first_end, submission.version) if has_rules else None
    except CorruptBatch as error:
        return Finding(
            error.code, Reason.UNSUPPORTED_MAGIC, stage=FaultStage.PARTITION if has_rules else FaultStage.LOG
        )
    if finding is not None:
        return finding
    if first_end is None or magic_at(records, 0) < MAGIC_2:
        window = window_of(policy, now_ms)
        return validate_message_set(
            submission.topic, submission.partition, records, policy, limits, window, decompressor, budget
        )
    batch = check_stored_form(records, 0, first_end, policy)
    if isinstance(batch, Finding):
        return batch
    budget.worked(len(records))
    if not has_rules:
        finding = _check_further_batches(records, first_end, policy, budget)
        if finding is not None:
            return finding
    finding = check_header(batch)
    if finding is not None:
        return finding
    return _validate_records(submission, records, batch, policy, limits, now_ms, decompressor, budget, rehearsal)


def _check_further_batches(
    records: memoryview, start: int, policy: TopicPolicy, budget: DecompressionBudget
) -> Finding | None:
    """Check further batches in old requests. A broker's log checks each batch before it rejects their number."""
    several = False
    message = Message()
    try:
        while (end := next_batch_end(records, start)) is not None:
            several = True
            budget.worked(_BATCH_WORK)
            if magic_at(records, start) == MAGIC_2:
                found = check_stored_form(records, start, end, policy)
                finding = found if isinstance(found, Finding) else None
            else:
                finding = check_stored_message(records, start, end, policy)
                if finding is None:
                    message.read(records, start, end)
            if finding is not None:
                return finding
            start = end
    except CorruptBatch as error:
        return Finding(error.code, Reason.UNSUPPORTED_MAGIC)
    except BrokenMessage:
        return Finding(ErrorCode.INVALID_RECORD, Reason.RECORD_FORMAT)
    return Finding(ErrorCode.INVALID_RECORD, Reason.SEVERAL_BATCHES) if several else None


def _validate_records(
    submission: Submission,
    records: memoryview,
    batch: RecordBatch,
    policy: TopicPolicy,
    limits: ValidationLimits,
    now_ms: int,
    decompressor: Decompressor,
    budget: DecompressionBudget,
    rehearsal: RehearsalCounter | None,
) -> Verdict:
    codec_id = batch.attributes & CODEC_MASK
    start = batch.start + HEADER_BYTES
    try:
        if codec_id == _PLAIN:
            return _scan(submission, records, start, batch.end, None, batch, policy, now_ms, budget, rehearsal)
        payload = records[start : batch.end]
        bounds = PayloadLimits(limits.plain_limit(len(payload)), limits.max_decompression_window_bytes, budget)
        pieces = decompressor.open(_CODECS[codec_id], payload, bounds)
        first = pieces.more()
        if first is None:
            first = _NOTHING
        return _scan(submission, first, 0, len(first), pieces, batch, policy, now_ms, budget, rehearsal)
    except OverLimit as over:
        return finding_over_limit(submission.topic, submission.partition, over, batch.record_count)
    finally:
        decompressor.close()


def _scan(
    submission: Submission,
    data: Piece,
    start: int,
    end: int,
    pieces: DecompressedStream | None,
    batch: RecordBatch,
    policy: TopicPolicy,
    now_ms: int,
    budget: DecompressionBudget,
    rehearsal: RehearsalCounter | None,
) -> Verdict:
    """Return the verdict on the records at data[start:end] and, if the batch is compressed, in later pieces."""
    window = window_of(policy, now_ms)
    earliest = width = exempt = overflow = narrowed = 0
    if window is not None:
        narrowest = window
        if rehearsal is not None:
            rehearsal.begin(now_ms, batch.base_timestamp)
            narrowest = window_of(policy.narrowest, now_ms) or window
        earliest, width, exempt, overflow = narrowest.as_scanned(batch.base_timestamp)
        narrowed = narrowest.before_max_ms
    look_for = scan_checks_of(batch, window, policy.compacted)
    keep = max(budget.record_errors, TEXTS_AT_LEAST)
    outcome, read, latest, bad = scan_records(
        data, start, end, batch.record_count, pieces is None, look_for, earliest, width, exempt, overflow, pieces,
        budget, keep, rehearsal, policy.framing is not Framing.BROKER,
    )  # fmt: skip
    if isinstance(bad, Ambiguity):
        return finding_about_ambiguity(submission.topic, submission.partition, read, bad, batch.record_count)
    is_damaged = pieces is not None and pieces.failure is not None
    if outcome != WHOLE or is_damaged:
        broken = _broken(outcome, is_damaged)
        if broken is not None:
            return Finding(*broken, records=batch.record_count)
    found = None
    if pieces is not None and pieces.oddity is not None and policy.framing is not Framing.BROKER:
        found = finding_about_odd_payload(
            submission.topic, submission.partition, batch.codec_id, pieces.oddity, batch.record_count
        )
        if policy.framing is Framing.STRICT or found.reason is Reason.AMBIGUOUS_FRAMING:
            return found
    if bad is not None:
        errors = RecordErrors(submission.topic, submission.partition, batch, window)
        described = []
        for flawed in bad.kept:
            described.append(errors.describe(flawed))
            budget.worked(DESCRIBED_WORK)
        first_time = None
        if bad.first_time is not None:
            is_first = bad.first_time == bad.kept[0]
            first_time = described[0].reason if is_first else errors.describe(bad.first_time).reason
        return finding_about_records(described, bad.count, first_time, batch.record_count, budget)
    if window is None or not look_for & OUT_OF_WINDOW:
        return Accepted(read, 0, unreadable=found)
    ahead_ms = latest - narrowed
    if rehearsal is not None and rehearsal.keeps_any:
        ahead_ms = max(ahead_ms, rehearsal.ahead_ms) if latest else rehearsal.ahead_ms
        return Accepted(read, ahead_ms, has_time=True, unreadable=found)
    return Accepted(read, ahead_ms, has_time=latest > 0, unreadable=found)


def _broken(outcome: int, is_damaged: bool) -> tuple[ErrorCode, Reason] | None:
    """Return the code and reason for a scan's outcome. Damage matters only if a broker would read that far."""
    if is_damaged and outcome in (RAN_OUT, WHOLE):
        return ErrorCode.UNKNOWN_SERVER_ERROR, Reason.DAMAGED_PAYLOAD
    if outcome == BAD_LENGTH:
        return ErrorCode.UNKNOWN_SERVER_ERROR, Reason.RECORD_FORMAT
    if outcome != WHOLE:
        return ErrorCode.INVALID_RECORD, Reason.RECORD_FORMAT
    return None
