"""Checks that a CEL expression (Common Expression Language) is true for a record.

Its variables are `key` (a string, or bytes if it is not UTF-8), `value` (parsed JSON, after a schema id if there is
one; bytes if it is not JSON), `headers` (the last value of each name, as a string or bytes), `timestamp` (int64 ms),
`topic`, `partition` and `client` (`id`, `software`, `version`, `principal`, `address`).

Expressions are checked when the configuration is read: syntax, names, functions and types. Evaluation errors are faults
of the record: if data are missing or have an unusable type, the expression counts as not true.
"""

from functools import partial
from typing import Any, Final

from sluicegate.validation.rules.cel.error_text import readable_error
from sluicegate.validation.rules.cel.runtime import ExpressionUnusable, ValueReader, compiled, name_of, runtime
from sluicegate.validation.rules.cel.steps import ExpressionSteps
from sluicegate.validation.rules.cel.tree import keys_of
from sluicegate.validation.rules.cel.variables import (
    NotOfSchema,
    ValueUnreadable,
    client_of,
    headers_of,
    text_of,
    time_of,
    value_of,
)
from sluicegate.validation.rules.rule import INLINE_STEPS, Client, Outage, Part, RuledRecord
from sluicegate.validation.rules.schemas.conditions import Clock
from sluicegate.validation.rules.simple_rule import SimpleRule

_MOST_SHOWN = 200
_NEEDS: Final = {"key": Part.KEY, "value": Part.VALUE, "message": Part.VALUE, "headers": Part.HEADERS}


class IsTrue(SimpleRule):
    """A rule that requires `expression` to be true. It is not true if data are missing or have an unusable type."""

    is_slow = True

    def __init__(self, expression: str, values: ValueReader | None = None) -> None:
        """Compile the expression.

        `values` reads the value; None means that the value is JSON. Raises ExpressionUnusable.
        """
        found = compiled(expression) if values is None else values.compiled(expression)
        self._evaluate = found.program.eval
        self._is_always_bool = found.is_always_bool
        self._names = found.names
        self._steps = ExpressionSteps(found, values)
        self._plan()
        loads = runtime().loads
        self._reads_json = values is None
        self._value_of = partial(value_of, loads=loads) if values is None else values.read
        self._shown = shortened_expression(expression)
        self.parts = Part.NONE
        keys = keys_of(found.tree, "headers")
        self.header_names = None if keys is None else frozenset(key.encode(errors="replace") for key in keys)
        for name in self._names:
            self.parts |= _NEEDS.get(name, Part.NONE)

    def _plan(self) -> None:
        """Evaluate once, because the runtime does its planning in the first evaluation. Raises ExpressionUnusable."""
        nothing = RuledRecord("", 0, 0, 0, None, None, (), Client(""))
        if self._steps.steps_for(nothing) > INLINE_STEPS:
            return
        try:
            self._evaluate(data={})
        except Exception as error:
            raise ExpressionUnusable(str(error)[:_MOST_SHOWN]) from error

    def fault(self, record: RuledRecord) -> str | None:
        """Return a record's fault, or None. Raises Outage if memory is too low even for a cheap evaluation."""
        steps = self._steps.steps_for(record)
        record.budget.spend(steps)
        try:
            result = self._evaluate(data=self._seen(record))
        except NotOfSchema:
            return None
        except ValueUnreadable as unreadable:
            return f"the value is {unreadable}, which no expression can read: {self._shown}"
        except MemoryError:
            if steps <= INLINE_STEPS:
                raise Outage("there is not enough memory to evaluate an expression") from None
            return f"too costly to validate: evaluation needs too much memory: {self._shown}"
        except Exception as error:
            return f"{readable_error(str(error), self._shown)}{self._hint(record)}: {self._shown}"
        if not self._is_always_bool:
            kind = name_of(result.type())
            if kind not in ("bool", "error"):
                return self._fault_of(kind, result.value())
        said = result.value()
        if said is True:
            return None
        if said is False:
            return f"not true of the record: {self._shown}"
        return f"{readable_error(str(said), self._shown)}{self._hint(record)}: {self._shown}"

    def _hint(self, record: RuledRecord) -> str:
        """Return a hint that the value is not JSON, if the expression reads the value as JSON."""
        if not self._reads_json or "value" not in self._names or record.value is None:
            return ""
        return "; the value is not JSON" if isinstance(self._value_of(record.value), bytearray) else ""

    def _fault_of(self, kind: str, _value: Any) -> str | None:
        """Return the fault if the expression's result is not a boolean. `kind` is the type of the result."""
        return f"the expression returns {kind} instead of true or false of the record: {self._shown}"

    def _seen(self, record: RuledRecord) -> dict[str, Any]:
        """Return the variables that the expression uses."""
        return {name: self._variable(name, record) for name in self._names}

    def _variable(self, name: str, record: RuledRecord) -> Any:
        if name in ("value", "message"):
            return None if record.value is None else self._value_of(record.value)
        if name == "key":
            return text_of(record.key)
        if name == "headers":
            return headers_of(record.headers)
        if name == "client":
            return client_of(record.client)
        return getattr(record, name)


class MeetsCondition(IsTrue):
    """A registry's condition. `now` is the clock for the variable of that name.

    Like Confluent's Python client, it treats an empty value, 0 and null as false, and other values as true.
    """

    def __init__(self, expression: str, values: ValueReader, now: Clock) -> None:
        """Compile the expression. Raises ExpressionUnusable."""
        self._now = now
        super().__init__(expression, values)

    def _fault_of(self, _kind: str, value: Any) -> str | None:
        return None if value else f"not true of the record: {self._shown}"

    def _variable(self, name: str, record: RuledRecord) -> Any:
        return time_of(self._now) if name == "now" else super()._variable(name, record)


def shortened_expression(expression: str) -> str:
    """Return an expression for messages, truncated if it is long."""
    return expression if len(expression) <= _MOST_SHOWN else expression[:_MOST_SHOWN] + " …"


def replace_value(record: RuledRecord, value: bytes | None) -> RuledRecord:
    """Return a copy of a record with another value."""
    place = record.topic, record.partition, record.index, record.timestamp
    copy = RuledRecord(*place, record.key, value, record.headers, record.client, record.producer_id)
    copy.budget = record.budget
    return copy
