"""Sends requests to a registry with Confluent's API and parses the responses."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol
from urllib.parse import quote
from uuid import UUID

from sluicegate.proxy.registry.http import JsonResponse, RegistryFailed, ResponseTooLarge, TextResponse
from sluicegate.proxy.registry.met_subjects import SubjectMatcher
from sluicegate.validation.rules.protobuf.message_names import MessageNaming
from sluicegate.validation.rules.schemas.content import SchemaLanguage
from sluicegate.validation.rules.schemas.rule_sets import NO_RULES, WriteRules, write_rules_in
from sluicegate.validation.rules.schemas.wire_format import SchemaId

_NOT_FOUND = 404
# The codes in the body of a registry's 404 response. A response with another code, or without a code, does not come
# from a registry.
_NO_SUBJECT, _NO_VERSION, _NO_SCHEMA = 40401, 40402, 40403
_MOST_REFERENCES = 100
# A registry's ids are 32-bit integers (Java's int). It treats a larger id as an unknown path.
_MOST_ID = (1 << 31) - 1
# A qualified subject has the form :.CONTEXT:NAME.
_CONTEXT: Final = re.compile(r"^:\.[^:]*:")
_LANGUAGES: Final = {language.value: language for language in SchemaLanguage}


@dataclass(frozen=True, slots=True)
class Reference:
    """A schema that another schema references by `name`."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class SchemaText:
    """A schema with its references and the registry's rules.

    References are in dependency order: each one comes after those that it uses itself. `naming` describes how
    serializers name a message of a Protobuf schema.
    """

    language: SchemaLanguage
    text: str
    references: tuple[Reference, ...]
    rules: WriteRules = NO_RULES
    naming: MessageNaming = MessageNaming.CONFLUENT

    @property
    def size(self) -> int:
        """The number of characters in the schema and its references."""
        return len(self.text) + sum(len(each.name) + len(each.text) for each in self.references)


@dataclass(frozen=True, slots=True)
class NewestSchema:
    """A subject's newest schema. `text` is the schema, or a string that explains why it cannot be used."""

    version: int
    schema_id: int | UUID
    text: SchemaText | str


class RegistryClient(Protocol):
    """An HTTP client for one registry."""

    def begin(self) -> None:
        """Start a lookup. All requests until the next `begin` share its limits."""

    def close(self) -> None:
        """Close the connection. The next request opens another one."""

    def get(self, path: str) -> JsonResponse:
        """Send a GET request. Raises RegistryFailed."""

    def get_text(self, path: str) -> TextResponse:
        """Send a GET request for text that may not be JSON. Raises RegistryFailed."""

    def post(self, path: str, body: Any, headers: Mapping[str, str] = ...) -> JsonResponse:
        """Send a POST request. `headers` default to those of Confluent's API. Raises RegistryFailed."""


class SchemaApi(Protocol):
    """The requests for one kind of registry."""

    def fetch_schema(self, http: RegistryClient, schema_id: SchemaId) -> SchemaText | str | None:
        """Return a schema with its references, or None if there is none.

        If the schema cannot be used, return the reason as a string. Raises RegistryFailed.
        """

    def is_registered_under(self, http: RegistryClient, schema_id: SchemaId, subject: str) -> bool:
        """Return whether a schema is registered under a subject and not deleted there. Raises RegistryFailed."""

    def subjects(self, http: RegistryClient) -> list[str]:
        """Return the names of all subjects, without their context. Raises RegistryFailed."""

    def is_met(self, subject: str, met: SubjectMatcher) -> bool:
        """Return whether a rule can apply to records of a subject that `subjects` returned."""

    def newest(self, http: RegistryClient, subject: str) -> NewestSchema | None:
        """Return a subject's newest schema, or None if it no longer has one. Raises RegistryFailed."""


class _BadSchema(Exception):
    """The schema is wrong, but the registry works. The message gives the reason."""


def without_context(subject: str) -> str:
    """Return a subject's name without its context."""
    return _CONTEXT.sub("", subject, count=1)


class ConfluentApi:
    """Requests to a registry with Confluent's API.

    `context` is the context of ids and subjects, such as `.staging`. If it is empty, the registry looks for an id in
    its default context and then in all others, and subjects of every context count. `naming` describes how serializers
    name a message.
    """

    def __init__(self, context: str = "", naming: MessageNaming = MessageNaming.CONFLUENT) -> None:
        self._context = context
        self._naming = naming
        self._prefix = f":{context}:" if context else ""
        self._query = f"?subject={_quoted(self._prefix)}" if context else ""

    def fetch_schema(self, http: RegistryClient, schema_id: SchemaId) -> SchemaText | str | None:
        """Return a schema with its references, or None if there is none.

        If the schema cannot be used, return the reason as a string. Raises RegistryFailed.
        """
        if isinstance(schema_id, int) and schema_id > _MOST_ID:
            return None
        try:
            return self._schema_of(http, schema_id)
        except (ResponseTooLarge, _BadSchema) as error:
            return str(error)

    def is_registered_under(self, http: RegistryClient, schema_id: SchemaId, subject: str) -> bool:
        """Return whether a schema is registered under a subject and not deleted there. Raises RegistryFailed."""
        if isinstance(schema_id, int):
            versions = _listed(http.get(f"/schemas/ids/{schema_id}/versions{self._query}"))
            return any(isinstance(each, dict) and self._is_named(each.get("subject"), subject) for each in versions)
        body = _found(http.get(self._path_of(schema_id)), _NO_SCHEMA)
        if body is None:
            return False
        schema = {key: body[key] for key in ("schema", "schemaType", "references") if key in body}
        response = http.post(f"/subjects/{_quoted(self._qualified(subject))}", schema)
        return _found(response, _NO_SUBJECT, _NO_SCHEMA) is not None

    def subjects(self, http: RegistryClient) -> list[str]:
        """Return the names of the subjects in this context, in the form that `newest` expects.

        Raises RegistryFailed.
        """
        listed = _listed(http.get("/subjects"))
        return [each for each in listed if isinstance(each, str) and self._is_in_context(each)]

    def is_met(self, subject: str, met: SubjectMatcher) -> bool:
        """Return whether a rule can apply to records of a subject that `subjects` returned."""
        return met(without_context(subject))

    def newest(self, http: RegistryClient, subject: str) -> NewestSchema | None:
        """Return a subject's newest schema, or None if it no longer has one. Raises RegistryFailed."""
        response = http.get(f"/subjects/{_quoted(self._qualified(subject))}/versions/latest")
        body = _found(response, _NO_SUBJECT, _NO_VERSION)
        if body is None:
            return None
        version, schema_id = body.get("version"), body.get("id")
        if not isinstance(version, int) or not isinstance(schema_id, int):
            raise _not_a_registry(response)
        try:
            text = self._text_of(http, response, body)
        except _BadSchema as error:
            text = str(error)
        return NewestSchema(version, schema_id, text)

    def _schema_of(self, http: RegistryClient, schema_id: SchemaId) -> SchemaText | str | None:
        response = http.get(self._path_of(schema_id))
        if isinstance(schema_id, UUID) and response.status == _NOT_FOUND and _code_of(response) != _NO_SCHEMA:
            return "this registry does not find schemas by GUID; configure serializers to write ids"
        body = _found(response, _NO_SCHEMA)
        if body is None:
            return None
        return self._text_of(http, response, body)

    def _text_of(self, http: RegistryClient, response: JsonResponse, body: Mapping[str, Any]) -> SchemaText | str:
        language = _LANGUAGES.get(str(body.get("schemaType", "AVRO")))
        text = body.get("schema")
        if not isinstance(text, str):
            raise _not_a_registry(response)
        if language is None:
            return "the schema language is unknown"
        references: dict[tuple[str, int], Reference] = {}
        self._collect(http, body, references, set())
        try:
            rules = write_rules_in(body.get("ruleSet"), body.get("metadata"))
        except ValueError as error:
            raise _BadSchema(str(error)) from None
        return SchemaText(language, text, tuple(references.values()), rules, self._naming)

    def _collect(
        self,
        http: RegistryClient,
        body: Mapping[str, Any],
        found: dict[tuple[str, int], Reference],
        asked: set[tuple[str, int]],
    ) -> None:
        """Add all of a schema's references to `found`, each one after its own references."""
        references = body.get("references") or ()
        if not isinstance(references, list | tuple):
            raise _BadSchema("the references cannot be read")
        for reference in references:
            try:
                name, subject, version = str(reference["name"]), str(reference["subject"]), int(reference["version"])
            except (KeyError, TypeError, ValueError, OverflowError):
                raise _BadSchema("the references cannot be read") from None
            if (subject, version) in asked:
                continue
            asked.add((subject, version))
            if len(asked) > _MOST_REFERENCES:
                raise _BadSchema(f"the schema has more than {_MOST_REFERENCES} references")
            path = f"/subjects/{_quoted(self._qualified(subject))}/versions/{version}"
            inner = _found(http.get(path), _NO_SUBJECT, _NO_VERSION)
            if inner is None or not isinstance(inner.get("schema"), str):
                raise _BadSchema(
                    f"the schema references version {version} of {subject[:100]!r}, which the registry does not have"
                )
            self._collect(http, inner, found, asked)
            found[subject, version] = Reference(name, inner["schema"])

    def _path_of(self, schema_id: SchemaId) -> str:
        if isinstance(schema_id, int):
            return f"/schemas/ids/{schema_id}{self._query}"
        return f"/schemas/guids/{schema_id}"

    def _qualified(self, subject: str) -> str:
        """Return a subject with its context. A subject that already has a context is returned unchanged."""
        return subject if _CONTEXT.match(subject) else f"{self._prefix}{subject}"

    def _is_in_context(self, subject: str) -> bool:
        return not self._context or subject.startswith(self._prefix)

    def _is_named(self, found: object, subject: str) -> bool:
        """Return whether a subject that the registry lists is `subject`."""
        if not isinstance(found, str):
            return False
        if found == self._qualified(subject):
            return True
        # A registry whose URL ends with /contexts/NAME may include or omit the context.
        return not self._context and without_context(found) == subject


def _quoted(subject: str) -> str:
    return quote(subject, safe="", errors="replace")


def _found(response: JsonResponse, *absent: int) -> Mapping[str, Any] | None:
    """Return the body, or None if a code in `absent` reports that the object does not exist."""
    if response.status == 200 and isinstance(response.body, dict):
        return response.body
    if response.status == _NOT_FOUND and _code_of(response) in absent:
        return None
    raise _not_a_registry(response)


def _not_a_registry(response: JsonResponse) -> RegistryFailed:
    return RegistryFailed(
        f"the response is not from a schema registry (HTTP {response.status}): set url to the registry's Confluent API"
    )


def _code_of(response: JsonResponse) -> object:
    return response.body.get("error_code") if isinstance(response.body, dict) else None


def _listed(response: JsonResponse) -> list[Any]:
    if response.status == 200 and isinstance(response.body, list):
        return response.body
    _found(response, _NO_SCHEMA)  # raises an error unless the 404 comes from a registry
    return []
