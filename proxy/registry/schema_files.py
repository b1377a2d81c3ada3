"""Reads the schema and key files that rules and sensitive fields name.

If a file has become missing or unreadable (a deleted file, an unmounted volume), its last content stays in use. So its
topics are validated as before, and a reload for another reason still succeeds.
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
    """Reads each file once and adds it to `known` by its absolute path.

    Files in `known` are not read. `previous` contains the schemas in force, which replace files that have become
    unreadable.
    """

    def __init__(self, known: dict[Path, SchemaFile], previous: Mapping[Path, SchemaFile] = _NONE) -> None:
        self._known = known
        self._previous = previous

    def content_of(self, path: Path, is_protobuf: bool) -> bytes:
        """Return a schema file's content, which is text or a descriptor set. Raises SchemaUnusable."""
        found = self._known.get(path)
        if found is None:
            found = self._known[path] = self._read(path, is_protobuf)
        return found.content

    def secret_of(self, password: Password) -> str:
        """Return the secret in the file of `password`, or its secret if it names no file. Raises PasswordUnreadable."""
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
        """Return the last content of a file that has become unreadable, or None."""
        kept = self._previous.get(path)
        return kept if kept is not None and kept.is_unreadable() else None


def missing_schemas(config: Config, source: Source) -> dict[Path, list[str]]:
    """Return the unreadable schema and key files in force, each with its topic patterns.

    `defaults` stands for topics without an entry. The reading time is not limited.
    """
    users: dict[Path, list[str]] = defaultdict(list)
    for file, topics in _files_of(config):
        path = Path(file).absolute()
        known = source.schemas.get(path)
        if known is not None and topics not in users[path] and known.is_unreadable():
            users[path].append(topics)
    return {path: topics for path, topics in users.items() if topics}


def _files_of(config: Config) -> Iterator[tuple[str, str]]:
    """Yield each schema or key file, with the pattern of the topics that use it."""
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
