"""Rejects batches that brokers store and that consumers read otherwise, or not at all (docs/framing.md).

The texts are ours: a broker has none for this.
"""

from sluicegate.protocol.errors import ErrorCode
from sluicegate.protocol.records.codecs.codec import Codec, Oddity
from sluicegate.protocol.records.scan import NEGATIVE_SIZE, OTHER_LENGTH, OTHER_OFFSET, TOO_MANY_BITS, Ambiguity
from sluicegate.validation.verdict import Reason, Rejected

_FLAWS = {
    OTHER_LENGTH: "states a length of {stated} bytes, but its fields end after {expected}",
    OTHER_OFFSET: "states the offset {stated} where {expected} has to be",
    NEGATIVE_SIZE: "has a size of {stated}, where the least is {expected} (null)",
    TOO_MANY_BITS: "has a number with more bits than its type",
}
_ADVICE = "The proxy in front of the cluster rejects it (framing: safe): repair the producer's encoder."
_ENDS = {
    Oddity.HIDDEN_DATA: "has an empty raw block, which ends the data for brokers and not for all clients",
    Oddity.TRAILING_BYTES: "has bytes after its {codec} data, which brokers ignore and some clients cannot read",
    Oddity.UNVERIFIED: "has {codec} data whose header or checksum brokers do not verify, and some clients cannot read",
}


def ambiguous(topic: str, partition: int, index: int, found: Ambiguity, records: int) -> Rejected:
    """The rejection of a batch for the first record (`index`) that brokers read and clients read otherwise."""
    flaw = _FLAWS[found.why].format(stated=found.stated, expected=found.expected)
    text = (
        f"Record {index} of the batch for {topic}-{partition} {flaw}: brokers store it, and clients read other records "
        f"than it has, or stop there. {_ADVICE}"
    )
    return Rejected(ErrorCode.INVALID_RECORD, Reason.AMBIGUOUS, text, records=records)


def odd_payload(topic: str, partition: int, codec_id: int, oddity: Oddity, records: int) -> Rejected:
    """What is reported of a batch whose compressed data is odd, or what it is rejected with."""
    flaw = _ENDS[oddity].format(codec=Codec(codec_id).name.lower())
    reason = Reason.AMBIGUOUS if oddity is Oddity.HIDDEN_DATA else Reason.UNREADABLE
    return Rejected(
        ErrorCode.INVALID_RECORD, reason, f"The batch for {topic}-{partition} {flaw}. {_ADVICE}", records=records
    )
