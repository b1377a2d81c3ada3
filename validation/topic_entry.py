"""Reads a topic's settings as an entry of `topics`, and merges it with the configuration's entry."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path as FilePath
from typing import Any

from sluicegate.config.contracts.contract_file import contract_in_text, topics_in
from sluicegate.config.files.source import Source
from sluicegate.config.keys import annotation_at, each_key_of, note_of, takes_none
from sluicegate.config.loading import InvalidSection, read_section
from sluicegate.config.model import Config
from sluicegate.config.section import is_section
from sluicegate.config.setting_keys import CONTRACT, SETTING_KEYS, SettingKey, SettingType
from sluicegate.config.topic_policies import TopicPolicies, delegated_keys
from sluicegate.config.topics import Topic
from sluicegate.config.validation_words import problems_of
from sluicegate.config.values.contract import contract_of
from sluicegate.config.values.glob_cover import is_within
from sluicegate.config.values.kinds import NamesFile
from sluicegate.config.values.quantity import is_none

MOST_CHARACTERS = 12_000
"""The maximum length of a value."""
_MOST_NAMED = 5
_ATTRIBUTES = {key.name: key.attribute for key in each_key_of(Topic)}


class SettingUnusable(ValueError):
    """Raised if a topic setting has an invalid value, or excludes another of the topic's keys. `key` is its name."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(message)
        self.key = key


class NotDelegated(SettingUnusable):
    """Raised if `topic_policies` does not delegate a topic setting for this topic."""


@dataclass(frozen=True, slots=True)
class TopicEntry:
    """The keys of one topic, including its settings.

    `settings` maps each key that a topic setting sets to the name of that setting.
    """

    keys: Topic
    settings: Mapping[str, str]


def entry_of(config: Config, topic: str, values: Mapping[str, str], base: Topic | None) -> TopicEntry:
    """Return the entry of a topic that has these settings. `base` is the configuration's own entry for the topic.

    A setting takes precedence over `defaults`, and also over `base` if its delegation says so. Raises SettingUnusable.
    """
    delegated = delegated_keys(config.topic_policies, topic)
    given = _read(topic, values, delegated)
    merged = {} if base is None else {each.name: getattr(base, each.name) for each in fields(base)}
    settings: dict[str, str] = {}
    for name in values:
        top = SETTING_KEYS[name].path[0]
        if name == CONTRACT:
            continue
        attribute = _ATTRIBUTES[top]
        if merged.get(attribute) is None or delegated[name].over_files or top in settings:
            merged[attribute] = getattr(given, attribute)
            settings[top] = name
    if CONTRACT in values:
        contract = _contract_in(topic, values[CONTRACT])
        before = merged.get("rules") if merged.get("rules") is not None else config.defaults.rules
        merged["rules"] = (*(before or ()), *(contract.rules or ()))
        settings["rules"] = CONTRACT
        if merged.get("owner") is None and contract.owner is not None:
            merged["owner"], settings["owner"] = contract.owner, CONTRACT
    try:
        keys = Topic(**{**merged, "match": topic})
        replace(config, topics=(keys,)).check()
    except ValueError as error:
        raise SettingUnusable(next(iter(settings.values()), next(iter(values))), str(error)) from None
    return TopicEntry(keys, settings)


def _read(topic: str, values: Mapping[str, str], delegated: Mapping[str, TopicPolicies]) -> Topic:
    """Parse settings as an entry of `topics`. Raises SettingUnusable."""
    source = Source("topic settings", {"match": topic})
    for name, text in values.items():
        key = SETTING_KEYS.get(name)
        if key is None:
            raise SettingUnusable(name, f"no such key; known keys: {', '.join(SETTING_KEYS)}")
        if name not in delegated:
            raise NotDelegated(name, _not_delegated(delegated))
        if len(text) > MOST_CHARACTERS:
            raise SettingUnusable(name, f"{len(text)} characters, and at most {MOST_CHARACTERS} are allowed")
        source.places[key.path] = name
        if name != CONTRACT and not (is_none(text) and takes_none(annotation_at(Topic, key.path))):
            _put(source.data, key, text)
    try:
        entry = read_section(Topic, source.data)
    except InvalidSection as error:
        problem = problems_of(error.details, source, Topic)[0]
        name = problem.place if problem.place in values else next(iter(values))
        inside = problem.key.removeprefix(".".join(SETTING_KEYS[name].path)).lstrip(".")
        missing = next((key.name for key in SETTING_KEYS.values() if ".".join(key.path) == problem.key), inside)
        message = problem.message if missing in ("", name) else f"{missing}: {problem.message}"
        raise SettingUnusable(name, message) from None
    for name in values:
        _check_reach(name, entry, delegated[name])
    return entry


def _contract_in(topic: str, text: str) -> Topic:
    """Return the rules and the owner that a data contract defines for a topic. Raises SettingUnusable."""
    source = contract_in_text(text, CONTRACT)
    contracts = [] if source.problems else topics_in(source, FilePath(CONTRACT), None, "reject")
    if source.problems:
        raise SettingUnusable(CONTRACT, str(source.problems[0]))
    contract = contract_of({each.topic: each for each in contracts}, topic)
    if contract is None:
        names = ", ".join(each.topic for each in contracts[:_MOST_NAMED]) or "no topic"
        raise SettingUnusable(CONTRACT, f"the contract has no rule for {topic}; it names {names}")
    data: dict[str, Any] = {"match": topic, "rules": [dict(rule.keys) for rule in contract.rules]}
    if contract.owner is not None:
        data["owner"] = dict(contract.owner)
    try:
        return read_section(Topic, data)
    except InvalidSection as error:
        raise SettingUnusable(CONTRACT, str(error)) from None


def _not_delegated(delegated: Mapping[str, TopicPolicies]) -> str:
    if not delegated:
        return "topic_policies of the proxy's configuration delegates no key of this topic; ask the operator"
    names = ", ".join(delegated)
    return f"topic_policies of the proxy's configuration does not delegate this key of the topic; it delegates {names}"


def _put(data: dict[str, Any], key: SettingKey, text: str) -> None:
    value: Any = text
    if key.is_json:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            raise SettingUnusable(key.name, "expected a JSON text, as the same key has in the configuration") from None
    elif key.type is SettingType.LIST:  # as Kafka reads lists
        value = [item.strip() for item in text.split(",")]
    *sections, last = key.path
    for name in sections:
        data = data.setdefault(name, {})
    data[last] = value


def _check_reach(name: str, entry: Topic, delegation: TopicPolicies) -> None:
    """Check that a setting names only what the owners of its topic may use. Raises SettingUnusable."""
    if name == CONTRACT:
        return  # a contract names no file, and no topic but its own
    value = getattr(entry, _ATTRIBUTES[SETTING_KEYS[name].path[0]])
    file = next(_files_in(value), None)
    if file is not None:
        raise SettingUnusable(name, f"{file}: a topic setting cannot name a file of the proxy's machine")
    quarantine = entry.quarantine if name == "sluicegate.quarantine" else None
    if quarantine is not None and not is_within(quarantine, delegation.topics):
        scope = ", ".join(delegation.topics)
        raise SettingUnusable(name, f"{quarantine} is beyond the topics of this delegation ({scope})")


def _files_in(value: Any) -> Iterator[str]:
    """Yield the keys inside a value that name a file."""
    if isinstance(value, tuple):
        for item in value:
            yield from _files_in(item)
    elif is_section(type(value)):
        for key in each_key_of(type(value)):
            inner = getattr(value, key.attribute)
            if inner is not None and note_of(key.annotation, NamesFile) is not None:
                yield key.name
            yield from _files_in(inner)
