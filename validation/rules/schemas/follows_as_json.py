"""Checks that an Avro or Protobuf value, converted to JSON, is valid against a JSON Schema (`schema.json_schema`).

The value is converted and then validated like JSON data, so the verdict is the same as for a record in JSON.
"""

from sluicegate.validation.rules.cel.variables import NotOfSchema
from sluicegate.validation.rules.rule import RuledRecord, StepBudget
from sluicegate.validation.rules.schemas.content import Content
from sluicegate.validation.rules.schemas.json_form import JsonForm, NoJsonForm


class FollowsAsJson:
    """A requirement that values, converted by `form`, are valid against a JSON Schema (`ExpressionOfSchema`).

    Values that do not match their own schema pass, because the rule for that schema reports them.
    """

    def __init__(self, json_schema: Content, form: JsonForm) -> None:
        self._schema = json_schema
        self._form = form

    def fault(self, record: RuledRecord) -> str | None:
        """Return a value's fault, or None."""
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
    """The conversion of JSON data to JSON, which changes nothing (`JsonForm`)."""

    def text(self, data: bytes, _budget: StepBudget) -> bytes:
        """Return the data unchanged."""
        return data
