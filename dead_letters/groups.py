"""Counts letters in groups by their cause. The memory is bounded, whatever the letters contain."""

from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256

from sluicegate.dead_letters.causes import Cause, cause_of
from sluicegate.dead_letters.letter import Letter

MOST_GROUPS = 1000
OTHERS = "(others)"
HOUR_MS = 3_600_000
_MOST_TEXTS = 8
_MOST_VALUES = 50
_SCHEMA_ID_END = 5
_ID_CHARACTERS = 8


class BoundedCounts(Counter[str]):
    """Counts values. After 50 different ones, further ones count as `OTHERS`."""

    def add(self, value: str, count: int = 1) -> None:
        """Count a value."""
        known = value in self or len(self) < _MOST_VALUES
        self[value if known else OTHERS] += count

    def ordered(self) -> list[tuple[str, int]]:
        """Return the values by their counts, and values with one count by their names."""
        return sorted(self.items(), key=lambda each: (-each[1], each[0]))


@dataclass(slots=True)
class Group:
    """Letters with one cause. `first` and `last` are their times in the topic (ms). `example` is the first letter."""

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

    @property
    def id(self) -> str:
        """Return a short name of the cause, which is the same in each run."""
        return group_id(self.cause)

    def add(self, letter: Letter) -> None:
        """Count a letter."""
        time = letter.record.timestamp
        self.count += 1
        self.first, self.last = min(self.first, time), max(self.last, time)
        self.formats.add(letter.format)
        self.topics.add(letter.topic)
        self.clients.add(letter.client or "")
        self.hours.add(str(time // HOUR_MS * HOUR_MS))
        value = letter.record.value
        if value is not None and len(value) >= _SCHEMA_ID_END and value[0] == 0:
            self.schemas.add(str(int.from_bytes(value[1:_SCHEMA_ID_END], "big")))

    def merge(self, other: "Group") -> None:
        """Add the letters of another group."""
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
    """Return a short name of a cause."""
    parts = (cause.error, ",".join(cause.rules), cause.stage, cause.exact)
    return sha256("\0".join(parts).encode(errors="surrogatepass")).hexdigest()[:_ID_CHARACTERS]


def ids_of(letter: Letter) -> tuple[str, str]:
    """Return the ids of the groups to which a letter can belong: with the text in quotes, and without it."""
    cause = cause_of(letter)
    return group_id(cause), group_id(_general(cause))


def _general(cause: Cause) -> Cause:
    return cause._replace(exact=cause.text)


class Groups:
    """Counts letters by their cause.

    Letters with texts that differ only in quotes are in separate groups, because a text in quotes may be the name of a
    field. If there are more than eight such groups, it is a part of the record, and they become one.
    """

    def __init__(self) -> None:
        self._groups: dict[Cause, dict[Cause, Group]] = {}

    def add(self, letter: Letter) -> None:
        """Count a letter."""
        cause = cause_of(letter)
        general = _general(cause)
        similar = self._groups.get(general)
        if similar is None:
            if len(self._groups) >= MOST_GROUPS:
                cause = general = Cause(OTHERS, (), "", "", "")
            similar = self._groups.setdefault(general, {})
        if general not in similar and cause not in similar and len(similar) >= _MOST_TEXTS:
            _make_one(similar, general)
        if general in similar:
            cause = general
        group = similar.get(cause)
        if group is None:
            time = letter.record.timestamp
            group = similar[cause] = Group(cause, letter, time, time)
        group.add(letter)

    def ordered(self) -> list[Group]:
        """Return the groups by their counts."""
        groups = [group for similar in self._groups.values() for group in similar.values()]
        return sorted(groups, key=lambda group: (-group.count, group.id))


def _make_one(similar: dict[Cause, Group], general: Cause) -> None:
    oldest = next(iter(similar.values()))
    whole = Group(general, oldest.example, oldest.first, oldest.last)
    for group in similar.values():
        whole.merge(group)
    similar.clear()
    similar[general] = whole
