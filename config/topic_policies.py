"""The section `topic_policies`: which keys teams may set for which topics, as topic settings in the cluster."""

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator

from sluicegate.config.section import described, section
from sluicegate.config.setting_keys import PREFIX, SETTING_KEYS, SettingKey
from sluicegate.config.values import json_schema_kinds as schema
from sluicegate.config.values.glob_cover import is_within
from sluicegate.config.values.kinds import Flag, Text, TopicPatternList
from sluicegate.config.values.near_names import nearest
from sluicegate.config.values.quantity import format_quantity

_ALL = "*"


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _key_names(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names without their prefix. `NAME.*` stands for all keys that begin with `NAME.`."""
    short = tuple(name.removeprefix(PREFIX) for name in names)
    known = [key.short_name for key in SETTING_KEYS.values()]
    for name in short:
        if not any(_covers(name, key) for key in known):
            close = nearest(name, known)
            hint = f"did you mean {close}?" if close else f"known keys: {', '.join(known)}"
            raise ValueError(f"{format_quantity(name)} is no key of a topic setting; {hint}")
    return short


def _covers(pattern: str, name: str) -> bool:
    if pattern == _ALL:
        return True
    return name.startswith(pattern[:-1]) if pattern.endswith(".*") else name == pattern


KeyNames = Annotated[
    tuple[Text, ...],
    BeforeValidator(_listed),
    AfterValidator(_key_names),
    schema.schema_note(schema.one_or_more(schema.TEXT)),
    schema.Takes("a key, or a list of keys"),
]


@section
class TopicPolicies:
    """Keys that the owners of topics set in the cluster, as topic settings with the prefix `sluicegate.`."""

    topics: TopicPatternList = described(
        "The topics, as patterns like those of `topics[].match`.",
        misnomers=dict.fromkeys(("match", "scope", "topic"), "topics: [{value}]"),
    )
    keys: KeyNames = described(
        "The keys, for example `mode` or `owner`. `enforce.*` stands for all keys that begin with `enforce.`, and `*` "
        "for all keys ([keys](configuration.md#topic-settings)).",
        misnomers=dict.fromkeys(("allow", "settings", "key"), "keys: [{value}]"),
    )
    over_files: Flag = described(
        "Whether a topic setting takes precedence over the same key in an entry of `topics`. It always takes "
        "precedence over `defaults`, and never over `floor`.",
        default=False,
    )

    def covers(self, topic: str) -> bool:
        """Return whether any of the topic's keys is delegated."""
        return is_within(topic, self.topics)

    def names(self, key: SettingKey) -> bool:
        """Return whether the item delegates a key."""
        return any(_covers(pattern, key.short_name) for pattern in self.keys)


def delegated_keys(delegations: Sequence[TopicPolicies], topic: str) -> dict[str, TopicPolicies]:
    """Return the keys that the owners of `topic` may set, by name, each with the first item that delegates it."""
    covering = [each for each in delegations if each.covers(topic)]
    found: dict[str, TopicPolicies] = {}
    for key in SETTING_KEYS.values() if covering else ():
        item = next((each for each in covering if each.names(key)), None)
        if item is not None:
            found[key.name] = item
    return found
