"""Checks that a value follows the rules inside its schema (schemas/inline_rules.py).

In each schema language, Confluent's clients visit different fields, so each language has its own walk (`RuledValues`).
"""

from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol

from sluicegate.validation.rules.cel.cost import CostUnknown, nanoseconds
from sluicegate.validation.rules.cel.error_text import readable_error
from sluicegate.validation.rules.cel.fields import ConditionNotMet, TooManyFields
from sluicegate.validation.rules.cel.rule import shortened_expression
from sluicegate.validation.rules.cel.runtime import (
    TEXT_OR_TRUTH,
    CompiledExpression,
    ExpressionUnusable,
    compiled,
    inline_environment,
    name_of,
)
from sluicegate.validation.rules.cel.steps import EVALUATION, STEP
from sluicegate.validation.rules.cel.variables import NotOfSchema, ValueUnreadable, time_of
from sluicegate.validation.rules.rule import INLINE_STEPS, UNBOUNDED, Outage, RuledRecord, SchemaError
from sluicegate.validation.rules.schemas.conditions import Clock
from sluicegate.validation.rules.schemas.inline_rules import InlineRule
from sluicegate.validation.rules.simple_rule import SimpleRule

_MOST_RULES: Final = 100  # each compiled expression takes up to 200 kB
_MOST_VISITED: Final = 100_000  # objects and fields; visiting this many takes about 0.2 s without the expressions
_VISIT: Final = 5_000  # ns

Evaluate = Callable[[InlineRule, str, Callable[[], Any]], None]
"""Evaluates a rule for the value at a path."""


class InlineVisit:
    """The visit of one value."""

    def __init__(self, evaluate: Evaluate) -> None:
        self._evaluate = evaluate
        self.visited = 0

    def apply(self, rules: Iterable[InlineRule], path: str, this: Callable[[], Any]) -> None:
        """Apply the rules of an object or a field to its value, and count it.

        Raises TooManyFields and ConditionNotMet.
        """
        self.visited += 1
        if self.visited > _MOST_VISITED:
            raise TooManyFields
        for rule in rules:
            self._evaluate(rule, path, this)


class RuledValues(Protocol):
    """A visitor of the objects and fields in one schema's values."""

    @property
    def pool(self) -> Any:
        """Return the pool of the Protobuf messages; None for other values."""

    def estimate_reading(self, data: bytes) -> tuple[int, int, int]:
        """Return what ValueReader.estimate_reading returns.

        UNBOUNDED ns means that the visit's cost has no known bound.
        """

    def visit(self, data: bytes, visit: InlineVisit) -> None:
        """Visit every part that has rules.

        Raises NotOfSchema, ValueUnreadable, SchemaError, and the errors of the visit.
        """


class InlinePrograms:
    """The compiled expressions of a schema's rules, by their source."""

    def __init__(self, rules: Iterable[InlineRule], pool: Any = None) -> None:
        """Compile the expressions that can be compiled. Raises ExpressionUnusable if there is no runtime."""
        self._by_text: dict[str, CompiledExpression | str] = {}
        self._compiled_count = 0
        self._rules = list(rules)
        environment = inline_environment(pool) if self._rules else None
        for rule in self._rules:
            if rule.text not in self._by_text:
                self._by_text[rule.text] = self._compiled(rule.text, environment)

    def _compiled(self, text: str, environment: Any) -> CompiledExpression | str:
        if not text:
            return "has no expression (expr)"
        if self._compiled_count >= _MOST_RULES:
            return f"is not evaluated: at most {_MOST_RULES} different rules of a schema are evaluated"
        try:
            found = compiled(text, environment, TEXT_OR_TRUTH)
        except ExpressionUnusable as error:
            return f"cannot be compiled: {error}"
        self._compiled_count += 1
        return found

    def __bool__(self) -> bool:
        return bool(self._by_text)

    def __getitem__(self, text: str) -> CompiledExpression | str:
        """Return a rule's compiled expression, or why it is unusable, as a phrase that follows the rule's name."""
        return self._by_text[text]

    def unusable_rules(self) -> list[tuple[str, str]]:
        """Return the names of unusable rules, each with the reason as a phrase that follows the name."""
        found = ((rule.name, self._by_text[rule.text]) for rule in self._rules)
        return list(dict.fromkeys((name, why) for name, why in found if isinstance(why, str)))


class MeetsInlineRules(SimpleRule):
    """A rule that requires a value to follow the rules inside its schema (`ExpressionOfSchema`)."""

    def __init__(self, programs: InlinePrograms, values: RuledValues, now: Clock) -> None:
        self._programs = programs
        self.unusable_rules = programs.unusable_rules
        self._values = values
        self._now = now

    def _cost(self, data: bytes) -> int:
        """Return an upper bound of the steps. Parts with rules are counted only if reading the value is cheap."""
        items, size, reading = self._values.estimate_reading(data)
        if reading >= INLINE_STEPS * STEP:
            return UNBOUNDED
        counts: dict[str, int] = {}

        def count(rule: InlineRule, _path: str, _this: object) -> None:
            counts[rule.text] = counts.get(rule.text, 0) + 1

        visit = InlineVisit(count)
        try:
            self._values.visit(data, visit)
        except (NotOfSchema, ValueUnreadable):
            pass
        except (TooManyFields, RecursionError, SchemaError):
            return UNBOUNDED
        most = 2 * reading + visit.visited * _VISIT
        for text, times in counts.items():
            program = self._programs[text]
            if isinstance(program, str):
                continue
            try:
                evaluation = nanoseconds(program.tree, {"this": (items, size)}, program.programs)
            except CostUnknown:
                return UNBOUNDED
            most += times * (EVALUATION + reading + evaluation)
        return min(UNBOUNDED, most // STEP + 1)

    def fault(self, record: RuledRecord) -> str | None:
        """Return a message about the first rule that is not met.

        Raises Outage if memory is too low. Raises SchemaError, also if no rule is violated but a rule that applies to
        the value cannot be evaluated.
        """
        if record.value is None:
            return None
        record.budget.spend(self._cost(record.value))
        unusable: list[str] = []

        def evaluate(rule: InlineRule, path: str, this: Callable[[], Any]) -> None:
            program = self._programs[rule.text]
            if not isinstance(program, str):
                self._evaluate(rule, program, path, this)
            elif not unusable:
                where = f"the field {path}" if path else "the value"
                unusable.append(f"the rule {rule.name} inside it, about {where}, {program}")

        try:
            self._values.visit(record.value, InlineVisit(evaluate))
        except NotOfSchema:
            return None
        except ConditionNotMet as error:
            return str(error)
        except ValueUnreadable as unreadable:
            return f"the value is {unreadable}, which no rule inside its schema can read"
        except (TooManyFields, RecursionError):
            return f"too costly to validate: more than {_MOST_VISITED:,} objects and fields with rules in their schema"
        except MemoryError as error:  # for the rules process, an outage with this cause is a record that is too costly
            raise Outage("there is not enough memory to evaluate an expression") from error
        if unusable:
            raise SchemaError(unusable[0])
        return None

    def _evaluate(self, rule: InlineRule, program: CompiledExpression, path: str, this: Callable[[], Any]) -> None:
        """Evaluate a rule. Raises ConditionNotMet with the rule's name and message, which quotes no value."""
        seen: dict[str, Any] = {}
        if "this" in program.names:
            seen["this"] = this()
        if "now" in program.names:
            seen["now"] = time_of(self._now)
        try:
            result = program.program.eval(data=seen)
            kind, value = name_of(result.type()), result.value()
        except MemoryError:
            raise
        except Exception as raised:
            kind, value = "error", raised
        if (kind == "bool" and value is True) or (kind == "string" and value == ""):
            return
        where = f"the field {path}" if path else "the value"
        words = f"{where} does not meet the rule {rule.name} inside its schema"
        if kind == "error":
            words = f"{words}: {readable_error(str(value), rule.text)}"
        elif kind not in ("bool", "string"):
            words = f"{words}: it returns {kind} instead of true, false or a string"
        raise ConditionNotMet(f"{words}: {rule.doc or shortened_expression(rule.text)}")
