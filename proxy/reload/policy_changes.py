"""Compares the policies of two configurations to find what became stricter or looser (`sluicegate diff`, and a reload).

To compare an entry, this module compares the policies of a topic that its pattern matches, so that earlier entries and
the floor have the same effect as in the proxy. A regular expression is compared with the entry that has the same
expression, with the floor for all its topics.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sluicegate.config.files.source import Path
from sluicegate.config.loading import Loaded
from sluicegate.config.topics import STRICTNESS_OF_FRAMING, STRICTNESS_OF_MODE
from sluicegate.config.values.topic_pattern import exact_name_of, parts_of
from sluicegate.protocol.integers import LONG_MAX
from sluicegate.protocol.topic_name import is_legal_topic_name
from sluicegate.proxy.reload.json_schema_changes import changes_of
from sluicegate.validation.effective import EffectiveValue, effective_policy
from sluicegate.validation.from_keys import file_policies_of
from sluicegate.validation.names_only import NamesOnly
from sluicegate.validation.policy import TopicPolicy
from sluicegate.validation.rulebook import FilePolicies, Rulebook

_UNNAMED = "zz"  # replaces a wildcard
_NO_ENTRY = "topics without an entry"
_OF_ALL = "all topics"
_STRICTNESS: Mapping[str, Mapping[Any, int]] = {
    "message.timestamp.type": {"LogAppendTime": 0, "CreateTime": 1},
    "cleanup.policy": {"delete": 0, "compact": 1},
    "checks": {"none": 0, "all": 1},
    "mode": STRICTNESS_OF_MODE,
    "framing": STRICTNESS_OF_FRAMING,
}
_BOUNDS = frozenset({"message.timestamp.before.max.ms", "message.timestamp.after.max.ms", "max.message.bytes"})
_LOOSER_IF_SET = frozenset({"fix", "enforce"})


class ProducerEffect(StrEnum):
    """A change's effect on producers."""

    STRICTER = "stricter"
    LOOSER = "looser"
    CHANGED = "changed"  # neither stricter nor looser, or not known


@dataclass(frozen=True, slots=True)
class PolicyChange:
    """A change of one key. `topics` is the entry's pattern.

    `place` is the place of the new value, or of the old value if there is no new one.
    """

    topics: str
    what: str
    effect: ProducerEffect
    place: str

    def __str__(self) -> str:
        return f"{self.topics}: {self.effect.value}: {self.what} ({self.place})"


def changes_between(before: Loaded, after: Loaded) -> Iterator[PolicyChange]:
    """Yield each policy change, in the order of the new configuration."""
    old, new = _Side(before), _Side(after)
    for pattern in dict.fromkeys((*new.patterns, *old.patterns)):
        yield from _of_topic(pattern, old, old.policy(pattern), new, new.policy(pattern))
    yield from _of_topic(_NO_ENTRY, old, old.policy(_NO_ENTRY), new, new.policy(_NO_ENTRY))
    yield from _of_lists(old, new)


def counts_of(changes: Iterable[PolicyChange]) -> str:
    """Describe the number of changes of each kind."""
    counts = Counter(change.effect for change in changes)
    return ", ".join(f"{counts[effect]} {effect.value}" for effect in ProducerEffect)


class _Side:
    """One of the two configurations."""

    def __init__(self, loaded: Loaded) -> None:
        self.loaded = loaded
        self.file: FilePolicies = file_policies_of(loaded.config, NamesOnly(), loaded.source)
        self._rulebook = Rulebook(self.file)
        self.patterns = [*dict.fromkeys(match for match, _ in self.file.topics)]
        self.patterns += [floor.match for floor in loaded.config.floor if floor.match != "*"]

    def policy(self, pattern: str) -> TopicPolicy:
        """Return the policy of a topic that the pattern matches."""
        if pattern == _NO_ENTRY:
            return self._rulebook.policy_of(f"{_UNNAMED}-without-an-entry")
        name = _name_for(pattern)
        return self.file.of_pattern(pattern) if name is None else self._rulebook.policy_of(name)

    def items(self, key: str) -> list[Any]:
        """Return the items of a top-level list."""
        return self.loaded.source.data.get(key) or []

    def at(self, path: Path) -> Any:
        """Return the value at a path that exists."""
        value: Any = self.loaded.source.data
        for part in path:
            value = value[part]
        return value

    def place_of(self, path: Path) -> str:
        source = self.loaded.source
        return f"{source.place_of(path)}, {source.key_of(path)}"


def _name_for(pattern: str) -> str | None:
    """Return a topic name that the pattern matches, or None for a regular expression."""
    exact = exact_name_of(pattern)
    if exact is None and pattern[0] != "/":
        parts = [min(part, default="") if isinstance(part, frozenset) else part for part in parts_of(pattern)]
        exact = "".join({"*": _UNNAMED, "?": _UNNAMED[0]}.get(part, part) for part in parts)
    return exact if exact is not None and is_legal_topic_name(exact) else None


def _of_topic(topics: str, old: _Side, before: TopicPolicy, new: _Side, after: TopicPolicy) -> Iterator[PolicyChange]:
    if not before.checked and not after.checked:
        return
    values, others = _values_of(before), _values_of(after)
    if before.checked is not after.checked:  # this change enables or disables all other keys
        what, effect = _change("checks", values["checks"].value, others["checks"].value)
        yield PolicyChange(topics, what or "", effect, others["checks"].source)
        return
    for key in dict.fromkeys((*others, *values)):
        was, is_now = values.get(key), others.get(key)
        what, effect = _change(key, None if was is None else was.value, None if is_now is None else is_now.value)
        if what is not None:
            yield PolicyChange(topics, what, effect, _source_of(is_now or was))
    rules = {name: old.at(path) for name, path in before.origins.rules.items()}
    others_rules = {name: new.at(path) for name, path in after.origins.rules.items()}
    places = {name: old.place_of(path) for name, path in before.origins.rules.items()}
    places |= {name: new.place_of(path) for name, path in after.origins.rules.items()}
    for name, what, effect in _of_items("rule", rules, others_rules, added=ProducerEffect.STRICTER):
        detailed = list(_of_schemas(name, rules, others_rules)) if effect is ProducerEffect.CHANGED else []
        for words, its_effect in detailed or [(what, effect)]:
            yield PolicyChange(topics, words, its_effect, places[name])


def _of_schemas(name: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[tuple[str, ProducerEffect]]:
    """Yield each change's description and effect if only the JSON Schema of a rule has changed."""
    texts = [_json_schema_of(rules[name]) for rules in (before, after)]
    try:
        old, new = (None if text is None else json.loads(text) for text in texts)
    except (ValueError, RecursionError):
        return
    if old is not None and new is not None and _without_text(before[name]) == _without_text(after[name]):
        for words, is_stricter in changes_of(old, new):
            effect = (
                ProducerEffect.CHANGED
                if is_stricter is None
                else ProducerEffect.STRICTER
                if is_stricter
                else ProducerEffect.LOOSER
            )
            yield f"rule {name}: {words}", effect


def _json_schema_of(rule: Mapping[str, Any]) -> str | None:
    """Return a rule's JSON Schema for values, or None if there is none."""
    schema = (rule.get("value") or {}).get("schema") or {}
    return schema.get("text") if schema.get("format") == "json" else schema.get("json_schema")


def _without_text(rule: Mapping[str, Any]) -> dict[str, Any]:
    value = rule["value"]
    key = "text" if value["schema"].get("format") == "json" else "json_schema"
    return {**rule, "value": {**value, "schema": {**value["schema"], key: None}}}


def _source_of(value: EffectiveValue | None) -> str:
    return "" if value is None else value.source


def _values_of(policy: TopicPolicy) -> dict[str, EffectiveValue]:
    left_out = ("rules", "requests", "quotas")
    return {value.key: value for value in effective_policy(policy) if value.key not in left_out}


def _change(key: str, before: Any, after: Any) -> tuple[str | None, ProducerEffect]:
    """Return the description and effect of a key's change. The description is None if nothing changed."""
    if before == after:
        return None, ProducerEffect.CHANGED
    what = f"{key} {_shown(before)} -> {_shown(after)}"
    if key in _BOUNDS:
        low, high = (LONG_MAX if bound is None else bound for bound in (after, before))
        return what, ProducerEffect.STRICTER if low < high else ProducerEffect.LOOSER
    if key in _STRICTNESS:
        more = _STRICTNESS[key][after] - _STRICTNESS[key][before]
        return (
            what,
            ProducerEffect.STRICTER if more > 0 else ProducerEffect.LOOSER if more < 0 else ProducerEffect.CHANGED,
        )
    if key in _LOOSER_IF_SET and None in (before, after):
        return what, ProducerEffect.LOOSER if before is None else ProducerEffect.STRICTER
    return what, ProducerEffect.CHANGED


def _shown(value: Any) -> str:
    if value is None or value == LONG_MAX:
        return "none"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _of_lists(old: _Side, new: _Side) -> Iterator[PolicyChange]:
    """Yield the changes of `requests`, `exempt` and `quotas`."""
    for key, item, added in (
        ("requests", "request rule", ProducerEffect.STRICTER),
        ("exempt", "exemption", ProducerEffect.LOOSER),
        ("quotas", "quota", ProducerEffect.STRICTER),
    ):
        before, after = ({_name_of(each): each for each in side.items(key)} for side in (old, new))
        for name, what, effect in _of_items(item, before, after, added):
            side = new if name in after else old
            place = list(after if name in after else before).index(name)
            yield PolicyChange(_topics_of(side.items(key)[place]), what, effect, side.place_of((key, place)))


def _topics_of(item: Mapping[str, Any]) -> str:
    """Return the topics to which an exemption or a quota applies."""
    topics = item.get("topics") or item.get("topic") or _OF_ALL
    return ", ".join(topics) if isinstance(topics, list) else str(topics)


def _name_of(item: Mapping[str, Any]) -> str:
    return str(item["name"]) if "name" in item else ", ".join(f"{key} {value}" for key, value in item.items())


def _of_items(
    item: str, before: Mapping[str, Any], after: Mapping[str, Any], added: ProducerEffect
) -> Iterator[tuple[str, str, ProducerEffect]]:
    """Yield the name, description and effect for each named item that was added, removed or changed."""
    removed = ProducerEffect.LOOSER if added is ProducerEffect.STRICTER else ProducerEffect.STRICTER
    for name in dict.fromkeys((*after, *before)):
        if name not in before:
            yield name, f"{item} {name} added", added
        elif name not in after:
            yield name, f"{item} {name} removed", removed
        elif before[name] != after[name]:
            modes = [each.get("mode", "reject") for each in (before[name], after[name])]
            changed = ProducerEffect.CHANGED
            if modes[0] != modes[1]:
                changed = ProducerEffect.LOOSER if modes[1] == "observe" else ProducerEffect.STRICTER
            words = f"mode {modes[0]} -> {modes[1]}" if modes[0] != modes[1] else "changed"
            yield name, f"{item} {name} {words}", changed
