"""What a validation says about one partition's records."""

from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from typing import NamedTuple

from sluicegate.protocol.errors import ErrorCode


class Reason(StrEnum):
    """Why something was rejected, for logs, metrics and violation events (docs/violations.md)."""

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
"""What is told with a diagnosis: what the time was probably meant to be."""


FRAMED = frozenset({Reason.AMBIGUOUS, Reason.UNREADABLE})
"""What only the batch's message explains (`framing`)."""


class Stage(Enum):
    """Where a broker finds what is wrong, in its order; what it finds before goes before our verdict."""

    REQUEST = auto()  # before it looks at any partition
    PARTITION = auto()  # behind permissions and unknown partitions, before leadership, replicas and transactions
    LOG = auto()  # in the partition's log, last of all


class Beginning(NamedTuple):
    """Of a key or a value: its first bytes, and its whole size (bytes)."""

    data: bytes
    size: int


class Contents(NamedTuple):
    """What a record holds, as much of it as may be shown; None: null."""

    key: Beginning | None
    value: Beginning | None


# Neither of these two is frozen: making a frozen one takes four times as long, and hundreds are made for one request.
# Nobody changes them.
@dataclass(slots=True)
class BadRecord:
    """One rejected record: its position in the batch, its time (int64 ms), why, and the text the client gets.

    `fixed`: the time (ms) that it was given instead, so that it is rejected no more. `rules`: those that it breaks,
    where that is why, in the file's order. `contents`: only where the operator wants to see it (`samples`); it goes
    into events, and nowhere else.
    """

    index: int
    timestamp: int
    reason: Reason
    message: str
    fixed: int | None = None
    rules: tuple[str, ...] = ()
    contents: Contents | None = None


class Accepted:
    """The records are good. `ahead_ms`: how far the latest is ahead of the broker's time (negative: behind).

    `has_time`: there is a record whose time was looked at. `unreadable`: what some clients cannot read of the batch,
    which is forwarded and reported (`framing: safe`).
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
    """The records are rejected; code, message and record errors are what a broker would answer.

    `bad_records` is ascending, and only the first where a request has too many of them: `bad_count` is how many there
    are. `records` is the batch's own count, 0 where it cannot be known; `stage` is where a broker would have found it.
    `rules`: where rules are the reason, their names and how many records break each (0: it is the whole batch).
    `broken`: then, where all bad records are kept (`Mode.QUARANTINE`), which rules each of them breaks. `limit`: the
    key of the limit that it goes beyond, where that is why.
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


Broken = dict[int, tuple[str, ...]]
"""Names of rules, by a record's position in its batch."""
Verdict = Accepted | Rejected
