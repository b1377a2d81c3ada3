"""Checks that a value of Avro or Protobuf, converted to JSON, follows a JSON Schema (`schema.json_schema`).

The value is written as JSON and then validated like JSON data, so the verdict is the same as for a record in JSON.
"""

from sluicegate.validation.rules.cel.variables import NotOfSchema
from sluicegate.validation.rules.rule import RuledRecord, StepBudget
from sluicegate.validation.rules.schemas.content import Content
from sluicegate.validation.rules.schemas.json_form import JsonForm, NoJsonForm


class FollowsAsJson:
    """Requires that values in a `form` follow a JSON Schema (`ExpressionOfSchema`).

    Values that do not follow their own schema pass, because the rule about that schema reports them.
    """

    def __init__(self, json_schema: Content, form: JsonForm) -> None:
        self._schema = json_schema
        self._form = form

    def fault(self, record: RuledRecord) -> str | None:
        """Return the fault of a value, or None."""
        try:
            fault = self._schema.fault(self._form.text(record.value or b"", record.budget), record.budget)
        except NotOfSchema:
            return None
        except NoJsonForm as error:
            return f"the data has no JSON form: {error}"
        return None if fault is None else f"the data, as JSON, {fault}"

    def description(self, record: RuledRecord) -> str | None:
        """Return the first error's path and keyword."""
        try:
            explained = self._schema.description(self._form.text(record.value or b"", record.budget), record.budget)
        except (NotOfSchema, NoJsonForm):
            return None
        return None if explained is None else f"the data, as JSON, {explained}"


class UnchangedJsonForm:
    """The form of JSON data, which changes nothing (`JsonForm`)."""

    def text(self, data: bytes, _budget: StepBudget) -> bytes:
        """Return the data unchanged."""
        return data
