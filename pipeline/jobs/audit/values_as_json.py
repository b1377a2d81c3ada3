"""Converts stored Avro and Protobuf values to JSON, with the functions that rules with a `json_schema` use."""

import time
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame

from sluicegate.pipeline.jobs.audit.partition_validator import PAUSE_SECONDS, TIMEOUT_SECONDS, CannotBeValidated
from sluicegate.pipeline.jobs.audit.policies import Policies
from sluicegate.pipeline.source.tasks import begin_task
from sluicegate.validation.rules.cel.variables import NotOfSchema
from sluicegate.validation.rules.rule import Client, Outage, RuledRecord, SchemaError, StepBudget
from sluicegate.validation.rules.schemas.content import Content, HasEncryptedFields, HasJsonForm
from sluicegate.validation.rules.schemas.json_form import JsonForm, NoJsonForm
from sluicegate.validation.rules.schemas.registered_schema import HasRegisteredSchema

_DDL: Final = "value binary, timestamp bigint, encrypted array<string>"
_NOTHING: Final = b""
_MOST_FORMS: Final = 100


def as_json(records: DataFrame, topic: str, policies: Policies, registry: str) -> DataFrame:
    """Return the columns `value` as JSON, `timestamp`, and `encrypted`, the names of encrypted fields.

    A value that cannot be read becomes empty. A value that is encrypted as a whole becomes null. `records` contains the
    columns `value`, which is not null, `timestamp` and `headers_binary`. `registry` contains the schemas. If the
    registry does not respond for 30 s, a task raises CannotBeValidated.
    """
    return records.mapInArrow(partial(_written, topic, policies, registry), _DDL)


def _written(
    topic: str, policies: Policies, registry: str, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    begin_task()
    values = _Values(topic, policies.schema_of_records(registry))
    for batch in batches:
        columns = (batch.column(name).to_pylist() for name in ("value", "headers_binary"))
        texts = [values.text(value, headers) for value, headers in zip(*columns, strict=True)]
        read = [pa.array([text for text, _ in texts], pa.binary()), batch.column("timestamp")]
        encrypted = pa.array([names for _, names in texts], pa.list_(pa.string()))
        yield pa.RecordBatch.from_arrays([*read, encrypted], ["value", "timestamp", "encrypted"])


class _Values:
    """Converts the values of one topic to JSON."""

    def __init__(self, topic: str, schemas: HasRegisteredSchema) -> None:
        self._topic = topic
        self._schemas = schemas
        self._client = Client("")
        self._forms: dict[Content, tuple[JsonForm | None, list[str]]] = {}

    def text(self, value: bytes, headers: list[dict[str, bytes]] | None) -> tuple[bytes | None, list[str]]:
        """Return a value as JSON, and the names of its encrypted fields.

        The JSON is empty if the value cannot be read, which the rule about its schema reports, and None if the value is
        encrypted as a whole.
        """
        of_record = tuple((each["key"], each["value"]) for each in headers or ())
        record = RuledRecord(self._topic, 0, 0, 0, None, value, of_record, self._client)
        try:
            found = self._content(record)
            if found is None:
                return None if self._schemas.is_encrypted(record) else _NOTHING, []
            form, encrypted = self._form_of(found[0])
            return _NOTHING if form is None else form.text(found[1], StepBudget()), encrypted
        except (NotOfSchema, NoJsonForm, SchemaError):
            return _NOTHING, []

    def _content(self, record: RuledRecord) -> tuple[Content, bytes, str] | None:
        given_up = time.monotonic() + TIMEOUT_SECONDS
        while True:
            try:
                return self._schemas.content(record)
            except Outage as error:
                if time.monotonic() > given_up:
                    raise CannotBeValidated(f"{self._topic}: {error}. Fix this and start again") from error
                time.sleep(PAUSE_SECONDS)  # a registry does not announce its recovery

    def _form_of(self, content: Content) -> tuple[JsonForm | None, list[str]]:
        if content not in self._forms:
            if len(self._forms) >= _MOST_FORMS:
                self._forms.clear()
            form = content.json_form() if isinstance(content, HasJsonForm) else None
            names = sorted(content.encrypted_names) if isinstance(content, HasEncryptedFields) else []
            self._forms[content] = form, names
        return self._forms[content]
