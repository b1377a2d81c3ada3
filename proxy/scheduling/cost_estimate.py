"""What is judged in a thread without a try on the event loop, because it surely takes more than a few milliseconds."""

from sluicegate.protocol.produce_request import ProduceRequest
from sluicegate.protocol.records.record_batch import CODEC_MASK, HEADER_BYTES, attributes_low_byte

_HEAVY_PARTITIONS = 200
_LIGHT_BYTES = 1024  # no request this small names more
_HEAVY_COMPRESSED_BYTES = 512 * 1024
_HEAVY_PLAIN_BYTES = 4 * 1024 * 1024


def is_heavy(request: ProduceRequest) -> bool:
    """Whether a request has many partitions, much to decompress or much to scan."""
    size = len(request.frame)
    if size <= _LIGHT_BYTES:
        return False
    if sum(len(topic.partitions) for topic in request.topics) > _HEAVY_PARTITIONS:
        return True
    return size > _HEAVY_COMPRESSED_BYTES and _is_heavy_by_size(request)


def _is_heavy_by_size(request: ProduceRequest) -> bool:
    view = memoryview(request.frame)
    compressed = plain = 0
    for topic in request.topics:
        for partition in topic.partitions:
            size = partition.records_end - partition.records_at
            if partition.records_at < 0 or size < HEADER_BYTES:
                continue
            if attributes_low_byte(view, partition.records_at) & CODEC_MASK:
                compressed += size
            else:
                plain += size
    return compressed > _HEAVY_COMPRESSED_BYTES or plain > _HEAVY_PLAIN_BYTES
