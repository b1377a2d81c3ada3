"""Reads requests that create topics or alter settings, and removes settings or topics from them.

All other bytes stay unchanged. `give_way` is called between small pieces, because a request with many topics and
settings may take long.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from struct import Struct

from sluicegate.protocol.api import APIS, ApiKey
from sluicegate.protocol.errors import MalformedMessage
from sluicegate.protocol.framing import Parts
from sluicegate.protocol.integers import unsigned_varint
from sluicegate.protocol.layout import LayoutStep, Program
from sluicegate.protocol.response_walks import ResponseWalk
from sluicegate.protocol.walk import MAX_TAGGED_FIELDS

TOPIC_RESOURCE = 2
MOST_NAMED = 200_000
"""The maximum number of topics, partitions and settings in a readable request."""
MOST_READ = 20_000
"""The maximum number of topics, other resources and settings in a request whose settings are read."""
_INT32 = Struct(">i")
_COUNT_BYTES = 4
_VALIDATE_ONLY_SINCE = {ApiKey.CREATE_TOPICS: 1, ApiKey.ALTER_CONFIGS: 0, ApiKey.INCREMENTAL_ALTER_CONFIGS: 0}
_ENTRIES_A_PIECE = 64
_TAGS = (int(LayoutStep.TAGS), 0, ())
_ASSIGNMENTS: Program = (
    (int(LayoutStep.FIXED), 4 + 2, ()),  # partitions, replicas
    (
        int(LayoutStep.ARRAY),
        0,
        (
            (int(LayoutStep.FIXED), 4, ()),
            (int(LayoutStep.ARRAY), 0, ((int(LayoutStep.FIXED), 4, ()),)),
            _TAGS,
        ),
    ),
)

GiveWay = Callable[[], None]


@dataclass(frozen=True, slots=True)
class RequestedSetting:
    """A setting in a request, at data[start:end]. `operation` is that of KIP-339, or 0 (SET) in other requests."""

    name: str
    operation: int
    value: str | None
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class RequestedItem:
    """A topic to create, or a resource to alter, at data[start:end]. `kind` is the type of the resource.

    Its settings are data[first_at:last_end], preceded by their count at `count_at`. `has_prefix` is whether the name of
    any of them has the prefix. The positions are 0 if the request is too large for its settings to be read.
    """

    kind: int
    name: str
    has_prefix: bool
    settings: tuple[RequestedSetting, ...]
    start: int
    count_at: int
    first_at: int
    last_end: int
    end: int


@dataclass(frozen=True, slots=True)
class ChangeRequest:
    """A request. If `is_too_large`, it has more than MOST_READ elements, and its settings were not read.

    Its items are data[first_at:last_end], preceded by their count at `count_at`. `validate_only_at` is 0 if the version
    lacks that field.
    """

    items: list[RequestedItem]
    is_too_large: bool
    is_validation: bool
    flexible: bool
    count_at: int
    first_at: int
    last_end: int
    validate_only_at: int


def read_change(
    api_key: int, version: int, frame: bytes | bytearray, body_at: int, prefix: str, give_way: GiveWay
) -> ChangeRequest:
    """Read a request of CreateTopics, AlterConfigs or IncrementalAlterConfigs.

    `prefix` is the prefix of the settings to find. Raises MalformedMessage, also if the request has more than
    MOST_NAMED elements.
    """
    api = ApiKey(api_key)
    flexible = APIS[api_key].is_flexible(version)
    walk = ResponseWalk()
    walk.begin(frame, version, flexible, body_at, MOST_NAMED, MAX_TAGGED_FIELDS)
    try:
        return _Reader(walk, api, flexible, prefix, give_way).read(version)
    except MalformedMessage as error:
        raise MalformedMessage(f"{APIS[api_key].name} v{version}: {error}") from error


class _Reader:
    def __init__(self, walk: ResponseWalk, api: ApiKey, flexible: bool, prefix: str, give_way: GiveWay) -> None:
        self._walk = walk
        self._api = api
        self._flexible = flexible
        self._prefix = prefix
        self._give_way = give_way
        self._elements = 0

    def read(self, version: int) -> ChangeRequest:
        walk, api = self._walk, self._api
        count_at = walk.position
        count = self._count()
        first_at = walk.position
        items = []
        for _ in range(count):
            self._give_way()
            items.append(self._item())
        last_end = walk.position
        if api is ApiKey.CREATE_TOPICS:
            walk.skip(4)  # timeout
        validate_only_at, is_validation = 0, False
        if version >= _VALIDATE_ONLY_SINCE[api]:
            validate_only_at = walk.position
            is_validation = walk.bytes_of(1) != b"\0"
        walk.skip_tags()
        walk.expect_end()
        is_too_large = self._elements > MOST_READ
        return ChangeRequest(
            items, is_too_large, is_validation, self._flexible, count_at, first_at, last_end, validate_only_at
        )

    def _item(self) -> RequestedItem:
        walk, start = self._walk, self._walk.position
        kind = TOPIC_RESOURCE if self._api is ApiKey.CREATE_TOPICS else walk.bytes_of(1)[0]
        name = walk.required_string()
        if self._api is ApiKey.CREATE_TOPICS:
            walk.run(_ASSIGNMENTS)
        count_at = walk.position
        count = self._count()
        first_at = walk.position
        has_prefix, settings = False, []
        for number in range(count):
            if number % _ENTRIES_A_PIECE == 0:
                self._give_way()
            setting = self._setting()
            has_prefix = has_prefix or setting.name.startswith(self._prefix)
            if self._elements <= MOST_READ:
                settings.append(setting)
        last_end = walk.position
        walk.skip_tags()
        if self._elements > MOST_READ:  # 100,000 items with positions take 12 ms to free
            return RequestedItem(kind, name, has_prefix, (), 0, 0, 0, 0, 0)
        return RequestedItem(
            kind, name, has_prefix, tuple(settings), start, count_at, first_at, last_end, walk.position
        )

    def _setting(self) -> RequestedSetting:
        walk, start = self._walk, self._walk.position
        name = walk.required_string()
        operation = 0
        if self._api is ApiKey.INCREMENTAL_ALTER_CONFIGS:
            operation = int.from_bytes(walk.bytes_of(1), "big", signed=True)
        value = walk.string()
        walk.skip_tags()
        return RequestedSetting(name, operation, value, start, walk.position)

    def _count(self) -> int:
        count = self._walk.length(_COUNT_BYTES)
        if count < 0:
            raise MalformedMessage("an array is null")
        self._elements += count
        if self._elements > MOST_NAMED:
            raise MalformedMessage(f"more than {MOST_NAMED} elements")
        return count


def without(
    frame: bytes | bytearray,
    request: ChangeRequest,
    dropped_items: Collection[int],
    dropped_settings: Mapping[int, Collection[int]],
    is_validation: bool,
    give_way: GiveWay,
) -> Parts:
    """Return a request's frame, in parts, without some items, and without some settings of other items.

    Items are given by their position in the request, and settings by their position in their item. The request must not
    be too large.
    """
    view = memoryview(frame)
    parts: list[bytes | memoryview] = [view[: request.count_at]]
    parts.append(_count_of(len(request.items) - len(dropped_items), request.flexible))
    copied_to = request.first_at
    for number, item in enumerate(request.items):
        give_way()
        dropped = dropped_settings.get(number, ())
        if number in dropped_items:
            parts.append(view[copied_to : item.start])
            copied_to = item.end
        elif dropped:
            parts += (view[copied_to : item.count_at], _count_of(len(item.settings) - len(dropped), request.flexible))
            copied_to = item.first_at
            for place in sorted(dropped):
                setting = item.settings[place]
                parts.append(view[copied_to : setting.start])
                copied_to = setting.end
    if is_validation and not request.is_validation and request.validate_only_at:
        parts += (view[copied_to : request.validate_only_at], b"\1")
        copied_to = request.validate_only_at + 1
    parts.append(view[copied_to:])
    return [part for part in parts if part]


def _count_of(count: int, flexible: bool) -> bytes:
    return unsigned_varint(count + 1) if flexible else _INT32.pack(count)
