"""Divides a request to create topics or to alter settings between the broker and sluicegate."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from sluicegate.config.setting_keys import PREFIX
from sluicegate.protocol.api import ApiKey
from sluicegate.protocol.change_requests import (
    MOST_READ,
    TOPIC_RESOURCE,
    ChangeRequest,
    RequestedItem,
    read_change,
    without,
)
from sluicegate.protocol.change_responses import ChangeError
from sluicegate.protocol.errors import ErrorCode
from sluicegate.proxy.session.settings.pieces import in_pieces
from sluicegate.proxy.session.settings.requested_values import (
    After,
    Refusal,
    RequestedValues,
    is_ours,
    requested_values,
)
from sluicegate.proxy.session.topic_settings import SettingsChange, TopicSettings

GiveWay = Callable[[], None]
MOST_REPORTED = 10
"""The maximum number of items that a report names."""
_TOO_LARGE = Refusal(
    ChangeError(
        ErrorCode.INVALID_REQUEST,
        f"a request with sluicegate settings may have at most {MOST_READ} topics, other resources and settings: send "
        "several requests",
    ),
    After.NO_CHECK,
)
REPEATED_LATER = ErrorCode.NOT_CONTROLLER
"""Of the error codes that mean "not now", the one after which Java's AdminClient and others retry the request.

librdkafka treats REQUEST_TIMED_OUT as success of CreateTopics.
"""
_NOT_KNOWN = Refusal(
    ChangeError(
        REPEATED_LATER,
        "the proxy has not read state.topic yet, in which sluicegate settings are stored; nothing was changed: repeat "
        "the request",
    ),
    After.ALL_CHECKS,
)


@dataclass(slots=True)
class DividedRequest:
    """A request that is divided into parts. Its items are numbered.

    `refused` contains the items that get an error, and `changes` the settings to store for the items that the broker
    accepts. `for_broker` is the broker's request, or None if no item is left for it. If `is_foreign` is true, the
    request contains no sluicegate settings.

    `to_validate` is a request that first asks the broker about refused items, without their settings, because a broker
    would have found other errors earlier. `answered` contains the broker's encoded results for items with such an
    error.
    """

    request: ChangeRequest
    refused: dict[int, Refusal] = field(default_factory=dict)
    changes: dict[int, SettingsChange] = field(default_factory=dict)
    for_broker: bytes | None = None
    to_validate: bytes | None = None
    is_foreign: bool = False
    answered: dict[int, bytes] = field(default_factory=dict)

    def refused_by_us(self, give_way: GiveWay) -> "RefusedItems | None":
        """Return the items with errors from the proxy itself, or None if there are none."""
        codes: Counter[int] = Counter()
        named: list[RequestedItem] = []
        for number, refusal in self.refused.items():
            give_way()
            if number not in self.answered:
                codes[refusal.error.code] += 1
                if len(named) < MOST_REPORTED:
                    named.append(self.request.items[number])
        return RefusedItems(codes, named) if named else None


@dataclass(frozen=True, slots=True)
class RefusedItems:
    """The items that the proxy refuses: the number of items per error, and the first items."""

    codes: Counter[int]
    named: list[RequestedItem]


def divide(
    api_key: int, version: int, frame: bytes | bytearray, body_at: int, stored: TopicSettings, give_way: GiveWay
) -> DividedRequest:
    """Parse and divide a request. Blocks, because it compiles policies. Raises MalformedMessage."""
    request = read_change(api_key, version, frame, body_at, PREFIX, give_way)
    return _Division(ApiKey(api_key), frame, request, stored, give_way).divide()


class _Division:
    def __init__(
        self,
        api: ApiKey,
        frame: bytes | bytearray,
        request: ChangeRequest,
        stored: TopicSettings,
        give_way: GiveWay,
    ) -> None:
        self._api = api
        self._frame = frame
        self._stored = stored
        self._give_way = give_way
        self._divided = DividedRequest(request)
        self._taken_out: dict[int, set[int]] = {}

    def divide(self) -> DividedRequest:
        divided, request = self._divided, self._divided.request
        if not any(map(self._is_named, request.items)):
            divided.is_foreign = True
            return divided
        if request.is_too_large:
            divided.refused = dict.fromkeys(range(len(request.items)), _TOO_LARGE)
            return divided
        mentions = Counter((item.kind, item.name) for item in request.items)
        for number, item in enumerate(request.items):
            self._give_way()
            if item.kind == TOPIC_RESOURCE:
                # If an item is mentioned several times, a broker refuses all its mentions.
                self._divide_item(number, item, mentions[item.kind, item.name] == 1)
        if len(divided.refused) < len(request.items):
            only_ours = self._api is ApiKey.INCREMENTAL_ALTER_CONFIGS and self._is_without_broker_settings()
            divided.for_broker = self._request_without(
                divided.refused, self._taken_out, request.is_validation or only_ours
            )
        asked = {number for number, each in divided.refused.items() if each.after is not After.NO_CHECK}
        if asked and request.validate_only_at:
            others = [number for number in range(len(request.items)) if number not in asked]
            settings = {number: range(len(request.items[number].settings)) for number in asked}
            divided.to_validate = self._request_without(others, settings, True)
        return divided

    def _request_without(
        self, items: Collection[int], settings: Mapping[int, Collection[int]], is_validation: bool
    ) -> bytes:
        """Return the request in one part, because a request about many topics has more parts than one write accepts."""
        dropped = frozenset(items)
        parts = without(self._frame, self._divided.request, dropped, settings, is_validation, self._give_way)
        return b"".join(in_pieces(parts, self._give_way))

    def _is_named(self, item: RequestedItem) -> bool:
        self._give_way()
        return item.has_prefix and item.kind == TOPIC_RESOURCE

    def _divide_item(self, number: int, item: RequestedItem, is_checked: bool) -> None:
        ours = {place for place, setting in enumerate(item.settings) if is_ours(setting)}
        if ours:
            self._taken_out[number] = ours
        current = self._stored.settings_of(item.name)
        if not is_checked or not (ours or (current and self._api is not ApiKey.INCREMENTAL_ALTER_CONFIGS)):
            return
        asked = requested_values(self._api, item.settings, current)
        refusal = asked if isinstance(asked, Refusal) else self._refusal(item.name, asked, current)
        if refusal is None and ours and not self._stored.are_known:
            refusal = _NOT_KNOWN
        if refusal is not None:
            if ours:  # otherwise the broker finds the same error
                self._divided.refused[number] = refusal
                self._taken_out.pop(number)
        elif isinstance(asked, RequestedValues) and (asked.values or asked.removed):
            self._divided.changes[number] = SettingsChange(item.name, None, asked.values, asked.removed)

    def _refusal(self, topic: str, asked: RequestedValues, current: Mapping[str, str]) -> Refusal | None:
        wanted = {name: value for name, value in current.items() if name not in asked.removed} | dict(asked.values)
        found = self._stored.refusal(topic, wanted) if wanted else None
        return None if found is None else Refusal(ChangeError(found.code, found.message), After.ALL_CHECKS)

    def _is_without_broker_settings(self) -> bool:
        items = enumerate(self._divided.request.items)
        return not any(
            len(item.settings) > len(self._taken_out.get(number, ()))
            for number, item in items
            if number not in self._divided.refused
        )
