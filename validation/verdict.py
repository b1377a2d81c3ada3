"""Defines the verdict on a partition's records."""

from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from typing import NamedTuple, Self

from sluicegate.protocol.errors import ErrorCode


class Reason(StrEnum):
    """The reason for a finding.

    Its value is the code in events, metrics, logs and tables. `text` is for people (docs/reasons.md).
    """

    text: str

    def __new__(cls, code: str, text: str) -> Self:
        """Create a member whose value is `code`."""
        member = str.__new__(cls, code)
        member._value_ = code
        member.text = text
        return member

    TIMESTAMP_TOO_OLD = "timestamp_too_old", "timestamp older than the maximum age"
    TIMESTAMP_IN_FUTURE = "timestamp_in_future", "timestamp too far in the future"
    REHEARSED_BOUND = "rehearsed_bound", "timestamp outside a rehearsed bound"
    LOG_APPEND_TIME = "log_append_time", "producer claims LogAppendTime"
    NULL_KEY = "null_key", "null key on a compacted topic"
    INNER_MAGIC = "inner_magic", "inner message of another magic"
    NESTED_COMPRESSION = "nested_compression", "compressed message within a compressed one"
    NO_BATCH = "no_batch", "no complete record batch"
    UNSUPPORTED_MAGIC = "unsupported_magic", "wrong or unknown magic"
    SEVERAL_BATCHES = "several_batches", "more than one batch"
    BASE_OFFSET = "base_offset", "base offset is not 0"
    BATCH_TOO_LARGE = "batch_too_large", "batch larger than max.message.bytes"
    CRC_MISMATCH = "crc_mismatch", "CRC mismatch, or batch shorter than its header"
    UNSUPPORTED_CODEC = "unsupported_codec", "unknown codec, or zstd in a version without zstd"
    DAMAGED_PAYLOAD = "damaged_payload", "payload does not decompress"
    DECOMPRESSION_LIMIT = "decompression_limit", "payload decompresses to more than is allowed"
    TOO_MANY_HEADERS = "too_many_headers", "records have more headers than is allowed"
    RECORD_COUNT = "record_count", "record count and offsets disagree"
    CONTROL_BATCH = "control_batch", "control batch from a client"
    MISSING_SEQUENCE = "missing_sequence", "producer id without a sequence"
    RECORD_FORMAT = "record_format", "records do not follow the format"
    AMBIGUOUS_FRAMING = "ambiguous_framing", "some clients read other records"
    UNREADABLE_FRAMING = "unreadable_framing", "some clients cannot read the batch"
    UNKNOWN_TOPIC_ID = "unknown_topic_id", "topic id that no broker could name"
    OWN_TOPIC = "own_topic", "topic that only sluicegate writes"
    RULE_VIOLATED = "rule_violated", "record violates a rule"
    REQUEST_RULE_VIOLATED = "request_rule_violated", "request violates a rule for requests"
    DEPENDENCY_UNAVAILABLE = "dependency_unavailable", "a service that a rule depends on does not respond"
    SCHEMA_UNUSABLE = "schema_unusable", "a schema cannot be applied"


TIMED = frozenset({Reason.TIMESTAMP_TOO_OLD, Reason.TIMESTAMP_IN_FUTURE})
"""Reasons with a diagnosis: the timestamp's probable unit."""


FRAMED = frozenset({Reason.AMBIGUOUS_FRAMING, Reason.UNREADABLE_FRAMING})
"""Reasons that only the batch's error message explains (`framing`)."""


class FaultStage(Enum):
    """The stage at which a broker finds the fault, in a broker's order. Faults of earlier stages take precedence."""

    REQUEST = auto()  # before any partition is checked
    PARTITION = auto()  # after permissions and unknown partitions; before leadership, replicas and transactions
    LOG = auto()  # in the partition's log, after all other checks


class Beginning(NamedTuple):
    """The first bytes of a key or a value, and its whole size (bytes)."""

    data: bytes
    size: int


class RecordSample(NamedTuple):
    """The sample of a record. None means null."""

    key: Beginning | None
    value: Beginning | None


# These two are immutable by convention but not frozen, because creating a frozen dataclass takes four times as long and
# a request may create hundreds.
@dataclass(slots=True)
class BadRecord:
    """A rejected record: its batch position, timestamp (int64 ms), the reason, and the message for the client.

    `fixed` is the new timestamp (ms) with which it is accepted; None without a fix. `rules` contains the rules that it
    violates, if that is the reason, in the order of the configuration. `contents` is a sample for events, only set if
    the operator enables `samples`.
    """

    index: int
    timestamp: int
    reason: Reason
    message: str
    fixed: int | None = None
    rules: tuple[str, ...] = ()
    contents: RecordSample | None = None


class Accepted:
    """The verdict that the records are good.

    `ahead_ms` is how far the latest timestamp is ahead of the broker's time; it is negative for past timestamps.
    `has_time` is whether at least one record's timestamp was checked. `unreadable` contains the parts of the batch that
    some clients cannot read; the batch is forwarded and reported (`framing: safe`).
    """

    def __init__(
        self, records: int, ahead_ms: int, has_time: bool = False, unreadable: "Finding | None" = None
    ) -> None:
        self.records = records
        self.ahead_ms = ahead_ms
        self.has_time = has_time
        self.unreadable = unreadable


@dataclass(slots=True)
class Finding:
    """The result of validating a partition's records, whether they are rejected, changed or only reported.

    Code, message and record errors are those of a broker's response.

    - `bad_records`: bad records in ascending order; only the first ones if there are too many.
    - `bad_count`: the true number of bad records.
    - `records`: the number of records that the batch states; 0 if unknown.
    - `stage`: the stage at which a broker would have found the fault.
    - `rules`: if rules are the reason, their names and how many records violate each; 0 means the whole batch.
    - `broken`: the rules that each bad record violates, if the topic has a dead-letter topic.
    - `limit`: the key of the exceeded limit, if that is the reason.
    - `waits_for`: the registry that does not respond, if that is the reason and the client should retry.
    """

    code: ErrorCode
    reason: Reason
    message: str | None = None
    bad_records: tuple[BadRecord, ...] = ()
    bad_count: int = 0
    records: int = 0
    stage: FaultStage = FaultStage.LOG
    rules: tuple[tuple[str, int], ...] = ()
    broken: "Broken | None" = None
    limit: str | None = None
    waits_for: str | None = None


Broken = dict[int, tuple[str, ...]]
"""Names of rules, by a record's position in its batch."""
Verdict = Accepted | Finding
