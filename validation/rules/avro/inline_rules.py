"""Visits the records and fields of Avro values for the rules inside their schema, as Confluent's client does."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from sluicegate.validation.rules.avro import datum as avro_datum
from sluicegate.validation.rules.avro.cel_values import AvroValues, details_with_branches, plain
from sluicegate.validation.rules.avro.plan import DatumPlan
from sluicegate.validation.rules.cel.inline_rules import InlineVisit
from sluicegate.validation.rules.schemas.changed_fields import ChangeableField
from sluicegate.validation.rules.schemas.field_tags import inline_tags
from sluicegate.validation.rules.schemas.inline_rules import PlacedRules, RulePlace, inline_rules_in


def places_of_avro(plan: DatumPlan) -> Iterator[RulePlace]:
    """Yield the records and fields that have rules. No client evaluates rules on other types."""
    for at in _records(plan):
        yield RulePlace((at, None), inline_rules_in(plan.declared[at]))
        for field in plan.declared[at]["fields"]:
            yield RulePlace((at, field["name"]), inline_rules_in(field), field["name"])


def avro_fields(plan: DatumPlan) -> Iterator[ChangeableField]:
    """Yield the fields of all of a schema's records."""
    for at in _records(plan):
        for i, field in enumerate(plan.declared[at]["fields"]):
            name, holds_fields = field["name"], _holds_records(plan.numbers, plan.numbers[at + 2 + i])
            yield ChangeableField(f"{plan.full_names[at]}.{name}", name, inline_tags(field), holds_fields)


def _records(plan: DatumPlan) -> list[int]:
    return [at for at in plan.declared if plan.numbers[at] == avro_datum.RECORD]


def _holds_records(numbers: Sequence[int], at: int) -> bool:
    """Return whether a type's values are or contain records."""
    kind = numbers[at]
    if kind == avro_datum.UNION:
        return any(_holds_records(numbers, numbers[at + 2 + i]) for i in range(numbers[at + 1]))
    if kind in (avro_datum.ARRAY, avro_datum.MAP):
        return _holds_records(numbers, numbers[at + 1])
    return kind == avro_datum.RECORD


class AvroRuledValues:
    """The values of one schema (`RuledValues`).

    Like Confluent's client, the visit does not descend into a record within itself.
    """

    pool = None

    def __init__(self, plan: DatumPlan, placed: PlacedRules) -> None:
        self._plan = plan
        self._numbers = plan.numbers
        self._values = AvroValues(plan)
        self.estimate_reading = self._values.estimate_reading
        self._details = details_with_branches(plan)
        self._of_record = {at: placed.at((at, None)) for at in _records(plan)}
        self._of_fields = {
            at: [(field["name"], placed.at((at, field["name"]))) for field in plan.declared[at]["fields"]]
            for at in _records(plan)
        }

    def visit(self, data: bytes, visit: InlineVisit) -> None:
        """Visit all records, and their non-null fields."""
        self._value(self._plan.root, self._values.read_with(data, self._details), "", visit, ())

    def _value(self, at: int, value: Any, path: str, visit: InlineVisit, within: tuple[int, ...]) -> None:
        kind = self._numbers[at]
        if kind == avro_datum.UNION:
            branch = self._numbers[at + 2 + value.branch]
            if branch not in within:
                self._value(branch, value.value, path, visit, within)
        elif kind == avro_datum.RECORD and at not in within:
            self._record(at, value, path, visit, (*within, at))
        elif kind == avro_datum.ARRAY:
            for i, item in enumerate(value):
                self._value(self._numbers[at + 1], item, f"{path}[{i}]", visit, within)
        elif kind == avro_datum.MAP:
            for item in value.values():
                self._value(self._numbers[at + 1], item, f"{path}[…]", visit, within)

    def _record(self, at: int, record: dict[str, Any], path: str, visit: InlineVisit, within: tuple[int, ...]) -> None:
        visit.apply(self._of_record[at], path, partial(plain, record))
        for i, (name, rules) in enumerate(self._of_fields[at]):
            value, its_path = record[name], f"{path}.{name}" if path else name
            if rules and plain(value) is not None:
                visit.apply(rules, its_path, partial(plain, value))
            self._value(self._numbers[at + 2 + i], value, its_path, visit, within)
