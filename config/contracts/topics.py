"""Returns the rules, the owner and the checks that a contract defines for each of its topics."""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path as FilePath
from typing import Any, Final

from sluicegate.config.contracts.json_schema import (
    Translation,
    field_of,
    object_schema,
    time_as_text,
    time_of_a_type,
)
from sluicegate.config.contracts.quality import NotTranslated, Quality, schema_for_one_record
from sluicegate.config.files.source import Path, Problem, Source
from sluicegate.config.values.contract import ContractRule, Metric, StoredCheck, TopicContract, Unchecked
from sluicegate.protocol.topic_name import is_legal_topic_name

_RULE = "contract"
_TOPIC = "topic"
_KAFKA = "kafka"
_ACTIVE = "active"
_FRESHNESS = frozenset({"freshness", "latency", "ly"})
_UNITS_MS: Final = {
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), 1),
    **dict.fromkeys(("s", "sec", "second", "seconds"), 1000),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60_000),
    **dict.fromkeys(("h", "hr", "hour", "hours"), 3_600_000),
    **dict.fromkeys(("d", "day", "days"), 86_400_000),
}
_REGISTERED = ("avro", "protobuf")

_Keys = Callable[[str], dict[str, str]]
"""Returns the keys of `schema` for a JSON Schema."""


def topics_of(source: Source, file: FilePath, registry: str | None, mode: str) -> list[TopicContract]:
    """Return each topic in a valid contract.

    Names that no topic can have are reported in `source.problems`. `registry` names the registry with the schemas of
    Avro and Protobuf records, or is None. `mode` is the mode of the rules.
    """
    servers = [each for each in source.data.get("servers") or () if each.get("type") == _KAFKA]
    found = []
    for i, schema in enumerate(source.data.get("schema") or ()):
        is_topic = bool(servers) or str(schema.get("physicalType", "")).lower() == _TOPIC
        key = "physicalName" if schema.get("physicalName") else "name"
        if not is_topic:
            continue
        if is_legal_topic_name(schema[key]):
            form = str(next((each["format"] for each in servers if each.get("format")), "json")).lower()
            found.append(_OneTopic(source, file, i, schema[key], form).contract(registry, mode))
        else:
            path = ("schema", i, key)
            words = f"{schema[key]} is not a valid topic name (at most 249 letters, digits, . _ -); set physicalName"
            source.problems.append(Problem(source.key_of(path), source.place_of(path), words))
    return found


class _OneTopic:
    """A collector of the contract's statements about one topic."""

    def __init__(self, source: Source, file: FilePath, place: int, topic: str, form: str) -> None:
        self._source = source
        self._file = file
        self._path: Path = ("schema", place)
        self._schema: Mapping[str, Any] = source.data["schema"][place]
        self._topic = topic
        self._form = form
        self._rules: list[ContractRule] = []
        self._stored: list[StoredCheck] = []
        self._unchecked: list[Unchecked] = []

    def contract(self, registry: str | None, mode: str) -> TopicContract:
        """Return all collected statements. `registry` names the registry with the schemas, or is None."""
        registered = registry if self._form in _REGISTERED else None
        if self._form == "json":
            self._translate(Translation(self._note, time_as_text), _of_json, mode)
        elif registered is not None:
            keys_of = partial(_of_registered, registered, self._form)
            self._translate(Translation(self._note, time_of_a_type), keys_of, mode)
        else:
            self._translate_nothing()
        self._of_service_levels()
        self._note_what_has_no_effect()
        return TopicContract(
            self._topic,
            self._file,
            str(self._source.data["version"]),
            self._path,
            self._source.place_of(self._path),
            _owner_in(self._source.data),
            registered,
            tuple(self._rules),
            tuple(self._stored),
            tuple(self._unchecked),
        )

    def _translate(self, how: Translation, keys_of: _Keys, mode: str) -> None:
        """Add the rules. `keys_of` returns the keys of a rule's `schema` section for a JSON Schema."""
        schema = object_schema(self._schema, self._path, how)
        self._add_rule("schema", keys_of, schema, mode, self._path)
        names = {str(each["name"]): (field_of(each),) for each in self._schema.get("properties") or ()}
        for quality, path in self._qualities(self._schema, self._path, ()):
            try:
                check = quality.check(names)
            except NotTranslated as reason:
                self._note(path, quality.name, str(reason))
                continue
            of_one = schema_for_one_record(check, quality.is_text)
            if of_one is not None:
                self._add_rule(quality.name, keys_of, of_one, "observe" if quality.is_a_warning else mode, path)
            else:
                self._stored.append(check)

    def _translate_nothing(self) -> None:
        """Record that the proxy checks no properties."""
        why = f"properties of {self._form} records are not read"
        if self._form in _REGISTERED:
            why = "set registry in the item of contracts: that registry has the records' schemas"
            self._note(("servers",), f"schema of {self._form} records", why)
        for each in self._schema.get("properties") or ():
            self._note(self._path, f"property {each['name']}", why)
        for quality, path in self._qualities(self._schema, self._path, ()):
            if quality.keys.get("metric") == Metric.ROWS:
                self._stored.append(quality.check({}))
            else:
                self._note(path, quality.name, why)

    def _add_rule(self, name: str, keys_of: _Keys, schema: Mapping[str, Any], mode: str, path: Path) -> None:
        taken = {rule.keys["name"] for rule in self._rules}
        names = (name, *(f"{name}-{i}" for i in range(2, len(taken) + 3)))
        free = next(each for each in names if f"{_RULE}.{each}" not in taken)
        keys = _named(free, {"schema": keys_of(json.dumps(schema, ensure_ascii=False))}, mode)
        self._rules.append(ContractRule(keys, path, self._source.place_of(path)))

    def _qualities(
        self, element: Mapping[str, Any], path: Path, field: tuple[str, ...]
    ) -> Iterator[tuple[Quality, Path]]:
        """Yield each quality attribute, and each `unique`, of an element and of the properties of its objects."""
        for i, keys in enumerate(element.get("quality") or ()):
            at = (*path, "quality", i)
            yield Quality(keys, field, self._source.place_of(at), element.get("logicalType") in (None, "string")), at
        if element.get("unique"):
            at = (*path, "unique")
            keys = {"name": f"{'.'.join(field)}.unique", "metric": Metric.DUPLICATES.value, "mustBe": 0}
            yield Quality(keys, field, self._source.place_of(at)), at
        for i, each in enumerate(element.get("properties") or ()):
            yield from self._qualities(each, (*path, "properties", i), (*field, field_of(each)))
        for path_of_several, part in _repeated_parts(element, path):
            self._note_qualities_of_several(part, path_of_several, (*field, str(path_of_several[-1])))

    def _note_qualities_of_several(self, element: Mapping[str, Any], path: Path, field: tuple[str, ...]) -> None:
        """Record each quality attribute that covers several values in one record: a list's items, or a map's values."""
        why = "quality of the items of a list or map is not read"
        for i, keys in enumerate(element.get("quality") or ()):
            self._note((*path, "quality", i), Quality(keys, field, "").name, why)
        if element.get("unique"):
            self._note((*path, "unique"), f"{'.'.join(field)}.unique", why)
        for i, each in enumerate(element.get("properties") or ()):
            self._note_qualities_of_several(each, (*path, "properties", i), (*field, field_of(each)))
        for at, part in _repeated_parts(element, path):
            self._note_qualities_of_several(part, at, (*field, str(at[-1])))

    def _of_service_levels(self) -> None:
        for i, level in enumerate(self._source.data.get("slaProperties") or ()):
            path = ("slaProperties", i)
            name, unit, value = str(level["property"]), str(level.get("unit", "")).lower(), level["value"]
            if name.lower() not in _FRESHNESS:
                self._note(path, f"service level {name}", "not visible in stored records")
            elif level.get("element") not in (None, self._schema["name"], self._topic):
                self._note(
                    path, f"service level {name}", "only the timestamps of records are compared; leave element out"
                )
            elif unit not in _UNITS_MS or not isinstance(value, int | float) or isinstance(value, bool):
                self._note(path, f"service level {name}", "write a number, and ms, s, min, h or d as its unit")
            else:
                limit = (value * _UNITS_MS[unit],)
                operator, place = "mustBeLessOrEqualTo", self._source.place_of(path)
                check = StoredCheck(str(level.get("id") or name), Metric.FRESHNESS, operator, limit, place)
                self._stored.append(check)

    def _note_what_has_no_effect(self) -> None:
        status = self._source.data.get("status")
        if status not in (None, _ACTIVE):
            self._note(("status",), f"status {status}", "the rules apply in every status; remove the file to end them")
        kafka = [i for i, each in enumerate(self._source.data.get("servers") or ()) if each.get("type") == _KAFKA]
        for i in kafka[1:]:
            server = self._source.data["servers"][i]
            what = f"server {server.get('server', i)}"
            self._note(
                ("servers", i), what, "the first Kafka server's format applies, because all servers have the topic"
            )
        if self._schema.get("relationships"):
            self._note((*self._path, "relationships"), "relationships", "records of other topics are not read")
        if not self._schema.get("properties"):
            why = "the schema has no properties" + (
                "; schemas that authoritativeDefinitions name are not read"
                if self._schema.get("authoritativeDefinitions")
                else ""
            )
            self._note(self._path, f"schema of {self._topic}", why)

    def _note(self, path: Path, what: str, why: str) -> None:
        self._unchecked.append(Unchecked(what, why, self._source.place_of(path)))


def _repeated_parts(element: Mapping[str, Any], path: Path) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    if element.get("items") is not None:
        yield (*path, "items"), element["items"]
    for part in ("key", "value") if element.get("map") is not None else ():
        yield (*path, "map", part), element["map"][part]


def _of_json(json_schema: str) -> dict[str, str]:
    return {"text": json_schema, "format": "json"}


def _of_registered(registry: str, form: str, json_schema: str) -> dict[str, str]:
    return {"registry": registry, "format": form, "json_schema": json_schema}


def _named(name: str, value: Mapping[str, Any], mode: str) -> dict[str, Any]:
    return {"name": f"{_RULE}.{name}", **({} if mode == "reject" else {"mode": mode}), "value": value}


def _owner_in(contract: Mapping[str, Any]) -> dict[str, str] | None:
    """Return the team with its first support channel, or None if the contract names no team."""
    team = contract.get("team")
    if isinstance(team, list):  # up to version 3.0, `team` is the list of members
        owners = (each.get("username") for each in team if "owner" in str(each.get("role", "")).lower())
        name = next(owners, None)
    else:
        name = None if team is None else team.get("name")
    if not name:
        return None
    channel: Mapping[str, Any] = next(iter(contract.get("support") or ()), {})
    contact = channel.get("url") or channel.get("channel")
    return {"team": str(name)} | ({"contact": str(contact)} if contact else {})
