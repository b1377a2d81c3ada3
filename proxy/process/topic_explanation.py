"""Which policy a topic gets, and from which line of the file each part of it comes (`sluicegate check --topic`)."""

from collections.abc import Iterator

from sluicegate.config.glob_cover import misses_dashes
from sluicegate.config.loading import Loaded
from sluicegate.config.topics import TopicKeys
from sluicegate.config.yaml_source import Path, dotted
from sluicegate.protocol.topic_name import is_legal_topic_name
from sluicegate.proxy.registry.registries import Registries
from sluicegate.proxy.registry.schema_rules import SchemaRules
from sluicegate.validation.policy import LONG_MAX, TopicPolicy
from sluicegate.validation.rulebook import rulebook_of
from sluicegate.validation.topic_patterns import TopicPatterns

_BEFORE, _AFTER = "message.timestamp.before.max.ms", "message.timestamp.after.max.ms"
_DIFFERENCE = "message.timestamp.difference.max.ms"
_ATTRIBUTES = {field.alias or name: name for name, field in TopicKeys.model_fields.items()}


def explain(topic: str, loaded: Loaded) -> Iterator[str]:
    """Lines for a person; the first says which entry decides."""
    if not is_legal_topic_name(topic):
        yield f"{topic}: no topic can have this name, and a broker refuses it (letters, digits, . _ - and at most 249)"
        return
    config, source = loaded.config, loaded.source
    place = TopicPatterns([entry.match for entry in config.topics]).first_match(topic)
    if place is None:
        yield f"{topic}: no entry of topics matches; defaults hold"
        yield from _near_misses(topic, loaded)
    else:
        where = source.place_of(("topics", place, "match"))
        yield f"{topic}: topics[{place}] decides (match: {config.topics[place].match}, {where})"
    values = _values(rulebook_of(config, SchemaRules(Registries().by_name(config.registries))).of(topic))
    width = max(map(len, values))
    for key, value in values.items():
        yield f"  {key:<{width}}  {value}  ({_origin(key, place, loaded)})"
    if config.upstream.topic_settings:
        yield "  upstream.topic_settings is on: where the cluster's own settings are stricter, they hold"


def _values(policy: TopicPolicy) -> dict[str, str]:
    return {
        "message.timestamp.type": policy.timestamp_type.value,
        _BEFORE: str(policy.before_max_ms),
        _AFTER: str(policy.after_max_ms),
        "cleanup.policy": "compact (null keys are refused)" if policy.compacted else "delete",
        "max.message.bytes": "the broker's own" if policy.max_message_bytes is None else str(policy.max_message_bytes),
        "checks": "all" if policy.checked else "none",
    }


def _origin(key: str, place: int | None, loaded: Loaded) -> str:
    """The line that a value comes from."""
    given = _given(key, place, loaded)
    if key in (_BEFORE, _AFTER) and (given is None or given[1] == LONG_MAX):
        given = _given(_DIFFERENCE, place, loaded) or given  # KIP-937: it stands for bounds that are not set
    if given is None:
        return "built in"
    return f"{loaded.source.place_of(given[0])}, {dotted(given[0])}"


def _given(key: str, place: int | None, loaded: Loaded) -> tuple[Path, object] | None:
    """Where a key is given, the entry before the defaults, and its value."""
    sections: list[tuple[Path, TopicKeys]] = [(("defaults",), loaded.config.defaults)]
    if place is not None:
        sections.insert(0, (("topics", place), loaded.config.topics[place]))
    for path, keys in sections:
        value = getattr(keys, _ATTRIBUTES[key])
        if value is not None:
            return (*path, key), value
    return None


def _near_misses(topic: str, loaded: Loaded) -> Iterator[str]:
    for i, entry in enumerate(loaded.config.topics):
        meant = misses_dashes(entry.match)
        if meant is not None and topic.startswith(meant[:-1]):
            where = loaded.source.place_of(("topics", i, "match"))
            yield f"  hint: {where}: the dot of {entry.match} is a dot; {meant} would match this topic"
