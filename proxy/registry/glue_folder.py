"""Reads AWS Glue Schema Registry's schemas from a folder. Each file is named after the UUID of the schema version."""

from collections.abc import Iterator
from os import scandir
from pathlib import Path
from typing import Final
from uuid import UUID

from sluicegate.config.disk.deadline import within_deadline
from sluicegate.config.disk.regular_file import read_file
from sluicegate.proxy.registry.confluent_api import NewestSchema, RegistryClient, SchemaText
from sluicegate.proxy.registry.http import MAX_RESPONSE_BYTES, RegistryFailed
from sluicegate.proxy.registry.met_subjects import SubjectMatcher
from sluicegate.validation.rules.protobuf.message_names import MessageNaming
from sluicegate.validation.rules.schemas.content import SchemaLanguage
from sluicegate.validation.rules.schemas.wire_format import SchemaId

_MOST_FILES = 10_000
_LANGUAGES: Final = {
    ".avsc": SchemaLanguage.AVRO,
    ".json": SchemaLanguage.JSON,
    ".proto": SchemaLanguage.PROTOBUF,
}


class GlueFolder:
    """Reads schemas from files `UUID.avsc`, `UUID.json` and `UUID.proto`, without sending requests.

    The files do not contain the schemas' names, so each schema belongs to every subject.
    """

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    def fetch_schema(self, http: RegistryClient, schema_id: SchemaId) -> SchemaText | str | None:
        """Return a schema, or None if there is none.

        If the schema cannot be used, return the reason as a string. Raises RegistryFailed.
        """
        if not isinstance(schema_id, UUID):
            return None
        for suffix, language in _LANGUAGES.items():
            try:
                content = read_file(self._folder / f"{schema_id}{suffix}", MAX_RESPONSE_BYTES)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise RegistryFailed(f"{self._folder}/{schema_id}{suffix}: {error.strerror}") from error
            if len(content) > MAX_RESPONSE_BYTES:
                return f"the file is larger than {MAX_RESPONSE_BYTES} bytes"
            try:
                return SchemaText(language, content.decode(), (), naming=MessageNaming.GLUE)
            except UnicodeDecodeError:
                return "the file is not UTF-8"
        self.subjects(http)  # a missing folder is an outage
        return None

    def is_registered_under(self, _http: RegistryClient, _schema_id: SchemaId, _subject: str) -> bool:
        """Return True, because each schema belongs to every subject."""
        return True

    def subjects(self, _http: RegistryClient) -> list[str]:
        """Return the UUIDs of all schemas, at most 10,000. Raises RegistryFailed."""
        try:
            return names_in_folder(self._folder)
        except OSError as error:
            raise RegistryFailed(f"{self._folder}: {error.strerror}") from error

    def is_met(self, _subject: str, _met: SubjectMatcher) -> bool:
        """Return True, because each schema may belong to any topic."""
        return True

    def newest(self, http: RegistryClient, subject: str) -> NewestSchema | None:
        """Return a schema by its UUID, or None if it no longer exists. Raises RegistryFailed."""
        schema_id = UUID(subject)
        text = self.fetch_schema(http, schema_id)
        return None if text is None else NewestSchema(1, schema_id, text)


def names_in_folder(folder: Path) -> list[str]:
    """Return the UUIDs of all schemas in a folder, at most 10,000. Blocks for up to a few seconds. Raises OSError."""
    return within_deadline(("folder", folder), lambda: list(dict.fromkeys(_listed(folder))))


def _listed(folder: Path) -> Iterator[str]:
    with scandir(folder) as entries:
        for entry, _ in zip(entries, range(_MOST_FILES), strict=False):
            stem, suffix = Path(entry.name).stem, Path(entry.name).suffix
            if suffix in _LANGUAGES and _is_uuid(stem):
                yield stem


def _is_uuid(text: str) -> bool:
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False
