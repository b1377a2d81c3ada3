"""Compiles the configured sensitive fields of a topic."""

from collections.abc import Sequence

from sluicegate.config.sensitive import SensitiveFields as Keys
from sluicegate.config.values.password import PasswordUnreadable
from sluicegate.validation.rules.from_keys import RuleMaker
from sluicegate.validation.rules.rule import NamedRule, RuleUnusable, Side
from sluicegate.validation.rules.schemas.schema_expression import SchemaOfRecord
from sluicegate.validation.sensitive.paths import Action, SensitiveFields, path_of, tree_of
from sluicegate.validation.sensitive.values import JsonValues, Values

_LEAST_KEY_BYTES = 16


class Sensitive:
    """The sensitive fields of one topic. `values`: masks its values. `rule`: names a violation of all; its rule finds
    the schema of a record.
    """

    def __init__(self, policies: Sequence[SensitiveFields], values: Values, rule: NamedRule | None = None) -> None:
        self.policies = tuple(policies)
        self.values = values
        self.rule = rule
        self.first = policies[0].name

    def __str__(self) -> str:
        return ", ".join(map(str, self.policies))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sensitive) and (self.policies, self.values) == (other.policies, other.values)

    def __hash__(self) -> int:
        return hash(self.policies)


def sensitive_of(keys: Sequence[Keys] | None, maker: RuleMaker) -> Sensitive | None:
    """Return the sensitive fields of a topic; None if there are none. Raises RuleUnusable for an unusable key file or
    schema.
    """
    if not keys:
        return None
    policies = [_compiled(each) for each in keys]
    schemas = list(dict.fromkeys(each.schema_ for each in keys if each.schema_ is not None))
    root = (tree_of(policies),)
    if not schemas:
        tagged = next((each.name for each in keys if each.tags), None)
        if tagged is not None:
            raise RuleUnusable(f"sensitive fields {tagged}: tags are those of a schema; add schema")
        return Sensitive(policies, JsonValues(root))
    if len(schemas) > 1:
        raise RuleUnusable(f"sensitive fields {keys[0].name}: all sensitive fields of a topic have one schema")
    from sluicegate.validation.sensitive.schema_values import SchemaValues  # noqa: PLC0415  # 2 MB with its schemas

    rule = maker.of_schema(schemas[0], Side.VALUE)
    if not isinstance(rule, SchemaOfRecord):  # it only has a name, and validates nothing
        return Sensitive(policies, JsonValues(root))
    return Sensitive(policies, SchemaValues(policies, root, rule), NamedRule(policies[0].name, rule))


def _compiled(keys: Keys) -> SensitiveFields:
    key = b""
    if keys.action == "hash":
        try:
            key = keys.key.get().encode()
        except PasswordUnreadable as error:
            raise RuleUnusable(f"sensitive fields {keys.name}: {error}") from error
        if len(key) < _LEAST_KEY_BYTES:
            raise RuleUnusable(f"sensitive fields {keys.name}: the key in key_file is shorter than 16 bytes")
    paths = tuple(map(path_of, keys.fields))
    return SensitiveFields(keys.name, paths, Action(keys.action), keys.replacement, key, frozenset(keys.tags))
