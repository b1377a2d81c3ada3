"""Creates rules that have only names. They explain policies without validating anything."""

from collections.abc import Mapping
from typing import Any

from sluicegate.config.content_keys import Schema
from sluicegate.config.values.password import Password
from sluicegate.validation.rules.built_in import Required
from sluicegate.validation.rules.rule import RecordRule, Side

_NO_SECRET = "no file with a secret is read"  # noqa: S105  # not a password


class NamesOnly:
    """A factory of rules that have only a name and validate nothing, because compiling real rules may be slow."""

    def of_schema(self, _schema: Schema, side: Side) -> RecordRule:
        return Required(side)

    def secret(self, _password: Password) -> str:
        return _NO_SECRET

    def of_content(self, _key: str, side: Side, _options: Mapping[str, Any]) -> RecordRule:
        return Required(side)

    def of_expression(self, _expression: str) -> RecordRule:
        return Required(Side.KEY)

    def of_schema_expression(self, _expression: str, _schema: Schema) -> RecordRule:
        return Required(Side.VALUE)

    def of_conditions(self, _schema: Schema, side: Side) -> RecordRule:
        return Required(side)

    def of_inline_rules(self, _schema: Schema, side: Side) -> RecordRule:
        return Required(side)

    def of_constraints(self, _schema: Schema, side: Side) -> RecordRule:
        return Required(side)

    def of_data_as_json(self, _schema: Schema, side: Side) -> RecordRule:
        return Required(side)

    def of_entry_point(self, _name: str, _options: Mapping[str, Any]) -> RecordRule:
        return Required(Side.KEY)
