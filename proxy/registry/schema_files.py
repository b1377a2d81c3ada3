"""Reads the files with schemas and keys that rules and sensitive fields name.

A file that is missing or unreadable (a deleted file, an unmounted volume) keeps its last content, so that its topics
are validated as before, and a reload for another reason is not rejected.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from sluicegate.config.disk.kept_files import read_current
from sluicegate.config.disk.regular_file import read_file
from sluicegate.config.files.near_files import near_files
from sluicegate.config.files.source import SchemaFile, Source
from sluicegate.config.model import Config
from sluicegate.config.values.password import Password, PasswordUnreadable
from sluicegate.proxy.rules_process.protoc import descriptor_set_of_file, sources_of
from sluicegate.validation.rules.schemas.content import SchemaUnusable

_MOST_BYTES = 10 << 20
_NONE: Mapping[Path, SchemaFile] = MappingProxyType({})


class SchemaFiles:
    """Reads each file once and adds it to `known`, by its absolute path; those in `known` are not read.

    `previous`: schemas in force, from which files that have become unreadable since are read.
    """

    def __init__(self, known: dict[Path, SchemaFile], previous: Mapping[Path, SchemaFile] = _NONE) -> None:
        self._known = known
        self._previous = previous

    def content_of(self, path: Path, is_protobuf: bool) -> bytes:
        """Return the text of a schema, or its descriptor set. Raises SchemaUnusable."""
        found = self._known.get(path)
        if found is None:
            found = self._known[path] = self._read(path, is_protobuf)
        return found.content

    def secret_of(self, password: Password) -> str:
        """Return the secret in a file, or a secret without a file. Raises PasswordUnreadable."""
        if password.file is None:
            return password.get()
        path = Path(password.file).absolute()
        found = self._known.get(path)
        if found is None:
            try:
                found = SchemaFile(password.get(read_current).encode(), (path,))
            except PasswordUnreadable:
                kept = self._kept(path)
                if kept is None:
                    raise
                found = kept
            self._known[path] = found
        return found.content.decode()

    def _read(self, path: Path, is_protobuf: bool) -> SchemaFile:
        try:
            if is_protobuf and path.suffix == ".proto":
                descriptor_set = descriptor_set_of_file(path)
                return SchemaFile(descriptor_set, sources_of(descriptor_set, path))
            return SchemaFile(_content(path), (path,))
        except SchemaUnusable:
            kept = self._kept(path)
            if kept is None:
                raise
            return kept

    def _kept(self, path: Path) -> SchemaFile | None:
        """Return the last content of a file that has become unreadable since."""
        kept = self._previous.get(path)
        return kept if kept is not None and kept.is_unreadable() else None


def missing_schemas(config: Config, source: Source) -> dict[Path, list[str]]:
    """Return the unreadable files of schemas and keys in force, each with the patterns of its topics.

    `defaults` is the name of the topics without an entry. Without a deadline.
    """
    users: dict[Path, list[str]] = defaultdict(list)
    for file, topics in _files_of(config):
        path = Path(file).absolute()
        known = source.schemas.get(path)
        if known is not None and topics not in users[path] and known.is_unreadable():
            users[path].append(topics)
    return {path: topics for path, topics in users.items() if topics}


def _files_of(config: Config) -> Iterator[tuple[str, str]]:
    """Yield each file with a schema or a key, with the pattern of the topics that it is for."""
    for _, keys in config.sections_with_rules():
        topics = getattr(keys, "match", "defaults")
        contents = (content for rule in keys.rules or () for content in (rule.key, rule.value))
        schemas = [content.schema_ for content in contents if content is not None]
        sensitive = getattr(keys, "sensitive", None) or ()
        schemas += [fields.schema_ for fields in sensitive]
        files = [schema.file for schema in schemas if schema is not None]
        files += [fields.key_file for fields in sensitive]
        yield from ((file, topics) for file in files if file is not None)


def _content(path: Path) -> bytes:
    try:
        content = read_file(path, _MOST_BYTES)
    except OSError as error:
        near = near_files(path) if isinstance(error, FileNotFoundError) else ""
        raise SchemaUnusable(f"{path} cannot be read: {error.strerror}{near}") from error
    if len(content) > _MOST_BYTES:
        raise SchemaUnusable(f"{path} is larger than {_MOST_BYTES} bytes")
    return content
