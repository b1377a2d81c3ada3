"""Reads the configuration's files and detects changes in them."""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from sluicegate.config.disk.deadline import within_deadline
from sluicegate.config.disk.regular_file import is_unreadable, stat_now
from sluicegate.config.files.patterns import MOST_BYTES, TooManyFiles, patterns_in, topic_files
from sluicegate.config.files.source import MAX_BYTES, Problem, SchemaFile, Source, digest_of_file
from sluicegate.config.files.yaml_source import read_file
from sluicegate.config.keys import each_key_of
from sluicegate.config.loading import ConfigError, Loaded, Option, load
from sluicegate.config.model import POLICIES, Config
from sluicegate.config.section import is_section

NOTHING = Source("nothing")
_MOST_NAMED = 10

_FileStates = tuple[object, ...]


class ConfigFile:
    """The main file, the files that its keys `topic_files` and `contracts` name, and those to which contracts refer.

    The environment and the command line override the files. Files are compared by path and content, so a link with a
    new target, as in a ConfigMap, is a change. It also watches whether schema files can be read.
    """

    def __init__(self, path: Path, options: Sequence[Option]) -> None:
        self._path = path
        self._options = tuple(options)
        self._patterns: list[str] = []
        self._referenced: tuple[Path, ...] = ()
        self._digests: dict[Path, bytes] = {}
        self._schemas: tuple[Path, ...] = ()
        self._unreadable: frozenset[Path] = frozenset()
        self._states: _FileStates | None = None
        self._is_settled = False
        self._is_unusable = False
        self.is_missing = False
        """Whether the main file was missing in the last two checks."""

    def __str__(self) -> str:
        return str(self._path)

    def has_changed(self) -> bool:
        """Return whether there is a change to load.

        The content must differ from what was last loaded, and must be the same as at the previous call, because an
        editor that writes in place may not have finished. A watched file that has become unreadable or readable is also
        a change. Files are read only if their stat differs. Blocks for up to a few seconds. Raises FileUnreadable while
        a file system does not respond.
        """
        states = within_deadline((self._path, "states"), self._states_now)
        if states != self._states:
            self._states, self._is_settled, self.is_missing = states, False, False
            return False
        self.is_missing = states is None
        if self._is_settled or states is None:
            return False  # the file may be missing only while it is replaced
        digests = within_deadline((self._path, "digests"), self._digests_now)
        self._is_settled = True
        unreadable = within_deadline((self._path, "schemas"), self._unreadable_now)
        # The error in an unusable configuration may be in a file that was not read.
        return self._is_unusable or digests != self._digests or unreadable != self._unreadable

    def watch(self, schemas: Iterable[SchemaFile], unreadable: Iterable[Path] = ()) -> None:
        """Watch whether these schemas' files can be read.

        Those in `unreadable` cannot be read now. Changes of their content are not reported.
        """
        self._schemas = tuple(dict.fromkeys(file for schema in schemas for file in schema.files))
        self._unreadable = frozenset(unreadable)

    def read(self, previous: Source = NOTHING) -> Loaded:
        """Read and validate the current files.

        `previous` is the source in force, which replaces files that have disappeared. Raises ConfigError.
        """
        self._is_unusable = True
        source = read_file(self._path)
        source.content = None  # only the content of included files is kept
        source.previous, source.previous_schemas = previous.included, previous.schemas
        try:
            loaded = load(source, os.environ, self._options, self._path.parent)
        except RecursionError as error:
            raise ConfigError([Problem("", str(self._path), "nested too deeply")]) from error
        else:
            self._is_unusable = False
            self._states = None  # a file that was included for the first time may have changed since
            return loaded
        finally:
            if source.readable:
                self._digests = {file: digest for file, digest in source.digests.items() if file not in source.missing}
                self._patterns = patterns_in(source.data)
                self._referenced = tuple(sorted(source.referenced))
            else:
                self._digests = self._digests | source.digests

    def _files(self) -> list[Path]:
        files = topic_files(self._patterns, self._path.parent, self._path)
        return list(dict.fromkeys((self._path, *files, *self._referenced)))

    def _states_now(self) -> _FileStates | None:
        """Return metadata that changes when a file is written or replaced. Return None if the main file is missing."""
        seen: list[object] = []
        try:
            files = self._files()
        except TooManyFiles as error:
            files = [self._path]
            seen.append(str(error))
        for file in files:
            try:
                found = stat_now(file)
            except OSError:
                if file == self._path:
                    return None
                continue
            seen += (file, found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
        seen.append(self._unreadable_now())
        return tuple(seen)

    def _unreadable_now(self) -> frozenset[Path]:
        return frozenset(filter(is_unreadable, self._schemas))

    def _digests_now(self) -> dict[Path, bytes] | None:
        """Return the digests, or None if the files exceed the size limit, which `read` reports."""
        try:
            files = self._files()
        except TooManyFiles:
            return None
        found: dict[Path, bytes] = {}
        size = 0
        for file in files:
            with suppress(OSError, ValueError):
                size += stat_now(file).st_size
            # the sum of the limits of `topic_files`, `contracts`, and the main file
            if size > 2 * MOST_BYTES + MAX_BYTES:
                return None
            digest = digest_of_file(file)
            if digest is not None:
                found[file] = digest
        return found


def keys_needing_restart(before: Config, after: Config) -> list[str]:
    """Return the changed keys that take effect only after a restart, without values, because some are secret."""
    return list(_different(before, after, ""))[:_MOST_NAMED]


def _different(before: Any, after: Any, key: str) -> Iterator[str]:
    if not is_section(type(before)) or type(before) is not type(after):
        if before != after:
            yield key
        return
    for each in each_key_of(type(before)):
        if key or each.name not in POLICIES:
            inner = f"{key}.{each.name}" if key else each.name
            yield from _different(getattr(before, each.attribute), getattr(after, each.attribute), inner)
