"""The configuration's file while the proxy runs: whether it has changed, and what it says now."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from sluicegate.config.loading import ConfigError, Loaded, Option, load_file
from sluicegate.config.model import Config
from sluicegate.config.yaml_source import Problem

# What counts at once when the file is read again; everything else with the next start.
_AT_ONCE = frozenset({"defaults", "topics"})
_MOST_NAMED = 10


class ConfigFile:
    """A file with what goes before it: variables of the environment and options of the command line."""

    def __init__(self, path: Path, environment: Mapping[str, str], options: Sequence[Option]) -> None:
        self._path = path
        self._environment = dict(environment)
        self._options = options
        self._looked_at = self._look()
        self._content = self._hash()

    def __str__(self) -> str:
        return str(self._path)

    def has_changed(self) -> bool:
        """Whether its content is another than when this was asked last, or at the start. Reads the file.

        It is looked at by its path, so that a link that leads elsewhere, as in a ConfigMap, counts too.
        """
        looked_at = self._look()
        if looked_at == self._looked_at:
            return False
        content = self._hash()
        self._looked_at = looked_at
        if content is None or content == self._content:
            return False  # while it is replaced there may be none
        self._content = content
        return True

    def read(self) -> Loaded:
        """What it says now. Raises ConfigError."""
        try:
            return load_file(self._path, self._environment, self._options)
        except RecursionError as error:
            raise ConfigError([Problem("", str(self._path), "nested too deeply")]) from error

    def _look(self) -> tuple[int, ...] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns

    def _hash(self) -> bytes | None:
        try:
            with self._path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").digest()
        except OSError:
            return None


def waits_for_a_restart(before: Config, after: Config) -> list[str]:
    """The keys that are different and count only with the next start; no values, some are secret."""
    return list(_different(before, after, ""))[:_MOST_NAMED]


def _different(before: Any, after: Any, key: str) -> Iterator[str]:
    if not isinstance(before, BaseModel) or type(before) is not type(after):
        if before != after:
            yield key
        return
    for name, field in type(before).model_fields.items():
        if key or name not in _AT_ONCE:
            shown = field.alias or name
            yield from _different(getattr(before, name), getattr(after, name), f"{key}.{shown}" if key else shown)
