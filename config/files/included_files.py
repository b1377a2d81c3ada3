"""Reads the files that `topic_files` and `contracts` match, including files that have vanished since the last load.

A vanished file (an unmounted volume, a deleted file) is replaced by its last content, so that its topics keep their
policies. Items that another file now contains are omitted, so renaming or splitting a file has no effect.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path as FilePath
from typing import Any

import yaml

from sluicegate.config.disk.regular_file import is_gone
from sluicegate.config.files.patterns import has_wildcards
from sluicegate.config.files.scopes import TOPICS
from sluicegate.config.files.source import Source, digest_of
from sluicegate.config.files.yaml_nodes import text_of
from sluicegate.config.files.yaml_source import read_content, read_file

_IDENTITY: Mapping[str, str] = {TOPICS: "match", "quotas": "name"}
"""The key that identifies a list's items. In other lists, items are compared as a whole."""


@dataclass(frozen=True, slots=True)
class ItemIdentities:
    """The identities of the items in several lists, by list."""

    by_list: Mapping[str, list[Any]]

    def has(self, key: str, item: Any) -> bool:
        """Return whether this item is in the list `key`."""
        return _identity(key, item) in self.by_list.get(key, ())


NO_ITEMS = ItemIdentities({})


def vanished_files(previous: Iterable[FilePath], pattern: str, present: Iterable[FilePath]) -> list[FilePath]:
    """Return the files in `previous` that the absolute `pattern` would match if they existed.

    `present` contains the existing files that it matches. A link without a target counts as vanished. Has no deadline.
    """
    found = set(present)
    return [file for file in previous if _leads_to(pattern, file) and (file not in found or is_gone(file))]


def read_included(source: Source, file: FilePath, scalar: Callable[[yaml.ScalarNode], Any] = text_of) -> Source:
    """Read a file, or use a missing file's last content. Keep the content in `source.included`."""
    if file in source.missing:
        content = source.previous[file]
        held = read_content(content, str(file), scalar)
        held.digests[file] = digest_of(content)
    else:
        held = read_file(file, scalar)
    if held.content is not None:
        source.included[file] = held.content
    source.digests |= held.digests
    return held


def forget(source: Source, file: FilePath) -> None:
    """Remove a missing file, because other files now contain all its items."""
    for known in (source.missing, source.included, source.digests):
        known.pop(file, None)


def items_elsewhere(source: Source, files: Iterable[FilePath], lists: Iterable[str]) -> ItemIdentities:
    """Return the items of these lists in the configuration itself and in its existing files.

    Returns nothing, without reading any file, unless a file is missing.
    """
    if not source.missing:
        return NO_ITEMS
    data = [source.data, *(read_file(file).data for file in files if file not in source.missing)]
    return ItemIdentities(
        {key: [_identity(key, item) for each in data for item in _listed(each.get(key))] for key in lists}
    )


def _identity(key: str, item: Any) -> Any:
    return item.get(_IDENTITY[key]) if key in _IDENTITY and isinstance(item, dict) else item


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _leads_to(pattern: str, file: FilePath) -> bool:
    wanted = FilePath(pattern).parts
    return len(wanted) == len(file.parts) and all(map(_matches, wanted, file.parts))


def _matches(wanted: str, part: str) -> bool:
    """Return whether a part of a path matches a part of a pattern, by the rules of `glob`."""
    if not has_wildcards(wanted):
        return wanted == part
    return (wanted[0] == "." or part[0] != ".") and fnmatchcase(part, wanted)
