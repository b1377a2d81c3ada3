"""Divides a request to create topics or to alter settings between the broker and sluicegate."""

from collections import Counter
from collections.abc import Callable, Mapping
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
from sluicegate.proxy.session.settings.requested_values import RequestedValues, is_ours, requested_values
from sluicegate.proxy.session.topic_settings import SettingsChange, TopicSettings

GiveWay = Callable[[], None]
_TOO_LARGE = ChangeError(
    ErrorCode.INVALID_REQUEST,
    f"a request with sluicegate settings may have at most {MOST_READ} topics, other resources and settings: send "
    "several requests",
)


@dataclass(slots=True)
class DividedRequest:
    """The parts of a request, whose items have numbers.

    `refused` has the items that get an error from the proxy, and `changes` the settings to store for the items that the
    broker accepts. `for_broker` is the broker's request, or None if no item is left for it. `only_ours` is true if the
    request asks the broker for nothing. If `is_foreign`, it is a request without settings of sluicegate.
    """

    request: ChangeRequest
    refused: dict[int, ChangeError] = field(default_factory=dict)
    changes: dict[int, SettingsChange] = field(default_factory=dict)
    for_broker: bytes | None = None
    only_ours: bool = False
    is_foreign: bool = False


def divide(
    api_key: int, version: int, frame: bytes | bytearray, body_at: int, stored: TopicSettings, give_way: GiveWay
) -> DividedRequest:
    """Read and divide a request. Blocks, because it compiles policies. Raises MalformedMessage."""
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
                # A broker refuses all mentions of what is mentioned several times.
                self._divide_item(number, item, mentions[item.kind, item.name] == 1)
        if len(divided.refused) < len(request.items):
            divided.only_ours = self._is_without_broker_settings()
            is_validation = divided.only_ours and self._api is ApiKey.INCREMENTAL_ALTER_CONFIGS
            left = without(
                self._frame, request, divided.refused, self._taken_out, request.is_validation or is_validation
            )
            divided.for_broker = b"".join(left)  # a request about many topics has more parts than one write takes
        return divided

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
        if isinstance(asked, RequestedValues):
            refusal = self._refusal(item.name, asked, current)
            if refusal is None:
                if asked.values or asked.removed:
                    self._divided.changes[number] = SettingsChange(item.name, None, asked.values, asked.removed)
                return
            asked = refusal
        if ours:
            self._divided.refused[number] = asked
            self._taken_out.pop(number)

    def _refusal(self, topic: str, asked: RequestedValues, current: Mapping[str, str]) -> ChangeError | None:
        after = {name: value for name, value in current.items() if name not in asked.removed} | dict(asked.values)
        found = self._stored.refusal(topic, after) if after else None
        return None if found is None else ChangeError(found.code, found.message)

    def _is_without_broker_settings(self) -> bool:
        items = enumerate(self._divided.request.items)
        return not any(
            len(item.settings) > len(self._taken_out.get(number, ()))
            for number, item in items
            if number not in self._divided.refused
        )
