"""The throttle time in a Produce answer: of versions 1 to 8 its last four bytes, from 9 on the last before the tags."""

from struct import Struct

from sluicegate.protocol.errors import MalformedMessage
from sluicegate.protocol.headers import response_body_at
from sluicegate.protocol.produce_response import tail_at
from sluicegate.protocol.produce_versions import FLEXIBLE_SINCE, THROTTLE_SINCE

_INT32 = Struct(">i")


def with_throttle_time(answer: bytearray, version: int, throttle_ms: int) -> bytearray:
    """The answer (a frame without its size), in which a client is told to wait for so long at least; version 0 has no
    word for it. Raises MalformedMessage.
    """
    if version >= THROTTLE_SINCE:
        at = tail_at(answer, version, response_body_at(answer, 1 if version >= FLEXIBLE_SINCE else 0))
        if len(answer) - at < _INT32.size:
            raise MalformedMessage(f"Produce answer v{version}: it ends before its throttle time")
        told = max(throttle_ms, _INT32.unpack_from(answer, at)[0])
        _INT32.pack_into(answer, at, told)
    return answer
