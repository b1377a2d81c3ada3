"""Defines the keys with which a topic's settings in the cluster define its policy, `sluicegate.*`.

They are those of an entry of `topics`, flattened: a key inside a section is prefixed by the section's name. If a
section has only one required key, that key has the name of the section itself (`sluicegate.fix` is `fix.timestamp` in a
file).
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from sluicegate.config.keys import Key, each_key_of, is_list, item_of, section_of, unwrapped
from sluicegate.config.section import is_section
from sluicegate.config.topics import Topic

PREFIX = "sluicegate."
CONTRACT = f"{PREFIX}contract"
"""The only key that entries of `topics` do not have. Its value is the content of a file in `contracts`."""
_NOT_SETTINGS = frozenset({"match"})


class SettingType(IntEnum):
    """The types that these keys have in DescribeConfigs v3 and later (KIP-569)."""

    BOOLEAN = 1
    STRING = 2
    LIST = 7


@dataclass(frozen=True, slots=True)
class SettingKey:
    """A key: its name with the prefix, its path in an entry of `topics`, its type, default and description.

    `is_json` is whether the value is JSON.
    """

    name: str
    path: tuple[str, ...]
    type: SettingType
    default: str | None
    description: str
    is_json: bool = False

    @property
    def short_name(self) -> str:
        """The name without the prefix."""
        return self.name.removeprefix(PREFIX)


def _type_of(annotation: Any) -> SettingType:
    if is_list(annotation):
        return SettingType.STRING if _is_json(annotation) else SettingType.LIST
    return SettingType.BOOLEAN if unwrapped(annotation) is bool else SettingType.STRING


def _is_json(annotation: Any) -> bool:
    """Return whether the value is a list of sections."""
    item = item_of(annotation)
    return isinstance(item, type) and is_section(item)


def _key(name: str, path: tuple[str, ...], key: Key) -> SettingKey:
    default = None if key.is_required or key.default is None or key.default == () else str(key.default)
    is_json = is_list(key.annotation) and _is_json(key.annotation)
    return SettingKey(PREFIX + name, path, _type_of(key.annotation), default, key.description, is_json)


def _keys() -> list[SettingKey]:
    found = []
    for key in each_key_of(Topic):
        section = section_of(key.annotation)
        if key.name in _NOT_SETTINGS:
            continue
        if section is None:
            found.append(_key(key.name, (key.name,), key))
            continue
        inside = each_key_of(section)
        required = [inner.name for inner in inside if inner.is_required]
        for inner in inside:
            name = key.name if required == [inner.name] else f"{key.name}.{inner.name}"
            found.append(_key(name, (key.name, inner.name), inner))
    words = "A data contract (ODCS 3 or AsyncAPI), whose rules for the topic are added to the others."
    return [*found, SettingKey(CONTRACT, ("contract",), SettingType.STRING, None, words)]


SETTING_KEYS = {key.name: key for key in _keys()}
"""The keys by their names, in the order of docs/configuration.md."""
