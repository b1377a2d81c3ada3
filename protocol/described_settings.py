"""Reads DescribeConfigs requests, and adds topic settings to DescribeConfigs responses. Other bytes stay unchanged.

A response about ten thousand topics has tens of megabytes, so it is walked and not parsed. `give_way` is called between
topics, because either message may take long.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from struct import Struct

from sluicegate.protocol.api import APIS, ApiKey
from sluicegate.protocol.errors import ErrorCode, MalformedMessage
from sluicegate.protocol.framing import Parts
from sluicegate.protocol.integers import unsigned_varint
from sluicegate.protocol.layout import INT8, STRING, LayoutStep, Program, array, program_of, since, until
from sluicegate.protocol.response_walks import ResponseWalk
from sluicegate.protocol.strings import encode_string
from sluicegate.protocol.walk import MAX_TAGGED_FIELDS

TOPIC_RESOURCE = 2
DYNAMIC_TOPIC_CONFIG, DEFAULT_CONFIG = 1, 5
MOST_DESCRIBED = 200_000
"""The maximum number of resources and key names in a request."""
MOST_ADDED_BYTES = 64 * 1024 * 1024
"""The maximum total size of the settings that are added to a response."""
_TOO_LARGE = "the sluicegate settings of this request's topics are too large for one response: describe fewer topics"
# No limit, because the size of a broker's response limits its counts.
_ANY_NUMBER = 1 << 40
_INT16, _INT32 = Struct(">h"), Struct(">i")
_COUNT_BYTES = 4
_SYNONYMS_SINCE, _DOCUMENTATION_SINCE = 1, 3
_ONE_STRING: Program = ((int(LayoutStep.STRING), 0, ()),)
_STRINGS: Program = ((int(LayoutStep.ARRAY), 0, _ONE_STRING),)
_SETTINGS = array(
    *(STRING, STRING, INT8),  # name, value, read-only
    *(until(0, INT8), since(1, INT8)),  # whether it is a default; the source
    INT8,  # whether it is sensitive
    since(_SYNONYMS_SINCE, array(STRING, STRING, INT8)),
    *(since(_DOCUMENTATION_SINCE, INT8), since(_DOCUMENTATION_SINCE, STRING)),  # type, documentation
)


@dataclass(frozen=True, slots=True)
class Describing:
    """The topic settings that a request asks for.

    `topics` contains the names of the requested settings for each mention of a topic, in order; None means all
    settings.
    """

    topics: dict[str, list[frozenset[str] | None]]
    include_synonyms: bool
    include_documentation: bool


@dataclass(frozen=True, slots=True)
class DescribedSetting:
    """A topic setting. If `value` is None, it has its default. `type` is a number from KIP-569."""

    name: str
    value: str | None
    type: int
    documentation: str | None

    @property
    def source(self) -> int:
        """The source of the value."""
        return DEFAULT_CONFIG if self.value is None else DYNAMIC_TOPIC_CONFIG


def read_describing(
    frame: bytes | bytearray,
    version: int,
    body_at: int,
    is_wanted: Callable[[str], bool],
    prefix: str,
    give_way: Callable[[], None],
) -> Describing:
    """Read a request. Returns only those topics that are wanted, and only those setting names that have `prefix`.

    Raises MalformedMessage.
    """
    walk = _walk(frame, version, body_at, MOST_DESCRIBED)
    topics: dict[str, list[frozenset[str] | None]] = {}
    try:
        count = walk.length(_COUNT_BYTES)
        if not 0 <= count <= MOST_DESCRIBED:
            raise MalformedMessage(f"{count} resources, and {MOST_DESCRIBED} are the most")
        for _ in range(count):
            give_way()
            is_topic = walk.bytes_of(1)[0] == TOPIC_RESOURCE
            name = walk.required_string()
            if is_topic and is_wanted(name):
                topics.setdefault(name, []).append(_names(walk, prefix, MOST_DESCRIBED))
            else:
                walk.run(_STRINGS)
            walk.skip_tags()
        include_synonyms = version >= _SYNONYMS_SINCE and walk.bytes_of(1) != b"\0"
        include_documentation = version >= _DOCUMENTATION_SINCE and walk.bytes_of(1) != b"\0"
        walk.skip_tags()
        walk.expect_end()
    except MalformedMessage as error:
        raise MalformedMessage(f"DescribeConfigs v{version}: {error}") from error
    return Describing(topics, include_synonyms, include_documentation)


def _names(walk: ResponseWalk, prefix: str, most: int) -> frozenset[str] | None:
    count = walk.length(_COUNT_BYTES)
    if count > most:
        raise MalformedMessage(f"{count} names, and {most} are the most")
    if count <= 0:
        return None
    return frozenset(name for name in (walk.required_string() for _ in range(count)) if name.startswith(prefix))


def with_settings(
    frame: bytes | bytearray,
    version: int,
    body_at: int,
    added: Callable[[str], Sequence[bytes]],
    give_way: Callable[[], None],
) -> Parts:
    """Return a response, in parts, with additional settings for topics that were described without an error.

    `added` returns a topic's settings, as `encode_setting` encodes them. Topics whose settings would make the response
    too large (MOST_ADDED_BYTES) get an error. Raises MalformedMessage.
    """
    walk = _walk(frame, version, body_at, _ANY_NUMBER)
    view = memoryview(frame)
    flexible = APIS[ApiKey.DESCRIBE_CONFIGS].is_flexible(version)
    setting = _setting_program(version)
    parts: list[bytes | memoryview] = []
    copied_to, room = 0, MOST_ADDED_BYTES
    try:
        walk.skip(_COUNT_BYTES)  # throttle time
        for _ in range(_count(walk)):
            give_way()
            start = walk.position
            is_described = walk.int16() == 0
            walk.run(_ONE_STRING)
            kind_at = walk.position
            is_described = walk.bytes_of(1)[0] == TOPIC_RESOURCE and is_described
            name = walk.required_string()
            count_at = walk.position
            count = _count(walk)
            first_at = walk.position
            for _ in range(count):
                walk.run(setting)
            more = added(name) if is_described else ()
            if more:
                room -= sum(map(len, more))
                if room >= 0:
                    whole = _count_of(count + len(more), flexible)
                    parts += (view[copied_to:count_at], whole, view[first_at : walk.position], *more)
                else:
                    error = _INT16.pack(ErrorCode.UNKNOWN_SERVER_ERROR) + encode_string(_TOO_LARGE, flexible)
                    parts += (view[copied_to:start], error, view[kind_at:count_at], _count_of(0, flexible))
                copied_to = walk.position
            walk.skip_tags()
        walk.skip_tags()
    except MalformedMessage as error:
        raise MalformedMessage(f"DescribeConfigs response v{version}: {error}") from error
    parts.append(view[copied_to:])
    return parts


def encode_setting(
    setting: DescribedSetting, version: int, include_synonyms: bool, include_documentation: bool
) -> bytes:
    """Return a setting as responses encode it. Raises SchemaMisuse if a string is too long."""
    flexible = APIS[ApiKey.DESCRIBE_CONFIGS].is_flexible(version)
    is_default = setting.value is None
    tags = b"\0" if flexible else b""
    source = setting.source
    parts = [encode_string(setting.name, flexible), encode_string(setting.value, flexible), b"\0"]
    parts.append(b"\0" if version < _SYNONYMS_SINCE else bytes([source]))  # brokers do not mark defaults in version 0
    parts.append(b"\0")
    if version >= _SYNONYMS_SINCE:
        count = 1 if include_synonyms and not is_default else 0
        parts.append(_count_of(count, flexible))
        if count:
            parts += (
                encode_string(setting.name, flexible),
                encode_string(setting.value, flexible),
                bytes([source]),
                tags,
            )
    if version >= _DOCUMENTATION_SINCE:
        documentation = setting.documentation if include_documentation else None
        parts += (bytes([setting.type]), encode_string(documentation, flexible))
    return b"".join((*parts, tags))


@cache
def _setting_program(version: int) -> Program:
    return program_of((_SETTINGS,), version)[0][2]


def _walk(frame: bytes | bytearray, version: int, body_at: int, most: int) -> ResponseWalk:
    walk = ResponseWalk()
    flexible = APIS[ApiKey.DESCRIBE_CONFIGS].is_flexible(version)
    walk.begin(frame, version, flexible, body_at, most, MAX_TAGGED_FIELDS)
    return walk


def _count(walk: ResponseWalk) -> int:
    count = walk.length(_COUNT_BYTES)
    if count < 0:
        raise MalformedMessage("an array is null")
    return count


def _count_of(count: int, flexible: bool) -> bytes:
    return unsigned_varint(count + 1) if flexible else _INT32.pack(count)
