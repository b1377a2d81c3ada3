"""Topics that are set alike become one entry, with as few patterns as name them and no other topic that is there."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from sluicegate.validation.cluster_settings import ClusterSettings

MOST_ENTRIES = 500
"""More would not be read by anybody; what is left out is read from the cluster while the proxy runs."""

_SEPARATORS = "._-"
_WORTH_A_GLOB = 3
# Of a regular expression; the configuration takes 10,000 characters.
_MOST_CHARACTERS = 2000


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of `topics`: what it matches, how many topics that are, and what they are set to."""

    match: str
    count: int
    settings: ClusterSettings


@dataclass(frozen=True, slots=True)
class Grouped:
    """What most topics are set to, how many they are, entries for the others, and how many have found no place."""

    usual: ClusterSettings
    usual_count: int
    entries: tuple[Entry, ...]
    without_entry: int


def grouped(topics: Mapping[str, ClusterSettings]) -> Grouped:
    """The largest group comes first; names keep their order within a group."""
    groups: dict[ClusterSettings, list[str]] = defaultdict(list)
    for name in sorted(topics):
        groups[topics[name]].append(name)
    ordered = sorted(groups.items(), key=lambda group: -len(group[1]))
    if not ordered:
        return Grouped(ClusterSettings(), 0, (), 0)
    usual, of_it = ordered[0]
    alike = _alike(topics)
    entries = [entry for settings, names in ordered[1:] for entry in _entries(settings, names, alike)]
    left = entries[MOST_ENTRIES:]
    return Grouped(usual, len(of_it), tuple(entries[:MOST_ENTRIES]), sum(entry.count for entry in left))


def _alike(topics: Mapping[str, ClusterSettings]) -> dict[str, int]:
    """Beginnings that end with a separator and whose topics are all set alike, with how many those are."""
    first: dict[str, ClusterSettings] = {}
    counts: dict[str, int] = defaultdict(int)
    mixed = set()
    for name, settings in topics.items():
        for beginning in _beginnings(name):
            counts[beginning] += 1
            if first.setdefault(beginning, settings) != settings:
                mixed.add(beginning)
    return {beginning: count for beginning, count in counts.items() if beginning not in mixed}


def _beginnings(name: str) -> Iterator[str]:
    return (name[: i + 1] for i, char in enumerate(name) if i and char in _SEPARATORS)


def _entries(settings: ClusterSettings, names: Iterable[str], alike: Mapping[str, int]) -> Iterator[Entry]:
    globs: dict[str, int] = {}
    single = []
    for name in names:
        shared = next((one for one in _beginnings(name) if alike.get(one, 0) >= _WORTH_A_GLOB), None)
        if shared is None:
            single.append(name)
        else:
            globs[f"{shared}*"] = alike[shared]
    for glob, count in globs.items():
        yield Entry(glob, count, settings)
    for some in _chunks(single):
        match = some[0] if len(some) == 1 else "/" + "|".join(name.replace(".", "[.]") for name in some) + "/"
        yield Entry(match, len(some), settings)


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
