"""Adds the rules and owners of contracts (`contracts`) to the entries of `topics`.

A topic with a contract gets an entry of its own. The entry is a copy of the entry that applied to the topic before,
with the contract's rules appended. So a contract only adds rules: the mode, the bounds and the rules of the operator
and of teams stay.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Any

from sluicegate.config.contracts.document import checked_contract, value_of
from sluicegate.config.contracts.topics import topics_of
from sluicegate.config.files.included_files import forget, read_included
from sluicegate.config.files.patterns import CONTRACTS, MOST_FILES, bound
from sluicegate.config.files.scopes import Scope, item_at, problem_at, scopes_of
from sluicegate.config.files.source import Path, Problem, Source, printable
from sluicegate.config.files.topic_files import files_of
from sluicegate.config.values.contract import TopicContract
from sluicegate.config.values.glob_cover import is_within
from sluicegate.config.values.topic_pattern import compile_expression, regular_expression_of

_TOPICS = "topics"
_RULES = "rules"
_OWNER = "owner"
_MODES = ("reject", "observe")


def include_contracts(source: Source, folder: FilePath) -> None:
    """Add an entry for each topic of the contracts to `source.data`; report errors in `source.problems`.

    Relative patterns start at `folder`.
    """
    scopes = scopes_of(source, CONTRACTS)
    found = files_of(source, folder, CONTRACTS)
    count = len(source.digests) + len(found) - len(source.missing)
    if count > MOST_FILES + 1:
        words = f"with topic_files it leads to {count - 1} files; {bound()}"
        source.problems.append(problem_at(source, (CONTRACTS,), words))
        return
    for file, items in sorted(found.items(), key=lambda each: each[0] in source.missing):
        _read(source, file, items, [scopes[path] for path in items if path in scopes])
    if source.contracts:
        _Entries(source, folder).add(list(source.contracts.values()))


def _read(source: Source, file: FilePath, items: Sequence[Path], scopes: Sequence[Scope]) -> None:
    """Read one contract into `source.contracts`.

    If the file is missing, the topics that another contract names are left out.
    """
    held = checked_contract(read_included(source, file, value_of))
    if held.problems:
        source.problems += held.problems
        return
    is_missing = file in source.missing
    item = item_at(source, items[0])
    registry, mode, owner = (item.get(key) for key in ("registry", "mode", _OWNER))
    topics = topics_of(
        held, file, registry if isinstance(registry, str) else None, mode if mode in _MODES else "reject"
    )
    source.problems += held.problems
    if is_missing:
        topics = [contract for contract in topics if contract.topic not in source.contracts]
        source.missing[file] = [contract.topic for contract in topics]
        if not topics:
            forget(source, file)
    elif not topics and not held.problems:
        words = "the contract has no rule for a topic: no server of type kafka, and no schema of physicalType topic"
        source.remarks.append(printable(f"{file}: {words}"))
    for contract in topics:
        beyond = next((scope for scope in scopes if not is_within(contract.topic, scope.patterns)), None)
        other = source.contracts.get(contract.topic)
        if beyond is not None:
            words = f"{contract.topic} is beyond the scope of this contract ({source.place_of(beyond.path)})"
            source.problems.append(Problem(held.key_of(contract.path), contract.place, words))
        elif other is not None:
            words = f"{contract.topic} has a contract already ({other.place})"
            source.problems.append(Problem(held.key_of(contract.path), contract.place, words))
        else:
            source.contracts[contract.topic] = (
                contract if contract.owner or not isinstance(owner, dict) else replace(contract, owner=owner)
            )


class _Entries:
    """The entries of `topics`, before which the entries of contracts are inserted."""

    def __init__(self, source: Source, folder: FilePath) -> None:
        self._source = source
        self._folder = folder
        given = source.data.get(_TOPICS)
        self._is_list = given is None or isinstance(given, list)
        self._old: list[Any] = list(given) if isinstance(given, list) else []
        self._patterns = [(i, compile_expression(text)) for i, text in self._expressions()]
        self._places: dict[Path, list[tuple[Path, str]]] = defaultdict(list)
        for path, place in source.places.items():
            if path[0] == "defaults" and path[:2] == ("defaults", _RULES):
                self._places["defaults",].append((path[1:], place))
            elif path[0] == _TOPICS and len(path) > 2:
                self._places[path[:2]].append((path[2:], place))

    def _expressions(self) -> Iterator[tuple[int, str]]:
        for i, entry in enumerate(self._old):
            match = entry.get("match") if isinstance(entry, dict) else None
            if isinstance(match, str):
                try:
                    yield i, regular_expression_of(match)
                except ValueError:
                    continue  # reported later, as an invalid value

    def add(self, contracts: Sequence[TopicContract]) -> None:
        """Insert an entry for each of the contracts before the other entries."""
        if not self._is_list:
            return  # reported later, as a value of the wrong type
        source, more = self._source, len(contracts)
        deciding = [self._deciding(contract.topic) for contract in contracts]
        self._move(more)
        source.data[_TOPICS] = [None] * more + self._old
        for i, (contract, base) in enumerate(zip(contracts, deciding, strict=True)):
            source.data[_TOPICS][i] = self._entry(i, contract, None if base is None else base + more)

    def _deciding(self, topic: str) -> int | None:
        return next((i for i, pattern in self._patterns if pattern.fullmatch(topic) is not None), None)

    def _move(self, more: int) -> None:
        """Move the recorded places of the old entries by `more` positions."""
        source = self._source

        def moved(path: Path) -> Path:
            is_old = path[0] == _TOPICS and len(path) > 1 and isinstance(path[1], int)
            return (path[0], int(path[1]) + more, *path[2:]) if is_old else path

        own = {(_TOPICS, i): (_TOPICS, i) for i in range(len(self._old))}
        source.places = {moved(path): place for path, place in source.places.items()}
        source.elsewhere = {moved(path): other for path, other in (own | source.elsewhere).items()}
        source.folders = {moved(path): folder for path, folder in source.folders.items()}
        self._places = defaultdict(list, {moved(path): held for path, held in self._places.items()})

    def _entry(self, i: int, contract: TopicContract, base: int | None) -> dict[str, Any]:
        """Return the entry of a contract, for position `i`.

        `base` is the position of the entry that applies to the topic without the contract; None if no entry does.
        """
        source, at = self._source, (_TOPICS, i)
        entry: dict[str, Any] = {"match": contract.topic}
        source.places[at] = source.places[*at, "match"] = contract.place
        source.elsewhere[at] = source.elsewhere[*at, "match"] = contract.path
        if base is not None:
            old = source.data[_TOPICS][base]
            entry |= {key: value for key, value in old.items() if key not in ("match", _RULES)}
            for key in entry:
                if key != "match":
                    self._refer((*at, key), (_TOPICS, base), (key,))
            if (_TOPICS, base) in source.folders:
                source.folders[at] = source.folders[_TOPICS, base]
        rules = self._rules_before(at, base)
        for rule in contract.rules:
            path = (*at, _RULES, len(rules))
            rules.append(dict(rule.keys))
            source.places[path], source.elsewhere[path] = rule.place, rule.path
        if rules:
            entry[_RULES] = rules
        if entry.get(_OWNER) is None and contract.owner is not None:
            entry[_OWNER] = dict(contract.owner)
            source.places[*at, _OWNER], source.elsewhere[*at, _OWNER] = contract.place, ("team",)
        return entry

    def _rules_before(self, at: Path, base: int | None) -> list[Any]:
        """Return the rules that apply to the topic without its contract, for the entry at the path `at`."""
        source = self._source
        given = None if base is None else source.data[_TOPICS][base].get(_RULES)
        section: Path = ("defaults",) if given is None else (_TOPICS, base or 0)
        if given is None:
            defaults = source.data.get("defaults")
            given = defaults.get(_RULES) if isinstance(defaults, dict) else None
        if not isinstance(given, list):
            return []  # none, or reported later
        for k in range(len(given)):
            self._refer((*at, _RULES, k), section, (_RULES, k))
            source.folders[*at, _RULES, k] = source.folders.get(section, self._folder)
        return list(given)

    def _refer(self, to: Path, section: Path, key: Path) -> None:
        """Give the copied value at `to` the places and the key of its original, the value at `key` in `section`."""
        source = self._source
        source.elsewhere[to] = source.path_in_file((*section, *key))
        for path, place in self._places[section]:
            if path[: len(key)] == key:
                source.places[(*to, *path[len(key) :])] = place
