"""Reads the files with schemas that rules and sensitive fields name.

A file that vanishes (a deleted file, an unmounted volume) keeps its last content, so that its topics are validated as
before, and a reload for another reason is not rejected.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from sluicegate.config.content_keys import Schema
from sluicegate.config.files.near_files import near_files
from sluicegate.config.files.regular_file import read_file
from sluicegate.config.model import Config
from sluicegate.config.source import SchemaFile, Source
from sluicegate.proxy.rules_process.protoc import descriptor_set_of_file, sources_of
from sluicegate.validation.rules.schemas.content import SchemaUnusable

_MOST_BYTES = 10 << 20
_NONE: Mapping[Path, SchemaFile] = MappingProxyType({})


class SchemaFiles:
    """Reads each file once and adds it to `known`, by its absolute path; those in `known` are not read.

    `previous`: schemas in force, from which files that have vanished since are read.
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

    def _read(self, path: Path, is_protobuf: bool) -> SchemaFile:
        try:
            if is_protobuf and path.suffix == ".proto":
                descriptor_set = descriptor_set_of_file(path)
                return SchemaFile(descriptor_set, sources_of(descriptor_set, path))
            return SchemaFile(_content(path), (path,))
        except SchemaUnusable:
            kept = self._previous.get(path)
            if kept is None or not kept.is_gone():
                raise
            return kept


def missing_schemas(config: Config, source: Source) -> dict[Path, list[str]]:
    """Return the files of schemas in force that are missing, each with the patterns of the topics that they are for.

    `defaults` is the name of the topics without an entry. Without a deadline.
    """
    users: dict[Path, list[str]] = defaultdict(list)
    for schema, topics in _schemas_of(config):
        path = Path(schema.file or "").absolute()
        known = source.schemas.get(path)
        if known is not None and topics not in users[path] and known.is_gone():
            users[path].append(topics)
    return {path: topics for path, topics in users.items() if topics}


def _schemas_of(config: Config) -> Iterator[tuple[Schema, str]]:
    """Yield each schema in a file, with the pattern of the topics that it is for."""
    for _, keys in config.sections_with_rules():
        topics = getattr(keys, "match", "defaults")
        contents = (content for rule in keys.rules or () for content in (rule.key, rule.value))
        schemas = [content.schema_ for content in contents if content is not None]
        schemas += [fields.schema_ for fields in getattr(keys, "sensitive", None) or ()]
        yield from ((schema, topics) for schema in schemas if schema is not None and schema.file is not None)


def _content(path: Path) -> bytes:
    try:
        content = read_file(path, _MOST_BYTES)
    except OSError as error:
        near = near_files(path) if isinstance(error, FileNotFoundError) else ""
        raise SchemaUnusable(f"{path} cannot be read: {error.strerror}{near}") from error
    if len(content) > _MOST_BYTES:
        raise SchemaUnusable(f"{path} is larger than {_MOST_BYTES} bytes")
    return content
