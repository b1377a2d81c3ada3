"""Judges one partition's records: what a broker with this topic's settings would say, before anything is stored.

The order of checks is the broker's: the request's rules, the log's, the validator's (docs/checks.md). `judge_partition`
is pure: the time is handed in, and the same bytes at the same time always get the same verdict.

One thing is left to the broker: inner offsets of a compressed batch that are not 0, 1, 2, ... A broker numbers such
records anew where the topic's compression.type differs from the batch's codec, and fails where it does not.
"""

from protocol.errors import ErrorCode
from protocol.records.codec import Codec
from protocol.records.compression import Decompressor, Failure
from protocol.records.record_batch import CODEC_MASK, HEADER_BYTES, CorruptBatch, RecordBatch, magic_at, next_batch_end
from protocol.records.scan import BAD_LENGTH, OUT_OF_WINDOW, RAN_OUT, WHOLE, scan_records
from validation import wording
from validation.legacy import check_stored_message, judge_message_set
from validation.policy import JudgementLimits, TopicPolicy
from validation.record_errors import RecordErrors, what_to_look_for
from validation.refusals import refuse_records
from validation.structure import check_header, check_request_rules, check_stored_form
from validation.timestamps import window_of
from validation.verdict import Accepted, Reason, Refused, Stage, Verdict

_ONE_V2_BATCH_SINCE = 3
_MAGIC_2 = 2
_PLAIN = Codec.NONE.value
_CODECS = tuple(Codec)


class Submission:
    """One partition's records as a Produce request of `version` carries them; `records` is None for null."""

    def __init__(self, topic: str, partition: int, records: memoryview | None, version: int) -> None:
        self.topic = topic
        self.partition = partition
        self.records = records
        self.version = version


def judge_partition(
    submission: Submission, policy: TopicPolicy, limits: JudgementLimits, now_ms: int, decompressor: Decompressor
) -> Verdict:
    """The verdict on one partition at `now_ms`."""
    records = submission.records if submission.records is not None else memoryview(b"")
    has_rules = submission.version >= _ONE_V2_BATCH_SINCE
    try:
        first_end = next_batch_end(records, 0)
        refused = check_request_rules(records, first_end, submission.version) if has_rules else None
    except CorruptBatch as error:
        return Refused(error.code, Reason.MAGIC, stage=Stage.PARTITION if has_rules else Stage.LOG)
    if refused is not None:
        return refused
    if first_end is None or magic_at(records, 0) < _MAGIC_2:
        window = window_of(policy, now_ms)
        return judge_message_set(submission.topic, submission.partition, records, policy, limits, window, decompressor)
    batch = check_stored_form(records, 0, first_end, policy)
    if isinstance(batch, Refused):
        return batch
    if not has_rules:
        refused = _check_further_batches(records, first_end, policy)
        if refused is not None:
            return refused
    return check_header(batch) or _judge_records(submission, records, batch, policy, limits, now_ms, decompressor)


def _check_further_batches(records: memoryview, start: int, policy: TopicPolicy) -> Refused | None:
    """Old requests may bring several batches as far as the log, which looks at each before it refuses their number."""
    several = False
    try:
        while (end := next_batch_end(records, start)) is not None:
            several = True
            check = check_stored_form if magic_at(records, start) == _MAGIC_2 else check_stored_message
            found = check(records, start, end, policy)
            if isinstance(found, Refused):
                return found
            start = end
    except CorruptBatch as error:
        return Refused(error.code, Reason.MAGIC)
    return Refused(ErrorCode.INVALID_RECORD, Reason.TWO_BATCHES) if several else None


def _judge_records(
    submission: Submission,
    records: memoryview,
    batch: RecordBatch,
    policy: TopicPolicy,
    limits: JudgementLimits,
    now_ms: int,
    decompressor: Decompressor,
) -> Verdict:
    codec_id = batch.attributes & CODEC_MASK
    framed = codec_id == _PLAIN
    payload, start, end = records, batch.start + HEADER_BYTES, batch.end
    failure = None
    if not framed:
        limit = limits.decompressed_limit(end - start)
        plain = decompressor.decompress(_CODECS[codec_id], records[start:end], limit)
        if plain.failure is Failure.OVER_LIMIT:
            text = wording.decompression_limit(submission.topic, submission.partition, limit)
            return Refused(ErrorCode.INVALID_RECORD, Reason.DECOMPRESSION_LIMIT, text, records=batch.record_count)
        payload, start, end, failure = plain.data, 0, len(plain.data), plain.failure

    window = window_of(policy, now_ms)
    earliest = width = exempt = overflow = 0
    if window is not None:
        earliest, width, exempt, overflow = window.as_scanned(batch.base_timestamp)
    look_for = what_to_look_for(batch, window, policy.compacted)
    outcome, read, latest, bad = scan_records(
        payload, start, end, batch.record_count, framed, look_for, earliest, width, exempt, overflow
    )
    broken = _broken(outcome, failure) if outcome != WHOLE or failure is not None else None
    if broken is not None:
        return Refused(*broken, records=batch.record_count)
    if bad:
        errors = RecordErrors(submission.topic, submission.partition, batch, window)
        return refuse_records([errors.describe(finding) for finding in bad], batch.record_count)
    ahead_ms = latest - window.before_max_ms if window is not None and look_for & OUT_OF_WINDOW else 0
    return Accepted(read, ahead_ms)


def _broken(outcome: int, failure: Failure | None) -> tuple[ErrorCode, Reason] | None:
    """What a scan that did not end well is answered with; a broker meets damage only where it reads that far."""
    if failure is Failure.DAMAGED and outcome in (RAN_OUT, WHOLE):
        return ErrorCode.UNKNOWN_SERVER_ERROR, Reason.DAMAGED_PAYLOAD
    if outcome == BAD_LENGTH:
        return ErrorCode.UNKNOWN_SERVER_ERROR, Reason.STRUCTURE
    if outcome != WHOLE:
        return ErrorCode.INVALID_RECORD, Reason.STRUCTURE
    return None
