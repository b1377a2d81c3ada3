"""Checks that a registry's condition of type CEL_FIELD is true for the fields of a value.

Confluent's serializers evaluate the condition for each value of a primitive type within a field (`CelFieldExecutor`).
In each schema language, the serializers visit different fields, so each language has its own walk (`FieldValues`). Two
things are the same in all of them:

- The items of arrays and the values of maps are visited, but only an error in one of them rejects the record. A result
  of `false` does not.
- A field is rejected if its value is `false` and the condition does not apply to it.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple, Protocol

from sluicegate.validation.rules.cel.cost import CostUnknown, nanoseconds
from sluicegate.validation.rules.cel.error_text import readable_error
from sluicegate.validation.rules.cel.rule import shortened_expression
from sluicegate.validation.rules.cel.runtime import CompiledExpression, name_of
from sluicegate.validation.rules.cel.steps import EVALUATION, STEP
from sluicegate.validation.rules.cel.variables import NotOfSchema, ValueUnreadable, complete_text, time_of
from sluicegate.validation.rules.rule import INLINE_STEPS, UNBOUNDED, Outage, RuledRecord, SchemaError
from sluicegate.validation.rules.schemas.conditions import Clock, SchemaCondition
from sluicegate.validation.rules.schemas.field_tags import FieldChange, FieldTags
from sluicegate.validation.rules.simple_rule import SimpleRule

_MOST_VISITED: Final = 100_000  # fields and items; visiting this many takes about 0.2 s without the expression
_MOST_PLACES: Final = 10_000
_VISIT: Final = 5_000  # ns


class SchemaField(NamedTuple):
    """A field in a schema. `tags` contains its own tags and those from the schema's metadata."""

    full_name: str
    name: str
    tags: frozenset[str]


class ConditionNotMet(Exception):
    """Raised if the condition is not met. The message gives the reason."""


class TooManyFields(Exception):
    """Raised if a value has too many fields, or if its schema contains a reference cycle."""


Evaluate = Callable[[SchemaField, str, Any, Callable[[], Any]], object]
"""Evaluates the expression for a field, the name of its type, its value, and the object that contains it."""


class FieldVisit:
    """The visit of one value.

    `wanted` contains the tags of the fields to which the condition applies; if it is empty, it applies to all fields.
    `changes` contains rules that have changed fields. The condition does not apply to these.
    """

    def __init__(
        self,
        wanted: frozenset[str],
        tags: FieldTags,
        places: dict[str, SchemaField],
        evaluate: Evaluate,
        changes: tuple[FieldChange, ...] = (),
    ) -> None:
        self._wanted = wanted
        self._changes = changes
        self._tags = tags
        self._places = places
        self._evaluate = evaluate
        self.visited = 0
        self.evaluations = 0

    def step(self) -> None:
        """Count a visited value. Raises TooManyFields."""
        self.visited += 1
        if self.visited > _MOST_VISITED:
            raise TooManyFields

    def field(self, full_name: str, name: str, inline_tags: Callable[[], frozenset[str]]) -> SchemaField:
        """Return a field with all its tags. Raises TooManyFields."""
        self.step()
        found = self._places.get(full_name)
        if found is None:
            if len(self._places) >= _MOST_PLACES:  # recursive JSON Schemas have unlimited names
                self._places.clear()
            tags = inline_tags() | self._tags.tags_of(full_name)
            found = self._places[full_name] = SchemaField(full_name, name, tags)
        return found

    def applies_to(self, field: SchemaField) -> bool:
        """Return whether the condition applies to a field."""
        return not self._wanted or not self._wanted.isdisjoint(field.tags)

    def value(self, field: SchemaField | None, type_name: str, value: Any, message: Callable[[], Any]) -> object:
        """Return the expression's result for a primitive value, or the value if the condition does not apply."""
        self.step()
        if field is None or not self.applies_to(field) or self._is_changed(field):
            return value
        self.evaluations += 1
        return self._evaluate(field, type_name, value, message)

    def check(self, field: SchemaField, found: object) -> None:
        """Raise ConditionNotMet if a field, or the expression's result for it, is false."""
        if found is not False or self._is_changed(field):
            return
        if self.applies_to(field):
            raise ConditionNotMet(f"not true of the field {field.full_name}")
        raise ConditionNotMet(
            f"the field {field.full_name} is false, and Confluent's serializers also reject false fields that the "
            f"condition does not test"
        )

    def _is_changed(self, field: SchemaField) -> bool:
        """Return whether a later rule has changed the field."""
        return any(not change.tags or not change.tags.isdisjoint(field.tags) for change in self._changes)


class FieldValues(Protocol):
    """A visitor of the fields in one schema's values."""

    def compiled(self, expression: str) -> CompiledExpression:
        """Compile an expression over a field. Raises ExpressionUnusable."""

    def estimate_reading(self, data: bytes) -> tuple[int, int, int]:
        """Return what ValueReader.estimate_reading returns.

        UNBOUNDED ns means that the visit's cost has no known bound.
        """

    def visit(self, data: bytes, visit: FieldVisit) -> None:
        """Visit all fields. Raises NotOfSchema, ValueUnreadable, and the errors of the visit."""


class TrueOfFields(SimpleRule):
    """A rule that requires a condition to be true for all fields of a value (`ExpressionOfSchema`)."""

    def __init__(self, condition: SchemaCondition, values: FieldValues, now: Clock) -> None:
        """Compile the expression. Raises ExpressionUnusable."""
        self._now = now
        found = values.compiled(condition.expression)
        self._values = values
        self._program = found.program
        self._tree, self._programs, self._names = found.tree, found.programs, found.names
        self._wanted = condition.tags
        self._tags = FieldTags(condition.tags_by_pattern)
        self._places: dict[str, SchemaField] = {}
        self._changes = condition.changes
        self._shown = shortened_expression(condition.text)

    def _cost(self, data: bytes) -> int:
        """Return an upper bound of the steps. Fields are counted only if reading the value is cheap."""
        items, size, reading = self._values.estimate_reading(data)
        if reading >= INLINE_STEPS * STEP:
            return UNBOUNDED
        visit = self._visit(lambda *_: True)
        try:
            self._values.visit(data, visit)
        except (NotOfSchema, ValueUnreadable, ConditionNotMet):
            pass
        except (TooManyFields, RecursionError, SchemaError):
            return UNBOUNDED
        texts = dict.fromkeys(("fullName", "name", "typeName"), (0, 1000))
        extents = {"value": (items, size), "message": (items, size), "tags": (100, 10_000), **texts}
        try:
            each = EVALUATION + nanoseconds(self._tree, extents, self._programs)
        except CostUnknown:
            return UNBOUNDED
        if "message" in self._names:
            each += reading
        return min(UNBOUNDED, (2 * reading + visit.visited * _VISIT + visit.evaluations * each) // STEP + 1)

    def fault(self, record: RuledRecord) -> str | None:
        """Return a message about the first field for which the condition is not true.

        Raises Outage if memory is too low.
        """
        if record.value is None:
            return None
        record.budget.spend(self._cost(record.value))
        try:
            self._values.visit(record.value, self._visit(self._evaluated))
        except NotOfSchema:
            return None
        except ConditionNotMet as error:
            return f"{error}: {self._shown}"
        except ValueUnreadable as unreadable:
            return f"the value is {unreadable}, which no expression can read: {self._shown}"
        except (TooManyFields, RecursionError):
            return f"too costly to validate: more than {_MOST_VISITED:,} fields and items: {self._shown}"
        except MemoryError as error:  # for the rules process, an outage with this cause is a record that is too costly
            raise Outage("there is not enough memory to evaluate an expression") from error
        return None

    def _visit(self, evaluate: Evaluate) -> FieldVisit:
        return FieldVisit(self._wanted, self._tags, self._places, evaluate, self._changes)

    def _evaluated(self, field: SchemaField, type_name: str, value: Any, message: Callable[[], Any]) -> object:
        """Return the expression's result for a value. Raises ConditionNotMet if the evaluation fails."""
        seen: dict[str, Any] = {}
        for name in self._names:
            if name == "value":
                seen[name] = value
            elif name == "message":
                seen[name] = message()
            elif name == "typeName":
                seen[name] = type_name
            elif name == "tags":
                seen[name] = sorted(field.tags)
            elif name == "now":
                seen[name] = time_of(self._now)
            else:
                seen[name] = complete_text(field.full_name if name == "fullName" else field.name)
        try:
            result = self._program.eval(data=seen)
            error = str(result.value()) if name_of(result.type()) == "error" else None
        except MemoryError:
            raise
        except Exception as raised:
            error = str(raised)
        if error is not None:
            raise ConditionNotMet(f"{readable_error(error, self._shown)} (field {field.full_name})")
        return result.value()
