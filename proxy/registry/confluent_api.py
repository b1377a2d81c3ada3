"""The questions to a registry that has Confluent's API, and what its answers say."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol
from urllib.parse import quote
from uuid import UUID

from sluicegate.proxy.registry.http import Answer, RegistryFailed, ResponseTooLarge
from sluicegate.validation.rules.schemas.content import SchemaLanguage
from sluicegate.validation.rules.schemas.wire_format import SchemaId

_NOT_FOUND = 404
# The codes in the body of a 404; any other, or none, is the answer of something that is no registry.
_NO_SUBJECT, _NO_VERSION, _NO_SCHEMA = 40401, 40402, 40403
_MOST_REFERENCES = 100
# Ids are Java's ints to a registry; it takes anything else for a page that it does not have.
_MOST_ID = (1 << 31) - 1
_LANGUAGES: Final = {language.value: language for language in SchemaLanguage}


@dataclass(frozen=True, slots=True)
class Reference:
    """A schema that another names: by `name`."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class SchemaText:
    """A schema with all that it names, each of its `references` after what it names itself."""

    language: SchemaLanguage
    text: str
    references: tuple[Reference, ...]

    @property
    def size(self) -> int:
        """Characters of all its texts."""
        return len(self.text) + sum(len(each.name) + len(each.text) for each in self.references)


class Asks(Protocol):
    """HTTP, or what stands for it in a test."""

    def begin(self) -> None:
        """A look-up begins: all questions until the next one share its bounds."""

    def close(self) -> None:
        """Give the connection up; another is made where one is needed."""

    def get(self, path: str) -> Answer:
        """Raises RegistryFailed."""

    def post(self, path: str, body: Any) -> Answer:
        """Raises RegistryFailed."""


def schema_of(http: Asks, schema_id: SchemaId) -> SchemaText | str | None:
    """A schema with all that it names, or why it cannot be used; None where there is none. Raises RegistryFailed."""
    if isinstance(schema_id, int) and schema_id > _MOST_ID:
        return None
    try:
        return _schema_of(http, schema_id)
    except (ResponseTooLarge, _SchemaAmiss) as error:
        return str(error)


class _SchemaAmiss(Exception):
    """Something is wrong with one schema, and nothing with its registry; the text says what."""


def _schema_of(http: Asks, schema_id: SchemaId) -> SchemaText | str | None:
    answer = http.get(_path_of(schema_id))
    if isinstance(schema_id, UUID) and answer.status == _NOT_FOUND and _code_of(answer) != _NO_SCHEMA:
        return "this registry finds no schemas by GUID; have serializers write ids"
    body = _found(answer, _NO_SCHEMA)
    if body is None:
        return None
    language = _LANGUAGES.get(str(body.get("schemaType", "AVRO")))
    text = body.get("schema")
    if not isinstance(text, str):
        raise _no_response(answer)
    if language is None:
        return "it is in no language that is known here"
    references: dict[tuple[str, int], Reference] = {}
    _collect(http, body, references, set())
    return SchemaText(language, text, tuple(references.values()))


def is_under(http: Asks, schema_id: SchemaId, subject: str) -> bool:
    """Whether a schema is registered under a subject, and not deleted there. Raises RegistryFailed."""
    if isinstance(schema_id, int):
        answer = http.get(f"/schemas/ids/{schema_id}/versions")
        versions = _listed(answer)
        return any(isinstance(version, dict) and version.get("subject") == subject for version in versions)
    body = _found(http.get(_path_of(schema_id)), _NO_SCHEMA)
    if body is None:
        return False
    asked = {key: body[key] for key in ("schema", "schemaType", "references") if key in body}
    answer = http.post(f"/subjects/{_quoted(subject)}", asked)
    return _found(answer, _NO_SUBJECT, _NO_SCHEMA) is not None


def _collect(
    http: Asks, body: Mapping[str, Any], found: dict[tuple[str, int], Reference], asked: set[tuple[str, int]]
) -> None:
    """All that a schema names, each after what it names itself."""
    named = body.get("references") or ()
    if not isinstance(named, list | tuple):
        raise _SchemaAmiss("what it says of references cannot be read")
    for reference in named:
        try:
            name, subject, version = str(reference["name"]), str(reference["subject"]), int(reference["version"])
        except (KeyError, TypeError, ValueError, OverflowError):
            raise _SchemaAmiss("what it says of references cannot be read") from None
        if (subject, version) in asked:
            continue
        asked.add((subject, version))
        if len(asked) > _MOST_REFERENCES:
            raise _SchemaAmiss(f"it names more than {_MOST_REFERENCES} others")
        inner = _found(http.get(f"/subjects/{_quoted(subject)}/versions/{version}"), _NO_SUBJECT, _NO_VERSION)
        if inner is None or not isinstance(inner.get("schema"), str):
            raise _SchemaAmiss(f"it names version {version} of {subject[:100]!r}, which the registry does not have")
        _collect(http, inner, found, asked)
        found[subject, version] = Reference(name, inner["schema"])


def _path_of(schema_id: SchemaId) -> str:
    return f"/schemas/ids/{schema_id}" if isinstance(schema_id, int) else f"/schemas/guids/{schema_id}"


def _quoted(subject: str) -> str:
    return quote(subject, safe="", errors="replace")


def _found(answer: Answer, *absent: int) -> Mapping[str, Any] | None:
    """The body; None where the registry says that it has no such thing."""
    if answer.status == 200 and isinstance(answer.body, dict):
        return answer.body
    if answer.status == _NOT_FOUND and _code_of(answer) in absent:
        return None
    raise _no_response(answer)


def _no_response(answer: Answer) -> RegistryFailed:
    return RegistryFailed(
        f"it answers what is no registry's answer (HTTP {answer.status}); is the URL its Confluent API's?"
    )


def _code_of(answer: Answer) -> object:
    return answer.body.get("error_code") if isinstance(answer.body, dict) else None


def _listed(answer: Answer) -> list[Any]:
    if answer.status == 200 and isinstance(answer.body, list):
        return answer.body
    _found(answer, _NO_SCHEMA)  # which complains of anything but a registry's own no
    return []
