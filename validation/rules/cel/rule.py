"""Checks that a CEL expression (Common Expression Language) is true for a record.

Its variables are `key` (text, or bytes if it is not UTF-8), `value` (its JSON, also after a schema id; bytes if it is
not JSON), `headers` (the last value of each name, as text or bytes), `timestamp` (int64 ms), `topic`, `partition` and
`client` (`id`, `software`, `version`, `principal`, `address`).

An expression is checked when the configuration is read: syntax, names, functions and types. Errors during an evaluation
are faults of the record: if data are missing or have an unusable type, the expression is not true.
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
    value_of,
)
from sluicegate.validation.rules.rule import INLINE_STEPS, Client, Outage, Part, RuledRecord
from sluicegate.validation.rules.simple_rule import SimpleRule

_MOST_SHOWN = 200
_NEEDS: Final = {"key": Part.KEY, "value": Part.VALUE, "message": Part.VALUE, "headers": Part.HEADERS}


class IsTrue(SimpleRule):
    """Requires that `expression` is true. It is not true if data are missing or have an unusable type."""

    is_slow = True

    def __init__(self, expression: str, values: ValueReader | None = None) -> None:
        """Compile the expression.

        `values` reads the value; None means as JSON. Raises ExpressionUnusable.
        """
        found = compiled(expression) if values is None else values.compiled(expression)
        self._evaluate = found.program.eval
        self._is_always_bool = found.is_always_bool
        self._names = found.names
        self._steps = ExpressionSteps(found, values)
        self._plan()
        loads = runtime().loads
        self._value_of = partial(value_of, loads=loads) if values is None else values.read
        self._shown = shortened_expression(expression)
        self.parts = Part.NONE
        keys = keys_of(found.tree, "headers")
        self.header_names = None if keys is None else frozenset(key.encode(errors="replace") for key in keys)
        for name in self._names:
            self.parts |= _NEEDS.get(name, Part.NONE)

    def _plan(self) -> None:
        """Evaluate once, because the runtime plans during its first evaluation. Raises ExpressionUnusable."""
        nothing = RuledRecord("", 0, 0, 0, None, None, (), Client(""))
        if self._steps.steps_for(nothing) > INLINE_STEPS:
            return
        try:
            self._evaluate(data={})
        except Exception as error:
            raise ExpressionUnusable(str(error)[:_MOST_SHOWN]) from error

    def fault(self, record: RuledRecord) -> str | None:
        """Return the fault of a record, or None. Raises Outage if memory is too low even for a cheap evaluation."""
        steps = self._steps.steps_for(record)
        record.budget.spend(steps)
        try:
            result = self._evaluate(data=self._seen(record))
        except NotOfSchema:
            return None
        except ValueUnreadable as unreadable:
            return f"the value is {unreadable}, which no expression can look at: {self._shown}"
        except MemoryError:
            if steps <= INLINE_STEPS:
                raise Outage("there is no memory left to evaluate an expression") from None
            return f"too costly to validate: it takes too much memory to evaluate {self._shown}"
        except Exception as error:
            return f"{readable_error(str(error), self._shown)}: {self._shown}"
        if not self._is_always_bool:
            kind = name_of(result.type())
            if kind not in ("bool", "error"):
                return f"the expression gives {kind} instead of true or false of the record: {self._shown}"
        said = result.value()
        if said is True:
            return None
        words = "not true of the record" if said is False else readable_error(str(said), self._shown)
        return f"{words}: {self._shown}"

    def _seen(self, record: RuledRecord) -> dict[str, Any]:
        """Return the variables that the expression uses."""
        seen: dict[str, Any] = {}
        for name in self._names:
            if name in ("value", "message"):
                seen[name] = None if record.value is None else self._value_of(record.value)
            elif name == "key":
                seen[name] = text_of(record.key)
            elif name == "headers":
                seen[name] = headers_of(record.headers)
            elif name == "client":
                seen[name] = client_of(record.client)
            else:
                seen[name] = getattr(record, name)
        return seen


def shortened_expression(expression: str) -> str:
    """Return an expression for messages, cut if it is long."""
    return expression if len(expression) <= _MOST_SHOWN else expression[:_MOST_SHOWN] + " …"


def replace_value(record: RuledRecord, value: bytes | None) -> RuledRecord:
    """Return a copy of a record with another value."""
    place = record.topic, record.partition, record.index, record.timestamp
    copy = RuledRecord(*place, record.key, value, record.headers, record.client, record.producer_id)
    copy.budget = record.budget
    return copy
