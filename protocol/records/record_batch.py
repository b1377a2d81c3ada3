"""Reads the header of a record batch, magic 2 (KIP-98), and the two fields that every magic shares.

base_offset int64 | batch_length int32 | partition_leader_epoch int32 | magic int8 | crc uint32 | attributes int16 |
last_offset_delta int32 | base_timestamp int64 | max_timestamp int64 | producer_id int64 | producer_epoch int16 |
base_sequence int32 | record_count int32 | records

The CRC32C covers everything from the attributes on. `max_timestamp`, `record_count` and `batch_length` are only the
client's claims. Validation trusts only the records.
"""

from struct import Struct

from crc32c import crc32c

from sluicegate.protocol.errors import ErrorCode, SenderError

HEADER = Struct(">qiibIhiqqqhii")

HEADER_BYTES = HEADER.size  # 61
LOG_OVERHEAD_BYTES = 12
_INT32 = Struct(">i")
_INT64 = Struct(">q")
_SIZE_AT = 8
_MAGIC_AT = 16
_BASE_TIMESTAMP_AT = 27
_COUNT_AT = 57
HEADER_UP_TO_MAGIC_BYTES = 17
_CRC_COVERS_FROM = 21
UP_TO_PRODUCER_ID_BYTES = 51
MIN_BATCH_LENGTH = 14
_MAX_LENGTH = 2**31 - 1 - LOG_OVERHEAD_BYTES

CODEC_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
NO_PRODUCER_ID = -1
NO_TIMESTAMP = -1
MAGIC_2 = 2


class CorruptBatch(SenderError):
    """Raised if a broker cannot find the end of a damaged batch. `code` and the message are the broker's."""

    def __init__(self, reason: str, code: ErrorCode = ErrorCode.CORRUPT_MESSAGE) -> None:
        super().__init__(reason)
        self.code = code


class RecordBatch:
    """A batch's header fields. `start` and `end` are its position in the buffer (bytes). Timestamps are in ms."""

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    def __init__(self, data: memoryview, start: int, end: int) -> None:
        """Read the header at `start`. The batch ends at `end` and is at least HEADER_BYTES long."""
        self.start = start
        self.end = end
        (
            self.base_offset,
            self.batch_length,
            self.partition_leader_epoch,
            self.magic,
            self.crc,
            self.attributes,
            self.last_offset_delta,
            self.base_timestamp,
            self.max_timestamp,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.record_count,
        ) = HEADER.unpack_from(data, start)

    @property
    def codec_id(self) -> int:
        """The codec id, 0 to 7; see `sluicegate.protocol.records.codecs.codec.Codec`."""
        return self.attributes & CODEC_MASK

    @property
    def size(self) -> int:
        """The size in bytes, from the base offset to the last record."""
        return self.end - self.start


def next_batch_end(data: memoryview, start: int) -> int | None:
    """Return the end of the batch or message at `start`, or None if too few bytes are left.

    Raises CorruptBatch where a broker fails: for a length below 14, a magic outside 0 to 2, or a length that overflows
    an int32 together with its overhead (where a broker fails without a message).
    """
    left = len(data) - start
    if left < LOG_OVERHEAD_BYTES:
        return None
    length: int = _INT32.unpack_from(data, start + _SIZE_AT)[0]
    if length < MIN_BATCH_LENGTH:
        raise CorruptBatch(f"Record size {length} is less than the minimum record overhead ({MIN_BATCH_LENGTH})")
    if left < HEADER_UP_TO_MAGIC_BYTES:
        return None
    if data[start + _MAGIC_AT] > MAGIC_2:  # also true for negative ones
        raise CorruptBatch(f"Invalid magic found in record: {magic_at(data, start)}")
    if length > _MAX_LENGTH:
        raise CorruptBatch(f"a length of {length}", ErrorCode.UNKNOWN_SERVER_ERROR)
    return start + LOG_OVERHEAD_BYTES + length if left >= LOG_OVERHEAD_BYTES + length else None


def magic_at(data: memoryview, start: int) -> int:
    """Return the magic byte of the batch or message at `start` (int8)."""
    magic = data[start + _MAGIC_AT]
    return magic - 256 if magic > 127 else magic


def base_time_of(records: memoryview | None) -> int | None:
    """Return the first batch's base timestamp (ms).

    Returns None if there is no batch, or if it is a message of magic 0 or 1.
    """
    if records is None or len(records) < HEADER_BYTES or records[_MAGIC_AT] != MAGIC_2:
        return None
    base: int = _INT64.unpack_from(records, _BASE_TIMESTAMP_AT)[0]
    return None if base == NO_TIMESTAMP else base


def attributes_low_byte(data: memoryview, start: int) -> int:
    """Return the low byte of a magic 2 batch's attributes. Only this byte is used."""
    return data[start + _CRC_COVERS_FROM + 1]


def opens_transactional(data: memoryview) -> bool:
    """Return whether the first batch is transactional (magic 2). Raises the errors of `next_batch_end`."""
    if next_batch_end(data, 0) is None or data[_MAGIC_AT] != 2:
        return False
    return data[_CRC_COVERS_FROM + 1] & TRANSACTIONAL != 0


def stated_record_count(data: memoryview) -> int:
    """Return the number of records that the batches in `data` state, up to the first damaged batch.

    No broker stores a damaged batch. A message of magic 0 or 1, compressed or not, counts as one record.
    """
    count = at = 0
    while len(data) - at > _MAGIC_AT:
        size = LOG_OVERHEAD_BYTES + _INT32.unpack_from(data, at + _SIZE_AT)[0]
        if size <= _MAGIC_AT or size > len(data) - at:
            break
        if data[at + _MAGIC_AT] < MAGIC_2:
            count += 1
        elif size >= HEADER_BYTES:
            count += max(0, _INT32.unpack_from(data, at + _COUNT_AT)[0])
        at += size
    return count


def has_valid_crc(data: memoryview, batch: RecordBatch) -> bool:
    """Return whether the stored CRC32C matches the bytes that follow it."""
    return crc32c(data[batch.start + _CRC_COVERS_FROM : batch.end]) == batch.crc
