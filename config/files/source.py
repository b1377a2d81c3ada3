"""What a configuration said, and where: plain data, the place of every key, and what is wrong with it."""

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
    """A schema, or the key of sensitive fields, as it was read from a file: its text, or a Protobuf descriptor set.

    `files`: the file, and its imports from the same folder.
    """

    content: bytes = field(repr=False)
    files: tuple[FilePath, ...]

    def is_unreadable(self) -> bool:
        """Return whether one of the files is missing or cannot be opened. Without a deadline."""
        return any(map(is_unreadable, self.files))


@dataclass(slots=True)
class Source:
    """Configuration data and where each path came from (`file:line`, an environment variable, an option).

    `readable`: whether the data could be parsed; if not, `problems` has the reason. `remarks`: valid but notable data.
    `digests`: SHA-256 of each file's content. `folders`: for an item of another file, that file's folder.
    `elsewhere`: for an
    item of another file, its path there. `contracts`: by topic. `content`: of its own file. `included`: the content of
    each file of `topic_files` and `contracts`. `previous`: the same of the configuration in force before, from which
    missing files are read. `missing`: those files, each with the patterns of the topics whose policies are kept.
    `schemas`: schemas and keys of files that policies name, by the file, as they were compiled. `previous_schemas`: the
    same of the configuration in force before. `kept`: for a worker, the last contents of files with certificates and
    secrets.
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
    previous: Mapping[FilePath, bytes] = field(default_factory=dict, repr=False)
    missing: dict[FilePath, list[str]] = field(default_factory=dict)
    schemas: dict[FilePath, SchemaFile] = field(default_factory=dict)
    previous_schemas: Mapping[FilePath, SchemaFile] = field(default_factory=dict)
    kept: Mapping[FilePath, bytes] = field(default_factory=dict, repr=False)

    def place_of(self, path: Path) -> str:
        """Return the place of `path`, or of the nearest path around it."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.places:
                return self.places[path[:length]]
        return self.name

    def only_places(self, sections: Collection[str]) -> "Source":
        """Return the places of these sections, the schemas and the kept contents of other files, without other data:
        for messages about values in force, and for workers, which use the same schemas and secrets.
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
        """Return the key of `path` in its own file, as `topics[0].match`."""
        return dotted(self.path_in_file(path))

    def path_in_file(self, path: Path) -> Path:
        """Return `path` as it is in its own file."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.elsewhere:
                return (*self.elsewhere[path[:length]], *path[length:])
        return path


def digest_of_file(path: FilePath) -> bytes | None:
    """Return the digest of a file as it is now, None if it cannot be read. Without a deadline."""
    try:
        return digest_of(read_now(path, MAX_BYTES))
    except (OSError, ValueError):
        return None


def digest_of(content: bytes) -> bytes:
    """Return the digest of a content (SHA-256)."""
    return hashlib.sha256(content).digest()


def dotted(path: Path) -> str:
    """A path as people read it: `topics[0].match`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f"{'.' if text else ''}{part}"
    return text


def printable(text: str) -> str:
    """One line that a terminal shows as it is, whatever a file had in it."""
    shown = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text[:_MAX_LINE])
    return shown if len(text) <= _MAX_LINE else f"{shown}…"
