"""How many records a Produce request says that it brings, without a look at any of them."""

from struct import Struct

from sluicegate.protocol.errors import TooManyRecords
from sluicegate.protocol.produce_request import ProduceRequest

_INT32 = Struct(">i")
_LOG_OVERHEAD_BYTES = 12
_SIZE_AT = 8
_MAGIC_AT = 16
_COUNT_AT = 57
_HEADER_BYTES = 61


def check_record_count(request: ProduceRequest, most: int | None) -> None:
    """`most` None: any number. A batch that brings another number than it says is rejected when it is validated; a
    message
    of magic 0 or 1, compressed or not, counts as one. Raises TooManyRecords.
    """
    if most is None:
        return
    left = most
    for t, topic in enumerate(request.topics):
        for p in range(len(topic.partitions)):
            records = request.records(t, p)
            if records is not None:
                left -= _count(records)
            if left < 0:
                raise TooManyRecords(
                    f"Produce v{request.version}: more records than limits.max_request_records ({most}) allows for one "
                    "request: raise it, or let the producer send less at once"
                )


def _count(records: memoryview) -> int:
    """As far as batches can be told apart: what is behind that is damaged, and stored by nobody."""
    count = at = 0
    while len(records) - at > _MAGIC_AT:
        size = _LOG_OVERHEAD_BYTES + _INT32.unpack_from(records, at + _SIZE_AT)[0]
        if size <= _MAGIC_AT or size > len(records) - at:
            break
        if records[at + _MAGIC_AT] < 2:
            count += 1
        elif size >= _HEADER_BYTES:
            count += max(0, _INT32.unpack_from(records, at + _COUNT_AT)[0])
        at += size
    return count
