"""Visits the records and fields of Avro values for the rules inside their schema, as Confluent's client does."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from sluicegate.validation.rules.avro import datum as avro_datum
from sluicegate.validation.rules.avro.cel_values import AvroValues, details_with_branches, plain
from sluicegate.validation.rules.avro.plan import DatumPlan
from sluicegate.validation.rules.cel.inline_rules import InlineVisit
from sluicegate.validation.rules.schemas.inline_rules import InlineRule, inline_rules_in


def inline_rules_of_avro(plan: DatumPlan) -> Iterator[InlineRule]:
    """Yield the rules of records and of their fields; no client evaluates those of other types."""
    for at, schema in plan.declared.items():
        if plan.numbers[at] == avro_datum.RECORD:
            yield from inline_rules_in(schema)
            for field in schema["fields"]:
                yield from inline_rules_in(field)


class AvroRuledValues:
    """The values of one schema (`RuledValues`). A record within itself is not followed, as by Confluent's client."""

    pool = None

    def __init__(self, plan: DatumPlan) -> None:
        self._plan = plan
        self._numbers = plan.numbers
        self._values = AvroValues(plan)
        self.extent = self._values.extent
        self._details = details_with_branches(plan)
        records = [at for at in plan.names if plan.numbers[at] == avro_datum.RECORD]
        self._of_record = {at: inline_rules_in(plan.declared[at]) for at in records}
        self._of_fields = {
            at: [(field["name"], inline_rules_in(field)) for field in plan.declared[at]["fields"]] for at in records
        }

    def visit(self, data: bytes, visit: InlineVisit) -> None:
        """Visit all records and their fields that are not null."""
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
