"""Where an answer says whether its request as a whole succeeded: the error code at its head, behind the throttle time.

`sluicegate.protocol.api` declares which APIs have such a code; Produce, Metadata and their like have one for each topic
or partition instead. A test compares it with Kafka's own definitions.
"""

from struct import Struct

from sluicegate.protocol.api import APIS
from sluicegate.protocol.errors import MalformedMessage
from sluicegate.protocol.produce_response import walk_produce_response

_CODE = Struct(">h")
_THROTTLE_BYTES = 4
_PRODUCE = 0
_MOST_ENTRIES = 10_000


def code_at(api_key: int, version: int) -> int | None:
    """Where the code stands in an answer's body (bytes); None where there is none."""
    api = APIS.get(api_key)
    code = api.code if api is not None else None
    if code is None or not code.since <= version <= code.until:
        return None
    return _THROTTLE_BYTES if version >= code.throttled else 0


def codes_in(api_key: int, version: int, answer: bytes, body_at: int) -> tuple[int, ...]:
    """The codes of an answer, of each kind one: of all partitions for Produce. Empty where it has none, or is cut."""
    if api_key == _PRODUCE:
        try:
            entries = walk_produce_response(answer, version, body_at, _MOST_ENTRIES).entries
        except MalformedMessage:
            return ()
        return tuple(sorted({entry.code for entry in entries}))
    at = code_at(api_key, version)
    if at is None or body_at + at + _CODE.size > len(answer):
        return ()
    return (_CODE.unpack_from(answer, body_at + at)[0],)
