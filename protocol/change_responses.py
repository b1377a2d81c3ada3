"""Reads and modifies responses to requests that create, delete or alter topics. All other bytes stay unchanged.

`give_way` is called between topics, because a response about many topics may take long.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from struct import Struct

from sluicegate.protocol.api import APIS, ApiKey
from sluicegate.protocol.errors import MalformedMessage
from sluicegate.protocol.framing import Parts
from sluicegate.protocol.headers import build_response_header
from sluicegate.protocol.integers import read_unsigned_varint, unsigned_varint
from sluicegate.protocol.layout import INT8, STRING, LayoutStep, Program, array, program_of
from sluicegate.protocol.response_walks import ResponseWalk
from sluicegate.protocol.strings import encode_string
from sluicegate.protocol.walk import MAX_TAGGED_FIELDS

GiveWay = Callable[[], None]
TOPIC_RESOURCE = 2
# No limit, because the size of a response limits its counts.
_ANY_NUMBER = 1 << 40
_COUNT_BYTES = 4
_NO_ID = bytes(16)
_INT16, _INT32 = Struct(">h"), Struct(">i")
_ONE_STRING: Program = ((int(LayoutStep.STRING), 0, ()),)
_THROTTLE_SINCE = {ApiKey.CREATE_TOPICS: 2, ApiKey.DELETE_TOPICS: 1}
_ID_SINCE = {ApiKey.CREATE_TOPICS: 7, ApiKey.DELETE_TOPICS: 6}
_MESSAGE_SINCE = {ApiKey.CREATE_TOPICS: 1, ApiKey.DELETE_TOPICS: 5}
_CREATED_SETTINGS_SINCE = 5
_NO_PARTITIONS_AND_REPLICAS = _INT32.pack(-1) + _INT16.pack(-1)


@dataclass(frozen=True, slots=True)
class ChangeResult:
    """The result for one topic or other resource, at data[start:end].

    `topic_id` is None if the response does not contain it. `kind` is the type of the resource. The settings of a
    created topic end before `settings_end`, and are preceded by their count at `count_at`; both are 0 if the response
    contains none.
    """

    kind: int
    name: str | None
    topic_id: bytes | None
    code: int
    start: int
    end: int
    count_at: int = 0
    settings_end: int = 0


@dataclass(frozen=True, slots=True)
class ChangeResponse:
    """A response. Its encoded results are preceded by their count at `count_at`, and end before `last_end`."""

    results: list[ChangeResult]
    flexible: bool
    count_at: int
    last_end: int


@dataclass(frozen=True, slots=True)
class ChangeError:
    """The error that a client receives for one topic or other resource."""

    code: int
    message: str | None


def read_results(
    api_key: int, version: int, frame: bytes | bytearray, body_at: int, give_way: GiveWay
) -> ChangeResponse:
    """Read a response of CreateTopics, DeleteTopics, AlterConfigs or IncrementalAlterConfigs.

    Raises MalformedMessage.
    """
    api, flexible = ApiKey(api_key), APIS[api_key].is_flexible(version)
    walk = ResponseWalk()
    walk.begin(frame, version, flexible, body_at, _ANY_NUMBER, MAX_TAGGED_FIELDS)
    read = _created_or_deleted if api in _ID_SINCE else _altered
    try:
        if version >= _THROTTLE_SINCE.get(api, 0):
            walk.skip(_INT32.size)
        count_at = walk.position
        results = []
        for _ in range(_count(walk)):
            give_way()
            results.append(read(walk, api, version))
    except MalformedMessage as error:
        raise MalformedMessage(f"{APIS[api_key].name} response v{version}: {error}") from error
    return ChangeResponse(results, flexible, count_at, walk.position)


def _altered(walk: ResponseWalk, _api: ApiKey, _version: int) -> ChangeResult:
    start = walk.position
    code = walk.int16()
    walk.run(_ONE_STRING)  # message
    kind = walk.bytes_of(1)[0]
    name = walk.required_string()
    walk.skip_tags()
    return ChangeResult(kind, name, None, code, start, walk.position)


def _created_or_deleted(walk: ResponseWalk, api: ApiKey, version: int) -> ChangeResult:
    start, count_at, settings_end = walk.position, 0, 0
    name = walk.string()
    topic_id = walk.bytes_of(len(_NO_ID)) if version >= _ID_SINCE[api] else _NO_ID
    code = walk.int16()
    if version >= _MESSAGE_SINCE[api]:
        walk.run(_ONE_STRING)
    if api is ApiKey.CREATE_TOPICS and version >= _CREATED_SETTINGS_SINCE:
        walk.skip(len(_NO_PARTITIONS_AND_REPLICAS))
        count_at = walk.position
        walk.run(_created_settings(version))
        settings_end = walk.position
    walk.skip_tags()
    known_id = None if topic_id == _NO_ID else topic_id
    return ChangeResult(TOPIC_RESOURCE, name, known_id, code, start, walk.position, count_at, settings_end)


@cache
def _created_settings(version: int) -> Program:
    return program_of((array(STRING, STRING, INT8, INT8, INT8),), version)[:1]


def with_results(frame: bytes | bytearray, response: ChangeResponse, results: Sequence[bytes | memoryview]) -> Parts:
    """Return a response, in parts, with its results replaced by other encoded results."""
    view = memoryview(frame)
    return [
        view[: response.count_at],
        _count_of(len(results), response.flexible),
        *results,
        view[response.last_end :],
    ]


def own_response(api_key: int, version: int, correlation_id: int, results: Sequence[bytes | memoryview]) -> Parts:
    """Return a response of the proxy's own, in parts, with encoded results."""
    api = APIS[api_key]
    flexible = api.is_flexible(version)
    has_throttle = version >= _THROTTLE_SINCE.get(ApiKey(api_key), 0)
    return [
        build_response_header(correlation_id, api.response_header_version(version)),
        _INT32.pack(0) if has_throttle else b"",
        _count_of(len(results), flexible),
        *results,
        b"\0" if flexible else b"",
    ]


def encode_error(api_key: int, version: int, kind: int, name: str, error: ChangeError) -> bytes:
    """Return the result for a topic or other resource that was not created or altered."""
    api, flexible = ApiKey(api_key), APIS[api_key].is_flexible(version)
    code, tags = _INT16.pack(error.code), b"\0" if flexible else b""
    if api is not ApiKey.CREATE_TOPICS:
        return b"".join(
            (code, encode_string(error.message, flexible), bytes([kind]), encode_string(name, flexible), tags)
        )
    parts = [encode_string(name, flexible)]
    if version >= _ID_SINCE[api]:
        parts.append(_NO_ID)
    parts.append(code)
    if version >= _MESSAGE_SINCE[api]:
        parts.append(encode_string(error.message, flexible))
    if version >= _CREATED_SETTINGS_SINCE:
        parts += (_NO_PARTITIONS_AND_REPLICAS, _count_of(0, flexible))
    return b"".join((*parts, tags))


def with_created_settings(
    frame: bytes | bytearray, result: ChangeResult, flexible: bool, settings: Sequence[bytes]
) -> Sequence[bytes | memoryview]:
    """Return a created topic's result, in parts, with additional encoded settings.

    If the broker returns no settings, the result stays unchanged, because the client may not be allowed to read them.
    """
    view = memoryview(frame)
    if not result.count_at:
        return (view[result.start : result.end],)
    number, first_at = read_unsigned_varint(frame, result.count_at)
    if number <= 1:  # null or none
        return (view[result.start : result.end],)
    return (
        view[result.start : result.count_at],
        _count_of(number - 1 + len(settings), flexible),
        view[first_at : result.settings_end],
        *settings,
        view[result.settings_end : result.end],
    )


def encode_created_setting(name: str, value: str | None, source: int) -> bytes:
    """Return a setting as CreateTopics responses encode it from version 5 on. All these versions are flexible."""
    return b"".join((encode_string(name, True), encode_string(value, True), b"\0", bytes([source]), b"\0", b"\0"))


def _count_of(count: int, flexible: bool) -> bytes:
    return unsigned_varint(count + 1) if flexible else _INT32.pack(count)


def _count(walk: ResponseWalk) -> int:
    count = walk.length(_COUNT_BYTES)
    if count < 0:
        raise MalformedMessage("an array is null")
    return count
