"""Shows the beginning of a letter's key and value, if the original topic's policy allows it.

The same rules apply as for samples: without `samples` nothing is shown, and with `sensitive` only the masked value is
shown.
"""

from sluicegate.dead_letters.letter import Letter
from sluicegate.protocol.records.codecs.decompression_budget import DecompressionBudget
from sluicegate.protocol.records.contents import take_records
from sluicegate.protocol.records.record_batch import HEADER_BYTES, RecordBatch
from sluicegate.protocol.records.writing import NewRecord
from sluicegate.validation.policy import TopicPolicy, ValidationLimits
from sluicegate.validation.produce.one_batch import PLACE, validate_batch
from sluicegate.validation.produce.samples import SHOWN_BYTES
from sluicegate.validation.rules.rule import Client
from sluicegate.validation.verdict import Beginning, RecordSample

_NOBODY = Client("", "")
_OVERHEAD_BYTES = 65_536  # the memory that a record is assumed to need in addition to its bytes


def shown_contents(letter: Letter, policy: TopicPolicy, limits: ValidationLimits) -> RecordSample | None:
    """Return the beginning of the key and of the value, or None if the policy does not allow that."""
    record = letter.record
    if policy.sensitive is not None:
        masked = _masked_value(letter, policy, limits)
        return None if masked is None else RecordSample(None, _beginning(masked))
    if not policy.samples:
        return None
    return RecordSample(_beginning(record.key), _beginning(record.value))


def _masked_value(letter: Letter, policy: TopicPolicy, limits: ValidationLimits) -> bytes | None:
    """Return the value with its sensitive fields masked, or None if the value is null or cannot be masked."""
    value = letter.record.value
    only_masks = TopicPolicy(sensitive=policy.sensitive)
    record = NewRecord(letter.timestamp or 0, None, value, letter.headers)
    validated = validate_batch(letter.topic, [record], only_masks, limits, 0, _NOBODY)
    if PLACE in validated.rejected or value is None:
        return None
    if PLACE not in validated.masked:
        return value
    data = memoryview(validated.masked[PLACE].records)
    batch = RecordBatch(data, 0, len(data))
    budget = DecompressionBudget(limits.max_decompressed_bytes, limits.max_record_errors, lambda: None)
    taken = take_records(
        data,
        HEADER_BYTES,
        batch.end,
        1,
        batch.base_timestamp,
        None,
        budget,
        lambda *_: True,
        len(data) + _OVERHEAD_BYTES,
    )
    return None if taken is None or not taken.records else taken.records[0].value


def _beginning(data: bytes | None) -> Beginning | None:
    return None if data is None else Beginning(data[:SHOWN_BYTES], len(data))
