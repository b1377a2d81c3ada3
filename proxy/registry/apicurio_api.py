"""Sends requests to Apicurio Registry's native API (version 2) and parses the responses."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from sluicegate.proxy.registry.confluent_api import NewestSchema, Reference, RegistryClient, SchemaText
from sluicegate.proxy.registry.http import JsonResponse, RegistryFailed, ResponseTooLarge, TextResponse
from sluicegate.proxy.registry.met_subjects import SubjectMatcher
from sluicegate.validation.rules.protobuf.message_names import MessageNaming
from sluicegate.validation.rules.schemas.content import SchemaLanguage
from sluicegate.validation.rules.schemas.wire_format import ApicurioId, IdKind, SchemaId

_NOT_FOUND = 404
_MOST_REFERENCES = 100
# Ids are 64-bit integers (Java's long).
_MOST_ID = (1 << 63) - 1
_PAGE = 500
_MOST_SUBJECTS = 10_000
_LANGUAGES: Final = {
    "AVRO": SchemaLanguage.AVRO,
    "JSON": SchemaLanguage.JSON,
    "PROTOBUF": SchemaLanguage.PROTOBUF,
}


class _BadSchema(Exception):
    """The schema is wrong, but the registry works. The message gives the reason."""


class ApicurioApi:
    """The requests to Apicurio Registry.

    Subjects are artifact ids. The group of a record schema's artifact is the record's namespace.
    """

    def fetch_schema(self, http: RegistryClient, schema_id: SchemaId) -> SchemaText | str | None:
        """Return a schema with its references, or None if there is none.

        If the schema cannot be used, return the reason as a string. Raises RegistryFailed.
        """
        if not isinstance(schema_id, ApicurioId) or schema_id.number > _MOST_ID:
            return None
        artifacts = _artifacts(http, schema_id)
        if not artifacts:
            return None
        try:
            language = _language_of(artifacts[0])
            return _text_at(http, _path_of(schema_id), language)
        except (ResponseTooLarge, _BadSchema) as error:
            return str(error)

    def is_registered_under(self, http: RegistryClient, schema_id: SchemaId, subject: str) -> bool:
        """Return whether a schema belongs to an artifact with this name. Raises RegistryFailed."""
        if not isinstance(schema_id, ApicurioId) or schema_id.number > _MOST_ID:
            return False
        return any(subject in _names_of(artifact) for artifact in _artifacts(http, schema_id))

    def subjects(self, http: RegistryClient) -> list[str]:
        """Return the ids of the artifacts in the default group, at most 10,000. Raises RegistryFailed."""
        found: list[str] = []
        while len(found) < _MOST_SUBJECTS:
            listed = _listed(http.get(f"/groups/default/artifacts?limit={_PAGE}&offset={len(found)}"))
            found += [str(each.get("id")) for each in listed]
            if len(listed) < _PAGE:
                break
        return found

    def is_met(self, subject: str, met: SubjectMatcher) -> bool:
        """Return whether a rule can apply to records of a subject that `subjects` returned."""
        return met(subject)

    def newest(self, http: RegistryClient, subject: str) -> NewestSchema | None:
        """Return the newest schema of an artifact in the default group, or None if there is none.

        Raises RegistryFailed.
        """
        response = http.get(f"/groups/default/artifacts/{quote(subject, safe='', errors='replace')}/meta")
        if response.status == _NOT_FOUND:
            return None
        body = _object(response)
        try:
            number, version = int(body["globalId"]), int(body["version"])
        except (KeyError, TypeError, ValueError):
            raise _not_apicurio(response.status) from None
        try:
            text: SchemaText | str = _text_at(http, f"/ids/globalIds/{number}", _language_of(body))
        except _BadSchema as error:
            text = str(error)
        return NewestSchema(version, number, text)


def _path_of(schema_id: ApicurioId) -> str:
    kind = "globalIds" if schema_id.kind is IdKind.GLOBAL else "contentIds"
    return f"/ids/{kind}/{schema_id.number}"


def _artifacts(http: RegistryClient, schema_id: ApicurioId) -> list[Mapping[str, Any]]:
    """Return the artifacts that contain a schema."""
    return _listed(http.get(f"/search/artifacts?limit={_PAGE}&{schema_id.kind.value}={schema_id.number}"))


def _names_of(artifact: Mapping[str, Any]) -> set[str]:
    """Return the names under which a naming strategy finds an artifact: its id, and a record's namespace and name."""
    name = str(artifact.get("id"))
    return {name, f"{artifact.get('groupId', 'default')}.{name}"}


def _language_of(artifact: Mapping[str, Any]) -> SchemaLanguage:
    language = _LANGUAGES.get(str(artifact.get("type")))
    if language is None:
        raise _BadSchema("the schema language is unknown")
    return language


def _text_at(http: RegistryClient, path: str, language: SchemaLanguage) -> SchemaText:
    """Return the schema at `path` with its references."""
    references: dict[tuple[str, str, str], Reference] = {}
    _collect(http, path, references, set())
    text = _text_of(http.get_text(path))
    return SchemaText(language, text, tuple(references.values()), naming=MessageNaming.APICURIO)


def _collect(
    http: RegistryClient,
    path: str,
    found: dict[tuple[str, str, str], Reference],
    asked: set[tuple[str, str, str]],
) -> None:
    """Add all references of the schema at `path` to `found`, each after its own references."""
    response = http.get(f"{path}/references")
    if response.status != 200 or not isinstance(response.body, list):
        raise _not_apicurio(response.status)
    for reference in response.body:
        try:
            name, artifact, version = str(reference["name"]), str(reference["artifactId"]), str(reference["version"])
            group = str(reference.get("groupId") or "default")
        except (AttributeError, KeyError, TypeError):
            raise _BadSchema("the references cannot be read") from None
        key = group, artifact, version
        if key in asked:
            continue
        asked.add(key)
        if len(asked) > _MOST_REFERENCES:
            raise _BadSchema(f"the schema has more than {_MOST_REFERENCES} references")
        group, artifact, version = (quote(part, safe="", errors="replace") for part in key)
        inner = f"/groups/{group}/artifacts/{artifact}/versions/{version}"
        text = _text_of(http.get_text(inner))
        _collect(http, inner, found, asked)
        found[key] = Reference(name, text)


def _text_of(response: TextResponse) -> str:
    if response.status == _NOT_FOUND:
        raise _BadSchema("the schema, or a schema that it references, is no longer in the registry")
    if response.status != 200:
        raise _not_apicurio(response.status)
    if response.text is None:
        raise _BadSchema("the schema is not UTF-8")
    return response.text


def _listed(response: JsonResponse) -> list[Mapping[str, Any]]:
    listed = _object(response).get("artifacts")
    if not isinstance(listed, list):
        raise _not_apicurio(response.status)
    return [each for each in listed if isinstance(each, dict)]


def _object(response: JsonResponse) -> Mapping[str, Any]:
    if response.status != 200 or not isinstance(response.body, dict):
        raise _not_apicurio(response.status)
    return response.body


def _not_apicurio(status: int) -> RegistryFailed:
    return RegistryFailed(
        f"the response is not from Apicurio Registry (HTTP {status}): set url to the native API, which ends with "
        "/apis/registry/v2"
    )
