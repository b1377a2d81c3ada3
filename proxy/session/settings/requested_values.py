"""Finds the changes of sluicegate's topic settings that a request makes to one topic.

The checks and messages are those of a broker. A broker checks all of a topic's settings together. So if one of them is
a sluicegate setting, the others are checked too.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from sluicegate.config.setting_keys import PREFIX, SETTING_KEYS, SettingType
from sluicegate.protocol.api import ApiKey
from sluicegate.protocol.change_requests import RequestedSetting
from sluicegate.protocol.change_responses import ChangeError
from sluicegate.protocol.errors import ErrorCode
from sluicegate.protocol.walk import MAX_STRING_BYTES


class _Operation(IntEnum):
    """The operations of IncrementalAlterConfigs (KIP-339)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class After(IntEnum):
    """The broker's checks that precede the one that would find the error."""

    NO_CHECK = 0
    AUTHORIZATION = 1
    ALL_CHECKS = 2
    """All checks except those of the values: authorization, the topic's name, and its existence."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why settings are not accepted, and after which checks a broker would report this."""

    error: ChangeError
    after: After


@dataclass(frozen=True, slots=True)
class RequestedValues:
    """The sluicegate settings to set on a topic (`values`), and those to delete."""

    values: Mapping[str, str] = field(default_factory=dict)
    removed: frozenset[str] = frozenset()


Requested = RequestedValues | Refusal


def requested_values(api_key: int, settings: Sequence[RequestedSetting], current: Mapping[str, str]) -> Requested:
    """Return what a topic's entry in a request asks for, or the error with which a broker would respond.

    `current` contains the topic's sluicegate settings.
    """
    return _READERS[ApiKey(api_key)](settings, current)


def is_ours(setting: RequestedSetting) -> bool:
    """Return whether a setting is sluicegate's."""
    return setting.name.startswith(PREFIX)


def _created(settings: Sequence[RequestedSetting], current: Mapping[str, str]) -> Requested:
    """Return the settings of a new topic, which inherits none. If a name is repeated, the last one counts."""
    missing = [each.name for each in settings if each.value is None]
    if missing:
        text = f"Null value not supported for topic configs: {','.join(missing)}"
        return Refusal(ChangeError(ErrorCode.INVALID_CONFIG, text), After.ALL_CHECKS)
    return _replaced_by(settings, current)


def _replaced(settings: Sequence[RequestedSetting], current: Mapping[str, str]) -> Requested:
    return _flaw_in(settings) or _replaced_by(settings, current)


def _replaced_by(settings: Sequence[RequestedSetting], current: Mapping[str, str]) -> RequestedValues:
    values = {each.name: each.value for each in settings if each.value is not None and is_ours(each)}
    return RequestedValues(values, frozenset(current.keys() - values.keys()))


def _changed(settings: Sequence[RequestedSetting], current: Mapping[str, str]) -> Requested:
    flaw = _flaw_in(settings)
    if flaw is not None:
        return flaw
    values: dict[str, str] = {}
    removed: set[str] = set()
    for setting in settings:
        if not is_ours(setting):
            continue
        if setting.operation == _Operation.DELETE:
            removed.add(setting.name)
        elif setting.operation == _Operation.SET:
            values[setting.name] = setting.value or ""
        elif setting.operation in (_Operation.APPEND, _Operation.SUBTRACT):
            key, operation = SETTING_KEYS.get(setting.name), _Operation(setting.operation)
            if key is None or key.type is not SettingType.LIST:
                message = f"Can't {operation.name} to key {setting.name} because its type is not LIST."
                return Refusal(ChangeError(ErrorCode.INVALID_CONFIG, message), After.AUTHORIZATION)
            grown = _list_of(current.get(setting.name, key.default), setting.value or "", operation)
            if len(grown.encode()) > MAX_STRING_BYTES:  # no response could contain it
                message = f"The value of {setting.name} would have more than {MAX_STRING_BYTES} bytes."
                return Refusal(ChangeError(ErrorCode.INVALID_CONFIG, message), After.ALL_CHECKS)
            if grown:
                values[setting.name] = grown
            else:  # an empty list is valid for some of the broker's settings, but for none of sluicegate's
                removed.add(setting.name)
        else:
            return Refusal(ChangeError(ErrorCode.UNKNOWN_SERVER_ERROR, None), After.AUTHORIZATION)
    return RequestedValues(values, frozenset(removed))


def _flaw_in(settings: Sequence[RequestedSetting]) -> Refusal | None:
    """Return the error for what a broker checks before it looks at the names."""
    if len({each.name for each in settings}) != len(settings):
        return Refusal(ChangeError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys"), After.NO_CHECK)
    missing = [each.name for each in settings if each.value is None and each.operation != _Operation.DELETE]
    if missing:
        text = f"Null value not supported for : {', '.join(missing)}"
        return Refusal(ChangeError(ErrorCode.INVALID_REQUEST, text), After.NO_CHECK)
    return None


def _list_of(current: str | None, value: str, operation: _Operation) -> str:
    """Return a list with items appended or removed, as a broker's controller does it."""
    items = [item for item in (current or "").split(",") if item]
    for item in _split(value):
        if operation is _Operation.SUBTRACT:
            if item in items:
                items.remove(item)
        elif item not in items:
            items.append(item)
    return ",".join(items)


def _split(value: str) -> list[str]:
    """Split at commas as Java does, without empty items at the end. A string without a comma is one item."""
    return value.rstrip(",").split(",") if value.strip(",") else [value][: "," not in value]


_READERS: dict[ApiKey, Callable[[Sequence[RequestedSetting], Mapping[str, str]], Requested]] = {
    ApiKey.CREATE_TOPICS: _created,
    ApiKey.ALTER_CONFIGS: _replaced,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _changed,
}
