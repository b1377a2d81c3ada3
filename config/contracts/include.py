"""Adds the rules and owners from contracts (`contracts`) to the entries of `topics`.

A topic with a contract gets an entry of its own. It is a copy of the entry that would otherwise apply to the topic,
with the contract's rules appended. A contract therefore only adds rules; the mode, the bounds and the rules of the
operator and of teams stay.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path as FilePath
from typing import Any

from sluicegate.config.contracts.contract_file import contract_in_file, missing_topics, topics_in
from sluicegate.config.contracts.document import value_of
from sluicegate.config.contracts.referenced_files import references_of
from sluicegate.config.files.included_files import forget, read_included
from sluicegate.config.files.patterns import CONTRACTS, MOST_FILES, bound
from sluicegate.config.files.scopes import Scope, item_at, problem_at, scopes_of
from sluicegate.config.files.source import Path, Problem, Source, dotted, printable
from sluicegate.config.files.topic_files import files_of
from sluicegate.config.values.contract import TopicContract
from sluicegate.config.values.glob_cover import is_within, may_share
from sluicegate.config.values.topic_pattern import compile_expression, exact_name_of, regular_expression_of

_TOPICS = "topics"
_RULES = "rules"
_OWNER = "owner"
_MODES = ("reject", "observe")
_VARIABLE = re.compile(r"\[\^\.\]\+|\([^()]*\)")


def include_contracts(source: Source, folder: FilePath) -> None:
    """Add an entry for each topic in the contracts to `source.data`. Report errors in `source.problems`.

    Relative patterns start at `folder`.
    """
    scopes = scopes_of(source, CONTRACTS)
    found = files_of(source, folder, CONTRACTS)
    count = len(source.digests) + len(found) - len(source.missing)
    if count > MOST_FILES + 1:
        words = f"together with topic_files it matches {count - 1} files; {bound()}"
        source.problems.append(problem_at(source, (CONTRACTS,), words))
        return
    for file, items in sorted(found.items(), key=lambda each: each[0] in source.missing):
        _read(source, file, items, [scopes[path] for path in items if path in scopes])
    if source.contracts:
        _Entries(source, folder).add(list(source.contracts.values()))


def _read(source: Source, file: FilePath, items: Sequence[Path], scopes: Sequence[Scope]) -> None:
    """Read one contract into `source.contracts`.

    If the file is missing, topics that another contract names are omitted.
    """
    held = contract_in_file(read_included(source, file, value_of), file)
    if held.problems:
        source.problems += held.problems
        return
    is_missing = file in source.missing
    item = item_at(source, items[0])
    registry, mode, owner = (item.get(key) for key in ("registry", "mode", _OWNER))
    known = set(source.missing)
    topics = topics_in(
        held,
        file,
        registry if isinstance(registry, str) else None,
        mode if mode in _MODES else "reject",
        partial(references_of, source),
    )
    source.problems += held.problems
    source.remarks += held.remarks
    source.missing |= {each: [contract.topic for contract in topics] for each in source.missing.keys() - known}
    if is_missing:
        topics = [contract for contract in topics if contract.topic not in source.contracts]
        source.missing[file] = [contract.topic for contract in topics]
        if not topics:
            forget(source, file)
    elif not topics and not held.problems:
        source.remarks.append(printable(f"{file}: the contract has no rule for a topic: {missing_topics(held)}"))
    for contract in topics:
        beyond = next((scope for scope in scopes if not is_within(contract.topic, scope.patterns)), None)
        other = source.contracts.get(contract.topic)
        if beyond is not None:
            words = f"{contract.topic} is outside the scope of this contract ({source.place_of(beyond.path)})"
            source.problems.append(Problem(held.key_of(contract.path), contract.place, words))
        elif other is not None:
            words = f"{contract.topic} already has a contract ({other.place})"
            source.problems.append(Problem(held.key_of(contract.path), contract.place, words))
        else:
            source.contracts[contract.topic] = (
                contract if contract.owner or not isinstance(owner, dict) else replace(contract, owner=owner)
            )


class _Entries:
    """The entries of `topics`. The entries of contracts are inserted before these."""

    def __init__(self, source: Source, folder: FilePath) -> None:
        self._source = source
        self._folder = folder
        given = source.data.get(_TOPICS)
        self._is_list = given is None or isinstance(given, list)
        self._old: list[Any] = list(given) if isinstance(given, list) else []
        self._matches = list(self._valid_matches())
        self._patterns = [(i, compile_expression(regular_expression_of(text))) for i, text in self._matches]
        self._places: dict[Path, list[tuple[Path, str]]] = defaultdict(list)
        for path, place in source.places.items():
            if path[0] == "defaults" and path[:2] == ("defaults", _RULES):
                self._places["defaults",].append((path[1:], place))
            elif path[0] == _TOPICS and len(path) > 2:
                self._places[path[:2]].append((path[2:], place))

    def _valid_matches(self) -> Iterator[tuple[int, str]]:
        for i, entry in enumerate(self._old):
            match = entry.get("match") if isinstance(entry, dict) else None
            if isinstance(match, str):
                try:
                    regular_expression_of(match)
                except ValueError:
                    continue  # reported later, as an invalid value
                yield i, match

    def add(self, contracts: Sequence[TopicContract]) -> None:
        """Insert an entry for each contract before the other entries."""
        if not self._is_list:
            return  # reported later, as a value of the wrong type
        named = [contract for contract in contracts if exact_name_of(contract.topic) is not None]
        names = {contract.topic for contract in named}
        placed = [(contract.topic, contract, self._deciding(contract.topic)) for contract in named]
        for contract in contracts:
            if exact_name_of(contract.topic) is None:
                placed += [(match, contract, base) for match, base in self._divided(contract) if match not in names]
        source, more = self._source, len(placed)
        self._move(more)
        source.data[_TOPICS] = [None] * more + self._old
        for i, (match, contract, base) in enumerate(placed):
            source.data[_TOPICS][i] = self._entry(i, match, contract, None if base is None else base + more)

    def _deciding(self, topic: str) -> int | None:
        return next((i for i, pattern in self._patterns if pattern.fullmatch(topic) is not None), None)

    def _divided(self, contract: TopicContract) -> Iterator[tuple[str, int | None]]:
        """Yield a contract's entries for a topic pattern, each with the position of the entry that it copies.

        A topic with an entry of its own gets its entry before the others. It is a problem, reported in `problems`, if
        another entry applies to some of the topics but it is unknown to which.
        """
        match = contract.topic
        pattern = compile_expression(regular_expression_of(match))
        for i, text in self._matches:
            name = exact_name_of(text)
            if name is not None:
                if pattern.fullmatch(name) is not None:
                    yield name, i
            elif is_within(match, (text,)):
                yield match, i
                return
            elif may_share(_glob_of(match), text):
                words = (
                    f"only some topics of {match} match the entry {text}: list the values of the parameters (enum), or "
                    f"put a wider entry before it"
                )
                self._source.problems.append(Problem(dotted(contract.path), contract.place, words))
                return
        yield match, None

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

    def _entry(self, i: int, match: str, contract: TopicContract, base: int | None) -> dict[str, Any]:
        """Return a contract's entry for the topics `match`, to be inserted at position `i`.

        `base` is the position of the entry that applies to the topic without the contract, or None.
        """
        source, at = self._source, (_TOPICS, i)
        entry: dict[str, Any] = {"match": match}
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
            source.places[*at, _OWNER], source.elsewhere[*at, _OWNER] = contract.place, contract.owner_path
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


def _glob_of(match: str) -> str:
    """Return a glob that matches all topics of a contract's pattern, whose only variable parts are parameters."""
    return _VARIABLE.sub("*", match[1:-1]).replace("\\", "")
