"""A question to a broker before anything is done about a request: what has it to say that is not about records?

It is the request with a stand-in for every batch, good ones too, so that nothing is stored. What a broker rejects for
itself (no such topic, no permission, not the leader) shows, and where it complains of stand-ins alone, it would have
looked at the records next.
"""

from collections.abc import Mapping
from struct import Struct

from sluicegate.protocol.headers import parse_request_header
from sluicegate.protocol.integers import read_unsigned_varint
from sluicegate.protocol.produce_request import ProduceRequest
from sluicegate.protocol.produce_versions import FLEXIBLE_SINCE, ONE_BATCH_SINCE
from sluicegate.protocol.records.stand_in import stand_in
from sluicegate.validation.produce import Place

_INT16 = Struct(">h")
_ACKS = _INT16.pack(1)
_NOTHING = memoryview(b"")


def question_first(request: ProduceRequest, stand_ins: Mapping[Place, bytes]) -> list[bytes | memoryview]:
    """The question's parts; `stand_ins` are those for batches that are rejected. It is answered also with acks=0."""
    places = ((t, p) for t, topic in enumerate(request.topics) for p in range(len(topic.partitions)))
    parts = request.with_records(
        {place: stand_ins.get(place) or stand_in(request.records(*place) or _NOTHING) for place in places}
    )
    if request.acks != 0:
        return parts
    at = _acks_at(request)
    first = parts[0]
    return [bytes(first[:at]) + _ACKS + bytes(first[at + _INT16.size :]), *parts[1:]]


def _acks_at(request: ProduceRequest) -> int:
    """Where acks stand: behind the header and, from v3 on, the transactional id."""
    frame, version = request.frame, request.version
    at = parse_request_header(frame, 2 if version >= FLEXIBLE_SINCE else 1).body_at
    if version >= FLEXIBLE_SINCE:
        size, at = read_unsigned_varint(frame, at)
        return at + max(size - 1, 0)
    if version >= ONE_BATCH_SINCE:
        length: int = _INT16.unpack_from(frame, at)[0]
        return at + _INT16.size + max(length, 0)
    return at
