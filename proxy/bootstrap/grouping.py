"""Groups topics with equal settings into entries. Each entry has few patterns, which match no other existing topic."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from sluicegate.validation.cluster_settings import ClusterSettings

MOST_ENTRIES = 500
"""The maximum number of entries, which keeps the file readable. The running proxy reads the omitted settings from the
cluster.
"""

_SEPARATORS = "._-"
_WORTH_A_GLOB = 3
# The maximum length of a generated regular expression. The configuration accepts up to 10,000 characters.
_MOST_CHARACTERS = 2000


@dataclass(frozen=True, slots=True)
class GroupedEntry:
    """An entry of `topics`: its pattern, the number of matching topics, and their settings."""

    match: str
    count: int
    settings: ClusterSettings


@dataclass(frozen=True, slots=True)
class GroupedTopics:
    """The result of grouping.

    It contains the most common settings, the number of topics that have them, entries for the other topics, and the
    number of topics without an entry.
    """

    usual: ClusterSettings
    usual_count: int
    entries: tuple[GroupedEntry, ...]
    without_entry: int


def grouped(topics: Mapping[str, ClusterSettings]) -> GroupedTopics:
    """Group the topics by their settings, with the largest group first.

    Names keep their order within a group.
    """
    groups: dict[ClusterSettings, list[str]] = defaultdict(list)
    for name in sorted(topics):
        groups[topics[name]].append(name)
    ordered = sorted(groups.items(), key=lambda group: -len(group[1]))
    if not ordered:
        return GroupedTopics(ClusterSettings(), 0, (), 0)
    usual, usual_names = ordered[0]
    alike = _alike(topics)
    entries = [entry for settings, names in ordered[1:] for entry in _entries(settings, names, alike)]
    omitted = entries[MOST_ENTRIES:]
    return GroupedTopics(usual, len(usual_names), tuple(entries[:MOST_ENTRIES]), sum(entry.count for entry in omitted))


def _alike(topics: Mapping[str, ClusterSettings]) -> dict[str, int]:
    """Return the prefixes whose topics have equal settings, with the number of these topics.

    A prefix ends with a separator.
    """
    first: dict[str, ClusterSettings] = {}
    counts: dict[str, int] = defaultdict(int)
    mixed = set()
    for name, settings in topics.items():
        for prefix in _prefixes(name):
            counts[prefix] += 1
            if first.setdefault(prefix, settings) != settings:
                mixed.add(prefix)
    return {prefix: count for prefix, count in counts.items() if prefix not in mixed}


def _prefixes(name: str) -> Iterator[str]:
    return (name[: i + 1] for i, char in enumerate(name) if i and char in _SEPARATORS)


def _entries(settings: ClusterSettings, names: Iterable[str], alike: Mapping[str, int]) -> Iterator[GroupedEntry]:
    globs: dict[str, int] = {}
    single = []
    for name in names:
        shared = next((prefix for prefix in _prefixes(name) if alike.get(prefix, 0) >= _WORTH_A_GLOB), None)
        if shared is None:
            single.append(name)
        else:
            globs[f"{shared}*"] = alike[shared]
    for glob, count in globs.items():
        yield GroupedEntry(glob, count, settings)
    for some in _chunks(single):
        match = some[0] if len(some) == 1 else "/" + "|".join(name.replace(".", "[.]") for name in some) + "/"
        yield GroupedEntry(match, len(some), settings)


def _chunks(names: Iterable[str]) -> Iterator[list[str]]:
    chunk: list[str] = []
    size = 0
    for name in names:
        length = len(name) + 2 * name.count(".") + 1
        if chunk and size + length > _MOST_CHARACTERS:
            yield chunk
            chunk, size = [], 0
        chunk.append(name)
        size += length
    if chunk:
        yield chunk
