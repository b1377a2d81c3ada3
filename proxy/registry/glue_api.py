"""Sends requests to AWS Glue Schema Registry (AWS JSON 1.1) and parses the responses."""

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from sluicegate.proxy.registry.confluent_api import NewestSchema, RegistryClient, SchemaText
from sluicegate.proxy.registry.http import RegistryFailed, ResponseTooLarge
from sluicegate.proxy.registry.met_subjects import SubjectMatcher
from sluicegate.validation.rules.protobuf.message_names import MessageNaming
from sluicegate.validation.rules.schemas.content import SchemaLanguage
from sluicegate.validation.rules.schemas.wire_format import SchemaId

_MOST_SUBJECTS = 10_000
_PAGE = 100
_LANGUAGES: Final = {language.value: language for language in SchemaLanguage}
_ABSENT = "EntityNotFoundException"
# The codes of AWS's common errors and of Glue's errors that messages may quote.
_CODES: Final = frozenset(
    {
        "AccessDeniedException",
        "ExpiredTokenException",
        "IncompleteSignature",
        "InternalServiceException",
        "InvalidInputException",
        "InvalidSignatureException",
        "MissingAuthenticationTokenException",
        "ThrottlingException",
        "UnrecognizedClientException",
    }
)


class GlueApi:
    """Requests to AWS Glue Schema Registry.

    Ids are the UUIDs of schema versions. A topic's schema has the same name as the topic, as AWS's serializers name it.
    Subjects are `REGISTRY/NAME`. `registry` is the only registry whose schemas count. If it is empty, all registries
    count.
    """

    def __init__(self, registry: str = "") -> None:
        self._registry = registry

    def fetch_schema(self, http: RegistryClient, schema_id: SchemaId) -> SchemaText | str | None:
        """Return a schema, or None if there is none.

        If the schema cannot be used, return the reason as a string. Raises RegistryFailed.
        """
        try:
            body = _version(http, schema_id)
        except ResponseTooLarge as error:
            return str(error)
        return None if body is None else _text_in(body)

    def is_registered_under(self, http: RegistryClient, schema_id: SchemaId, subject: str) -> bool:
        """Return whether a schema's name equals the subject or the subject's topic. Raises RegistryFailed."""
        body = _version(http, schema_id)
        if body is None:
            return False
        registry, _, name = _subject_in(body).rpartition("/")
        return self._registry in ("", registry) and subject in _subjects_of(name)

    def subjects(self, http: RegistryClient) -> list[str]:
        """Return the registry and the name of each schema, at most 10,000. Raises RegistryFailed."""
        asked: dict[str, Any] = {"MaxResults": _PAGE}
        if self._registry:
            asked["RegistryId"] = {"RegistryName": self._registry}
        found: list[str] = []
        while len(found) < _MOST_SUBJECTS:
            body = _called(http, "ListSchemas", asked) or {}
            schemas = body.get("Schemas")
            if not isinstance(schemas, list):
                raise _not_glue()
            found += [_subject_in(each) for each in schemas if isinstance(each, dict)]
            token = body.get("NextToken")
            if not token or not schemas:
                break
            asked["NextToken"] = token
        return found

    def is_met(self, subject: str, met: SubjectMatcher) -> bool:
        """Return whether a rule can apply to records of a subject that `subjects` returned."""
        return any(map(met, _subjects_of(subject.rpartition("/")[2])))

    def newest(self, http: RegistryClient, subject: str) -> NewestSchema | None:
        """Return a schema's newest version, or None if it no longer has one. Raises RegistryFailed."""
        registry, _, name = subject.rpartition("/")
        schema = {"RegistryName": registry, "SchemaName": name}
        body = _called(http, "GetSchemaVersion", {"SchemaId": schema, "SchemaVersionNumber": {"LatestVersion": True}})
        if body is None:
            return None
        try:
            return NewestSchema(int(body["VersionNumber"]), UUID(body["SchemaVersionId"]), _text_in(body))
        except (AttributeError, KeyError, TypeError, ValueError):
            raise _not_glue() from None


def _version(http: RegistryClient, schema_id: SchemaId) -> Mapping[str, Any] | None:
    if not isinstance(schema_id, UUID):
        return None
    return _called(http, "GetSchemaVersion", {"SchemaVersionId": str(schema_id)})


def _text_in(body: Mapping[str, Any]) -> SchemaText | str:
    if body.get("Status") != "AVAILABLE":
        return "the version is not available in Glue"
    language, text = _LANGUAGES.get(str(body.get("DataFormat"))), body.get("SchemaDefinition")
    if language is None:
        return "the schema language is unknown"
    if not isinstance(text, str):
        raise _not_glue()
    return SchemaText(language, text, (), naming=MessageNaming.GLUE)


def _subject_in(body: Mapping[str, Any]) -> str:
    """Return REGISTRY/NAME from an ARN such as arn:aws:glue:REGION:ACCOUNT:schema/REGISTRY/NAME."""
    _, _, subject = str(body.get("SchemaArn")).partition(":schema/")
    if subject.count("/") != 1:
        raise _not_glue()
    return subject


def _subjects_of(name: str) -> tuple[str, str, str]:
    """Return the subjects that use a schema with this name."""
    return name, f"{name}-key", f"{name}-value"


def _called(http: RegistryClient, action: str, body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the response to an action, or None if there is no such schema. Raises RegistryFailed."""
    headers = {"Content-Type": "application/x-amz-json-1.1", "X-Amz-Target": f"AWSGlue.{action}"}
    response = http.post("/", body, headers)
    found = response.body if isinstance(response.body, dict) else {}
    if response.status == 200 and isinstance(response.body, dict):
        return found
    code = str(found.get("__type")).rpartition("#")[2]
    if code == _ABSENT:
        return None
    if code not in _CODES:
        raise _not_glue()
    raise RegistryFailed(
        f"AWS rejects glue:{action} ({code}, HTTP {response.status}): check region, the AWS credentials and their "
        "permissions"
    )


def _not_glue() -> RegistryFailed:
    return RegistryFailed("the response is not from AWS Glue: check region and url")
