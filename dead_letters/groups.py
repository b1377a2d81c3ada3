"""Groups letters by cause and counts them. Memory is bounded for any input."""

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import sha256
from itertools import combinations

from sluicegate.dead_letters.causes import Cause, cause_of, quotes_in, without_quotes
from sluicegate.dead_letters.letter import Letter, LetterFormat

MOST_GROUPS = 1000
OTHERS = "(others)"
HOUR_MS = 3_600_000
_MOST_TEXTS = 8
_MOST_VALUES = 50
_MOST_KINDS = 50
_SCHEMA_ID_END = 5
_ID_CHARACTERS = 8

_Kind = tuple[LetterFormat, str, str, int, bytes]
"""The properties of a letter that a group counts: format, original topic, client, hour, and 4-byte schema id or b""."""
_General = tuple[str, tuple[str, ...], str, str]
"""A cause without its quoted strings."""


class BoundedCounts(Counter[str]):
    """Counts per value. After 50 different values, all new ones are counted as `OTHERS`."""

    def add(self, value: str, count: int = 1) -> None:
        """Count a value."""
        known = value in self or len(self) < _MOST_VALUES
        self[value if known else OTHERS] += count

    def ordered(self) -> list[tuple[str, int]]:
        """Return the values by descending count. Values with equal counts are in alphabetical order."""
        return sorted(self.items(), key=lambda each: (-each[1], each[0]))


@dataclass(slots=True)
class Group:
    """Letters with one cause. `first` and `last` are their earliest and latest timestamps in the topic (ms).

    `example` is the first letter that was added.
    """

    cause: Cause
    example: Letter
    first: int
    last: int
    count: int = 0
    formats: BoundedCounts = field(default_factory=BoundedCounts)
    topics: BoundedCounts = field(default_factory=BoundedCounts)
    clients: BoundedCounts = field(default_factory=BoundedCounts)
    hours: BoundedCounts = field(default_factory=BoundedCounts)
    schemas: BoundedCounts = field(default_factory=BoundedCounts)
    _kinds: dict[_Kind, int] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """Return a short id of the cause. It is the same in every run."""
        return group_id(self.cause)

    def add(self, letter: Letter) -> None:
        """Count a letter. The counts per value include it only after `complete`."""
        time, value = letter.record.timestamp, letter.record.value
        self.count += 1
        if time < self.first:
            self.first = time
        elif time > self.last:
            self.last = time
        schema = value[1:_SCHEMA_ID_END] if value and value[0] == 0 and len(value) >= _SCHEMA_ID_END else b""
        kinds = self._kinds
        kind = letter.format, letter.topic, letter.client or "", time // HOUR_MS, schema
        kinds[kind] = kinds.get(kind, 0) + 1
        if len(kinds) >= _MOST_KINDS:
            self.complete()

    def complete(self) -> None:
        """Add the pending values of all letters to the counts per value."""
        for (letter_format, topic, client, hour, schema), count in self._kinds.items():
            self.formats.add(letter_format, count)
            self.topics.add(topic, count)
            self.clients.add(client, count)
            self.hours.add(str(hour * HOUR_MS), count)
            if schema:
                self.schemas.add(str(int.from_bytes(schema, "big")), count)
        self._kinds.clear()

    def merge(self, other: "Group") -> None:
        """Add another group's letters."""
        self.complete()
        other.complete()
        self.count += other.count
        self.first, self.last = min(self.first, other.first), max(self.last, other.last)
        for own, others in (
            (self.formats, other.formats),
            (self.topics, other.topics),
            (self.clients, other.clients),
            (self.hours, other.hours),
            (self.schemas, other.schemas),
        ):
            for value, count in others.items():
                own.add(value, count)


@lru_cache(maxsize=MOST_GROUPS)
def group_id(cause: Cause) -> str:
    """Return a short id of a cause."""
    parts = (cause.error, ",".join(cause.rules), cause.stage, cause.exact)
    return sha256("\0".join(parts).encode(errors="surrogatepass")).hexdigest()[:_ID_CHARACTERS]


def ids_of(letter: Letter) -> frozenset[str]:
    """Return the ids of all groups to which a letter may belong: one for each subset of its quoted strings."""
    cause = cause_of(letter)
    positions = range(len(quotes_in(cause)))
    every = (chosen for size in range(len(positions) + 1) for chosen in combinations(positions, size))
    return frozenset(group_id(without_quotes(cause, chosen)) for chosen in every)


class _SimilarGroups:
    """Groups with messages that differ only in quoted strings.

    `_variable` contains the positions of the quoted strings that are record contents.
    """

    def __init__(self) -> None:
        self.groups: dict[Cause, Group] = {}
        self._firsts: dict[Cause, Cause] = {}
        self._variable: frozenset[int] = frozenset()

    def add(self, cause: Cause, letter: Letter) -> None:
        """Count a letter."""
        group = self.groups.get(without_quotes(cause, self._variable))
        (self._group_of(cause, letter) if group is None else group).add(letter)

    def _group_of(self, cause: Cause, letter: Letter) -> Group:
        """Return the group of a letter. Add a group if necessary, and merge groups if there are too many."""
        known = without_quotes(cause, self._variable)
        while known not in self.groups and len(self.groups) >= _MOST_TEXTS:
            self._add_variable(cause)
            known = without_quotes(cause, self._variable)
        group = self.groups.get(known)
        if group is None:
            time = letter.record.timestamp
            group = self.groups[known] = Group(known, letter, time, time)
            self._firsts[known] = cause
        return group

    def _add_variable(self, cause: Cause) -> None:
        """Mark the position with the most different quoted strings as variable, and merge groups that become equal."""
        quotes = [quotes_in(each) for each in (*self._firsts.values(), cause)]
        texts = {
            position: {each[position] for each in quotes if position < len(each)}
            for position in range(max(map(len, quotes)))
            if position not in self._variable
        }
        self._variable |= {max(texts, key=lambda position: len(texts[position]))}
        groups, firsts = self.groups, self._firsts
        self.groups, self._firsts = {}, {}
        for known, group in groups.items():
            merged = without_quotes(firsts[known], self._variable)
            if merged in self.groups:
                self.groups[merged].merge(group)
            else:
                self.groups[merged] = replace(group, cause=merged)
                self._firsts[merged] = firsts[known]


class LetterGroups:
    """Counts of letters, grouped by cause.

    A quoted string may be the name of a field, so letters are in separate groups if their messages differ only in
    quoted strings. There are at most eight such groups. To stay within this limit, the position at which the quoted
    strings differ most is assumed to contain record contents. Groups that differ only there are then merged.
    """

    def __init__(self) -> None:
        self._similar: dict[_General, _SimilarGroups] = {}

    def add(self, letter: Letter) -> None:
        """Count a letter."""
        cause = cause_of(letter)
        similar = self._similar.get(cause[:-1])
        if similar is None:
            if len(self._similar) >= MOST_GROUPS:
                cause = Cause(OTHERS, (), "", "", "")
            similar = self._similar.setdefault(cause[:-1], _SimilarGroups())
        similar.add(cause, letter)

    def ordered(self) -> list[Group]:
        """Return the groups by descending count."""
        groups = [group for similar in self._similar.values() for group in similar.groups.values()]
        for group in groups:
            group.complete()
        return sorted(groups, key=lambda group: (-group.count, group.id))
