"""The verdict on one partition's records."""

from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from typing import NamedTuple

from sluicegate.protocol.errors import ErrorCode


class Reason(StrEnum):
    """The reason for a rejection, for logs, metrics and violation events (docs/violations.md)."""

    TIMESTAMP_BEFORE = "timestamp too far behind"
    TIMESTAMP_AFTER = "timestamp too far ahead"
    TIMESTAMP_TYPE = "producer claims LogAppendTime"
    NULL_KEY = "null key on a compacted topic"
    INNER_MAGIC = "inner message of another magic"
    NESTED_COMPRESSION = "compressed message within a compressed one"
    NO_BATCH = "no whole record batch"
    MAGIC = "wrong or unknown magic"
    TWO_BATCHES = "more than one batch"
    BASE_OFFSET = "base offset is not 0"
    TOO_LARGE = "batch larger than max.message.bytes"
    CRC = "CRC mismatch or batch shorter than its header"
    CODEC = "unknown codec, or zstd in a version that has none"
    DAMAGED_PAYLOAD = "payload does not decompress"
    DECOMPRESSION_LIMIT = "payload decompresses to more than is allowed"
    TOO_MANY_HEADERS = "records have more headers than is allowed"
    COUNT = "record count and offsets disagree"
    CONTROL_BATCH = "control batch from a client"
    SEQUENCE = "producer id without a sequence"
    STRUCTURE = "records do not follow the format"
    AMBIGUOUS = "clients read other records"
    UNREADABLE = "unreadable to some clients"
    UNKNOWN_TOPIC_ID = "topic id that no broker could name"
    RULE = "breaks a rule"
    REQUEST_RULE = "breaks a rule for requests"
    OUTAGE = "what a rule depends on does not answer"
    SCHEMA = "a schema cannot be applied"


TIMED = frozenset({Reason.TIMESTAMP_BEFORE, Reason.TIMESTAMP_AFTER})
"""Reasons with a diagnosis: the probable unit of the time."""


FRAMED = frozenset({Reason.AMBIGUOUS, Reason.UNREADABLE})
"""Reasons that only the batch's message explains (`framing`)."""


class Stage(Enum):
    """Where a broker finds the fault, in its order; the faults that it finds earlier take precedence."""

    REQUEST = auto()  # before any partition
    PARTITION = auto()  # after permissions and unknown partitions, before leadership, replicas and transactions
    LOG = auto()  # in the partition's log, last of all


class Beginning(NamedTuple):
    """The first bytes of a key or a value, and its whole size (bytes)."""

    data: bytes
    size: int


class Contents(NamedTuple):
    """The sample of a record; None: null."""

    key: Beginning | None
    value: Beginning | None


# These two are immutable by convention, not frozen: a frozen dataclass takes four times as long to create, and one
# request may create hundreds.
@dataclass(slots=True)
class BadRecord:
    """One rejected record: its position in the batch, its time (int64 ms), the reason, and the text for the client.

    `fixed`: its new time (ms), with which it is accepted. `rules`: the rules that it breaks, if that is the reason, in
    the order of the configuration. `contents`: a sample, only if the operator enables `samples`; only for events.
    """

    index: int
    timestamp: int
    reason: Reason
    message: str
    fixed: int | None = None
    rules: tuple[str, ...] = ()
    contents: Contents | None = None


class Accepted:
    """The records are good. `ahead_ms`: how far the latest is after the broker's time (negative: before).

    `has_time`: the time of at least one record was checked. `unreadable`: parts of the batch that some clients cannot
    read; the batch is forwarded and reported (`framing: safe`).
    """

    def __init__(
        self, records: int, ahead_ms: int, has_time: bool = False, unreadable: "Rejected | None" = None
    ) -> None:
        self.records = records
        self.ahead_ms = ahead_ms
        self.has_time = has_time
        self.unreadable = unreadable


@dataclass(slots=True)
class Rejected:
    """The records are rejected; code, message and record errors are those of a broker's response.

    `bad_records`: ascending, only the first ones if there are too many; `bad_count`: their true number. `records`: the
    batch's own count, 0 if unknown; `stage`: where a broker would have found the fault. `rules`: if rules are the
    reason, their names and how many records break each (0: the whole batch). `broken`: the rules that each bad record
    breaks, if the topic has a dead-letter topic. `limit`: the key of the exceeded limit, if that is the
    reason. `waits_for`: the registry that does not respond, if that is the reason and the client is told to retry.
    """

    code: ErrorCode
    reason: Reason
    message: str | None = None
    bad_records: tuple[BadRecord, ...] = ()
    bad_count: int = 0
    records: int = 0
    stage: Stage = Stage.LOG
    rules: tuple[tuple[str, int], ...] = ()
    broken: "Broken | None" = None
    limit: str | None = None
    waits_for: str | None = None


Broken = dict[int, tuple[str, ...]]
"""Names of rules, by a record's position in its batch."""
Verdict = Accepted | Rejected
