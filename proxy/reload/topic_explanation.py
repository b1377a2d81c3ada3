"""Explains a topic's policy: each value, the file and line it comes from, and the reason (`sluicegate explain`)."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from sluicegate.config.keys import each_key_of
from sluicegate.config.loading import Loaded
from sluicegate.config.model import Config
from sluicegate.config.section import is_section
from sluicegate.config.source import Path
from sluicegate.config.topics import Topic, TopicKeys
from sluicegate.config.values.glob_cover import misses_dashes
from sluicegate.config.values.password import SecretText
from sluicegate.protocol.integers import LONG_MAX
from sluicegate.protocol.topic_name import is_legal_topic_name
from sluicegate.validation.policy import Fix, TimestampType, TopicPolicy
from sluicegate.validation.rulebook import rulebook_of
from sluicegate.validation.rules.rule import Mode
from sluicegate.validation.topic_patterns import TopicPatterns

BEFORE, AFTER = "message.timestamp.before.max.ms", "message.timestamp.after.max.ms"
_DIFFERENCE = "message.timestamp.difference.max.ms"
_ATTRIBUTES = {key.name: key.attribute for key in each_key_of(Topic) if key.name != "match"}
_MOST_LATER = 5
NO_TOPIC = "no topic can have this name, and a broker rejects it (letters, digits, . _ - and at most 249)"

Given = tuple[Path, Any]
"""The path of a key, and its value."""


class TopicExplanation:
    """Explains one topic's policy from a configuration alone.

    `policy`: the topic's policy; None: it is compiled without its rules, which may take long to compile.
    """

    def __init__(self, topic: str, loaded: Loaded, policy: TopicPolicy | None = None) -> None:
        self._topic = topic
        self._loaded = loaded
        self._place = TopicPatterns([entry.match for entry in loaded.config.topics]).first_match(topic)
        self.policy = policy or rulebook_of(self._without_rules(loaded.config)).of(topic)

    def decides(self) -> str:
        """Return which entry applies."""
        if self._place is None:
            return f"{self._topic}: no entry of topics matches; defaults apply"
        path = ("topics", self._place)
        match = self._loaded.config.topics[self._place].match
        source = self._loaded.source
        return f"{self._topic}: {source.key_of(path)} decides (match: {match}, {source.place_of((*path, 'match'))})"

    def origin(self, key: str) -> str:
        """Return the line that a value comes from."""
        given = self._given(key)
        if key in ("mode", "checks") and self.policy.mode is Mode.QUARANTINE:
            given = self._given("quarantine")
        if key in (BEFORE, AFTER):
            given = self._origin_of_bound(key, given)
        return "built in" if given is None else self._stands(given[0])

    def _without_rules(self, config: Config) -> Config:
        """Return the configuration with only the entry that applies, if any, and without rules."""
        deciding = () if self._place is None else config.topics[self._place : self._place + 1]
        topics = tuple(replace(entry, rules=None) for entry in deciding)
        floor = tuple(replace(each, rules=None) for each in config.floor)
        return replace(config, defaults=replace(config.defaults, rules=None), topics=topics, floor=floor)

    def lines(self) -> Iterator[str]:
        """Yield a line for each key in force, and notes."""
        yield from self._near_misses() if self._place is None else self._later()
        known = _values(self.policy)
        width = max(map(len, _ATTRIBUTES))
        for key in _ATTRIBUTES:
            if key == _DIFFERENCE:
                continue  # shown as the origin of the bounds
            given = self._given(key)
            items = _items(given[1]) if given is not None else ()
            value = known[key] if key in known else _shown(given[1]) if given is not None and not items else ""
            yield f"  {key:<{width}}  {value or 'none' if not items else f'{len(items)}'}  ({self.origin(key)})"
            for i, item in enumerate(items):
                assert given is not None
                yield f"    {_shown(item)}  ({self._stands((*given[0], i))})"
        yield from self._requests()
        yield from self._notes()

    def _given(self, key: str) -> Given | None:
        """Return where a key is set and its value; the topic's entry takes precedence over the defaults."""
        config = self._loaded.config
        sections: list[tuple[Path, TopicKeys]] = [(("defaults",), config.defaults)]
        if self._place is not None:
            sections.insert(0, (("topics", self._place), config.topics[self._place]))
        for path, keys in sections:
            value = getattr(keys, _ATTRIBUTES[key], None)  # some keys exist only in entries
            if value is not None:
                return (*path, key), value
        return None

    def _origin_of_bound(self, key: str, given: Given | None) -> Given | None:
        if given is None or given[1] == LONG_MAX:
            given = self._given(_DIFFERENCE) or given  # KIP-937: the default of bounds that are not set
        bound = self.policy.before_max_ms if key == BEFORE else self.policy.after_max_ms
        if self.policy.fix is Fix.UNIT and (given is None or given[1] > bound):
            return self._given("fix")  # `fix` lowers the bound
        return given

    def _requests(self) -> Iterator[str]:
        """Yield request rules that apply to the topic, exempt clients, and quotas."""
        config = self._loaded.config
        for i, rule in enumerate(config.requests):
            if rule.match.topics is None or _matches(rule.match.topics, self._topic):
                yield f"  requests: {_shown(rule)}  ({self._stands(('requests', i))})"
        for i, exempt in enumerate(config.exempt):
            yield f"  exempt: {_shown(exempt)}  ({self._stands(('exempt', i))})"
        for i, quota in enumerate(config.quotas):
            if quota.topic is None or _matches(quota.topic, self._topic):
                yield f"  quotas: {_shown(quota)}  ({self._stands(('quotas', i))})"

    def _stands(self, path: Path) -> str:
        source = self._loaded.source
        return f"{source.place_of(path)}, {source.key_of(path)}"

    def _later(self) -> Iterator[str]:
        """Yield later entries that match too."""
        assert self._place is not None
        first = self._place + 1
        entries = self._loaded.config.topics
        later = [i for i in range(first, len(entries)) if _matches(entries[i].match, self._topic)]
        for i in later[:_MOST_LATER]:
            words = "matches too, and comes later: the first match decides"
            yield f"  {self._stands(('topics', i, 'match'))}: {entries[i].match} {words}"
        if len(later) > _MOST_LATER:
            yield f"  and {len(later) - _MOST_LATER} more match too"

    def _near_misses(self) -> Iterator[str]:
        for i, entry in enumerate(self._loaded.config.topics):
            meant = misses_dashes(entry.match)
            if meant is not None and self._topic.startswith(meant[:-1]):
                where = self._loaded.source.place_of(("topics", i, "match"))
                yield f"  hint: {where}: the dot of {entry.match} is a dot; {meant} would match this topic"

    def _notes(self) -> Iterator[str]:
        policy = self.policy
        if not policy.checked:
            yield "  checks: none: its batches are forwarded unvalidated; the other settings do not apply"
        elif policy.mode is Mode.OBSERVE and policy.fix is not None:
            yield "  nothing is fixed while mode is observe"
        if self._loaded.config.upstream.topic_settings:
            yield "  upstream.topic_settings is on: stricter settings on the cluster apply instead"
            if policy.timestamp_type is TimestampType.LOG_APPEND_TIME:
                yield "  the cluster decides message.timestamp.type: if it is CreateTime there, the bounds above apply"


class PolicyQuery:
    """Explains which policies in force apply to a topic. `loaded` is replaced on a reload."""

    def __init__(self, loaded: Loaded) -> None:
        self.loaded = loaded

    def __call__(self, topic: str) -> list[str]:
        """Return lines for a person. Takes a second for thousands of patterns."""
        return list(explain(topic, self.loaded))


def explain(topic: str, loaded: Loaded) -> Iterator[str]:
    """Yield lines for a person; the first names the entry that applies."""
    if not is_legal_topic_name(topic):
        yield f"{topic}: {NO_TOPIC}"
        return
    explanation = TopicExplanation(topic, loaded)
    yield explanation.decides()
    yield from explanation.lines()


def _matches(match: str, topic: str) -> bool:
    return TopicPatterns([match]).first_match(topic) is not None


def _values(policy: TopicPolicy) -> dict[str, str]:
    """Return values that are not simply the value of their key."""
    return {
        "message.timestamp.type": policy.timestamp_type.value,
        BEFORE: str(policy.before_max_ms),
        AFTER: str(policy.after_max_ms),
        "cleanup.policy": "compact (null keys are rejected)" if policy.compacted else "delete",
        "max.message.bytes": "the broker's own" if policy.max_message_bytes is None else str(policy.max_message_bytes),
        "checks": "all" if policy.checked else "none",
        "mode": policy.mode.value,
        "framing": policy.framing.value,
        "samples": _shown(policy.samples),
    }


def _items(value: Any) -> tuple[Any, ...]:
    """Return the sections of a list of sections."""
    return value if isinstance(value, tuple) and any(is_section(type(item)) for item in value) else ()


def _shown(value: Any) -> str:
    """Return a value as written in the configuration, such as `{timestamp: unit}`, without secrets."""
    if is_section(type(value)):
        held = ((key, getattr(value, key.attribute)) for key in each_key_of(type(value)))
        return "{" + ", ".join(f"{key.name}: {_shown(inner)}" for key, inner in held if inner != key.default) + "}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_shown(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, tuple | list):
        return "[" + ", ".join(map(_shown, value)) + "]"
    if isinstance(value, SecretText):
        return "(secret)"
    return str(value).lower() if isinstance(value, bool) else str(value)
