"""Represents a configuration's data: plain values, the place of every key, and the problems found."""

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any

from sluicegate.config.disk.kept_files import kept_contents
from sluicegate.config.disk.regular_file import is_unreadable, read_now
from sluicegate.config.values.contract import TopicContract

Path = tuple[str | int, ...]
MAX_BYTES = 16 << 20
_MAX_LINE = 600


@dataclass(frozen=True, slots=True)
class Problem:
    """An error in the configuration: its key, its place (`file:line`) and the remedy."""

    key: str
    place: str
    message: str

    def __str__(self) -> str:
        return printable(f"{self.place}: {self.key + ': ' if self.key else ''}{self.message}")


@dataclass(frozen=True, slots=True)
class SchemaFile:
    """A schema, or a key for sensitive fields, as read from a file: its text, or a Protobuf descriptor set.

    `files` are the file itself, and its imports from the same folder.
    """

    content: bytes = field(repr=False)
    files: tuple[FilePath, ...]

    def is_unreadable(self) -> bool:
        """Return whether one of the files is missing or cannot be opened. Has no deadline."""
        return any(map(is_unreadable, self.files))


@dataclass(slots=True)
class Source:
    """Configuration data, and the origin of each path (`file:line`, an environment variable, an option).

    - `readable`: whether the data could be parsed. If not, `problems` contains the reason.
    - `remarks`: remarks about valid but notable data.
    - `digests`: the SHA-256 of each file's content.
    - `folders`: the folder of an included item's file, by the item's path.
    - `elsewhere`: the path of an included item in its own file.
    - `contracts`: contracts by topic.
    - `content`: the content of the configuration's own file.
    - `included`: the content of each file in `topic_files` and `contracts`, and of each file to which contracts refer.
    - `referenced`: the files to which contracts refer.
    - `previous`: the value of `included` in the previous configuration, which replaces missing files.
    - `missing`: the missing files, each with the patterns of the topics that keep their policies.
    - `schemas`: the compiled schemas and keys that policies name, by file.
    - `previous_schemas`: the value of `schemas` in the previous configuration.
    - `kept`: the last contents of files with certificates and secrets, for a worker.
    """

    name: str
    data: dict[str, Any] = field(default_factory=dict, repr=False)
    places: dict[Path, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    readable: bool = True
    remarks: list[str] = field(default_factory=list)
    digests: dict[FilePath, bytes] = field(default_factory=dict)
    elsewhere: dict[Path, Path] = field(default_factory=dict)
    folders: dict[Path, FilePath] = field(default_factory=dict)
    contracts: dict[str, TopicContract] = field(default_factory=dict)
    content: bytes | None = field(default=None, repr=False)
    included: dict[FilePath, bytes] = field(default_factory=dict, repr=False)
    referenced: set[FilePath] = field(default_factory=set)
    previous: Mapping[FilePath, bytes] = field(default_factory=dict, repr=False)
    missing: dict[FilePath, list[str]] = field(default_factory=dict)
    schemas: dict[FilePath, SchemaFile] = field(default_factory=dict)
    previous_schemas: Mapping[FilePath, SchemaFile] = field(default_factory=dict)
    kept: Mapping[FilePath, bytes] = field(default_factory=dict, repr=False)

    def place_of(self, path: Path) -> str:
        """Return the place of `path`, or of its nearest parent that has a place."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.places:
                return self.places[path[:length]]
        return self.name

    def only_places(self, sections: Collection[str]) -> "Source":
        """Return the places of these sections, the schemas and the kept contents of other files, without other data.

        Messages about values in force use the result. So do workers, which share the schemas and secrets.
        """
        return Source(
            self.name,
            places={path: place for path, place in self.places.items() if path[0] in sections},
            elsewhere={path: other for path, other in self.elsewhere.items() if path[0] in sections},
            contracts=self.contracts,
            schemas=self.schemas,
            kept=kept_contents(),
        )

    def key_of(self, path: Path) -> str:
        """Return the key of `path` in its own file, for example `topics[0].match`."""
        return dotted(self.path_in_file(path))

    def path_in_file(self, path: Path) -> Path:
        """Return the path that `path` has in its own file."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.elsewhere:
                return (*self.elsewhere[path[:length]], *path[length:])
        return path


def digest_of_file(path: FilePath) -> bytes | None:
    """Return the digest of a file's current content, or None if it cannot be read. Has no deadline."""
    try:
        return digest_of(read_now(path, MAX_BYTES))
    except (OSError, ValueError):
        return None


def digest_of(content: bytes) -> bytes:
    """Return the SHA-256 of some content."""
    return hashlib.sha256(content).digest()


def dotted(path: Path) -> str:
    """Return a path as messages show it: `topics[0].match`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f"{'.' if text else ''}{part}"
    return text


def printable(text: str) -> str:
    """Return a string as one line that is safe to print on a terminal."""
    shown = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text[:_MAX_LINE])
    return shown if len(text) <= _MAX_LINE else f"{shown}…"
