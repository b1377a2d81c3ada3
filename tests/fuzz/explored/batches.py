"""For arbitrary records with correct size and CRC, the slow path accepts all that the fast path accepts."""

import struct
from time import thread_time

from crc32c import crc32c

from tests.bounds.frames import ProduceLayout, request_header
from tests.fuzz import compiled
from tests.proxy.session.playbook import NOW

_VERSION = 9
_HEADER_BYTES, _LENGTH_AT, _LOG_OVERHEAD, _MAGIC_AT, _CRC_AT, _COVERED_AT = 61, 8, 12, 16, 17, 21
_MOST_BYTES = 32 * 1024
_MOST_SECONDS = 2.0


def records(data: bytes) -> None:
    one = bytearray(data[:_MOST_BYTES].ljust(_HEADER_BYTES, b"\0"))
    one[_MAGIC_AT] = 2
    struct.pack_into(">i", one, _LENGTH_AT, len(one) - _LOG_OVERHEAD)
    struct.pack_into(">I", one, _CRC_AT, crc32c(memoryview(one)[_COVERED_AT:]))
    layout, start = ProduceLayout(_VERSION), request_header(0, _VERSION)
    frame = bytearray(start + layout.body([layout.topic(compiled.TOPICS[0], [layout.partition(0, bytes(one))])]))
    begun = thread_time()
    compiled.validate(frame, _VERSION, len(start), NOW)
    assert thread_time() - begun < _MOST_SECONDS


def payload(data: bytes) -> None:
    """Compare both paths for a batch with these bytes as its records. The first byte selects the codec."""
    begun = thread_time()
    compiled.decompress(1 + data[0] % 4 if data else 1, data[1:_MOST_BYTES], 0)
    assert thread_time() - begun < _MOST_SECONDS
