"""The check that a value of Avro or Protobuf, as JSON, follows a JSON Schema (`schema.json_schema`).

The JSON is written and then validated as JSON data are, so the verdict is that on a record in JSON.
"""

from typing import Final

from sluicegate.validation.rules.cel.variables import NotOfSchema
from sluicegate.validation.rules.rule import INLINE_STEPS, UNBOUNDED, RuledRecord
from sluicegate.validation.rules.schemas.content import Content
from sluicegate.validation.rules.schemas.json_form import JsonForm, NoJsonForm

_NOTHING: Final = (b"", b"")


class FollowsAsJson:
    """Values in a `form` follow a JSON Schema (`ExpressionOfSchema`). Values that do not follow their own schema pass:
    the rule about that schema reports them.
    """

    def __init__(self, json_schema: Content, form: JsonForm) -> None:
        self._schema = json_schema
        self._form = form
        # The last value and its JSON, because counting, validating and explaining are three calls.
        self._last: tuple[bytes, bytes] = _NOTHING

    def cost(self, record: RuledRecord) -> int:
        """Return the steps of the JSON and its validation; the JSON is written if that takes few steps."""
        data = record.value or b""
        steps = self._form.cost(data)
        if steps > INLINE_STEPS:
            return UNBOUNDED
        try:
            return min(UNBOUNDED, steps + self._schema.cost(self._written(data)))
        except (NotOfSchema, NoJsonForm):
            return steps

    def fault(self, record: RuledRecord) -> str | None:
        """Return the fault of a value, or None."""
        try:
            fault = self._schema.fault(self._written(record.value or b""))
        except NotOfSchema:
            return None
        except NoJsonForm as error:
            return f"the data has no JSON form: it is {error}"
        return None if fault is None else f"the data, as JSON, {fault}"

    def description(self, record: RuledRecord) -> str | None:
        """Return the first error's path and keyword."""
        try:
            explained = self._schema.description(self._written(record.value or b""))
        except (NotOfSchema, NoJsonForm):
            return None
        return None if explained is None else f"the data, as JSON, {explained}"

    def _written(self, data: bytes) -> bytes:
        before, text = self._last
        if before != data or not text:
            text = self._form.text(data)
            self._last = (data, text)
        return text


class UnchangedJsonForm:
    """JSON data are their own form (`JsonForm`)."""

    def cost(self, _data: bytes) -> int:
        """Return 0: nothing is written."""
        return 0

    def text(self, data: bytes) -> bytes:
        """Return the data."""
        return data
