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

    def make_schema_rule(self, _schema: Schema, side: Side) -> RecordRule:
        return Required(side)

    def secret(self, _password: Password) -> str:
        return _NO_SECRET

    def make_content_rule(self, _key: str, side: Side, _options: Mapping[str, Any]) -> RecordRule:
        return Required(side)

    def make_expression_rule(self, _expression: str) -> RecordRule:
        return Required(Side.KEY)

    def make_schema_expression_rule(self, _expression: str, _schema: Schema) -> RecordRule:
        return Required(Side.VALUE)

    def make_registry_conditions_rule(self, _schema: Schema, side: Side) -> RecordRule:
        return Required(side)

    def make_inline_rules_rule(self, _schema: Schema, side: Side) -> RecordRule:
        return Required(side)

    def make_constraints_rule(self, _schema: Schema, side: Side) -> RecordRule:
        return Required(side)

    def make_json_form_rule(self, _schema: Schema, side: Side) -> RecordRule:
        return Required(side)

    def make_entry_point_rule(self, _name: str, _options: Mapping[str, Any]) -> RecordRule:
        return Required(Side.KEY)
