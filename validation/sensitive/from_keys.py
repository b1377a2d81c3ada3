"""Compiles a topic's configured sensitive fields."""

from collections.abc import Sequence

from sluicegate.config.files.source import Path
from sluicegate.config.sensitive import SensitiveFields as Keys
from sluicegate.config.values.password import PasswordUnreadable
from sluicegate.validation.rules.from_keys import RuleMaker
from sluicegate.validation.rules.rule import NamedRule, RuleUnusable, Side
from sluicegate.validation.rules.schemas.schema_expression import SchemaOfRecord
from sluicegate.validation.sensitive.paths import Action, FieldPolicy, path_of, tree_of
from sluicegate.validation.sensitive.values import JsonValues, Values

_LEAST_KEY_BYTES = 16


class SensitiveUnusable(RuleUnusable):
    """Raised if an item of `sensitive` is invalid, or names an unusable file.

    `path` is the key at fault, relative to the list.
    """

    def __init__(self, words: str, path: Path) -> None:
        super().__init__(words)
        self.path = path


class Sensitive:
    """A topic's sensitive fields.

    `values` masks the topic's values. `rule` finds a record's schema; violations of all fields are reported under its
    name.
    """

    def __init__(self, policies: Sequence[FieldPolicy], values: Values, rule: NamedRule | None = None) -> None:
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


def sensitive_fields_of(keys: Sequence[Keys] | None, maker: RuleMaker) -> Sensitive | None:
    """Return a topic's sensitive fields, or None if there are none. Raises SensitiveUnusable."""
    if not keys:
        return None
    policies = [_compiled(each, i, maker) for i, each in enumerate(keys)]
    schemas = list(dict.fromkeys(each.schema_ for each in keys if each.schema_ is not None))
    root = (tree_of(policies),)
    if not schemas:
        for i, each in enumerate(keys):
            if each.tags:
                words = f"sensitive fields {each.name}: tags come from a schema; add schema"
                raise SensitiveUnusable(words, (i, "tags"))
        return Sensitive(policies, JsonValues(root))
    with_schema = [i for i, each in enumerate(keys) if each.schema_ is not None]
    if len(schemas) > 1:
        second = next(i for i in with_schema if keys[i].schema_ != schemas[0])
        words = f"sensitive fields {keys[second].name}: all sensitive fields of a topic must have the same schema"
        raise SensitiveUnusable(words, (second, "schema"))
    from sluicegate.validation.sensitive.schema_values import SchemaValues  # noqa: PLC0415  # 2 MB with its schemas

    try:
        rule = maker.of_schema(schemas[0], Side.VALUE)
    except RuleUnusable as error:
        first = with_schema[0]
        raise SensitiveUnusable(f"sensitive fields {keys[first].name}: {error}", (first, "schema")) from error
    if not isinstance(rule, SchemaOfRecord):  # the rule has only a name, and validates nothing
        return Sensitive(policies, JsonValues(root))
    return Sensitive(policies, SchemaValues(policies, root, rule), NamedRule(policies[0].name, rule))


def _compiled(keys: Keys, place: int, maker: RuleMaker) -> FieldPolicy:
    """Compile the item at the position `place` in the list. Raises SensitiveUnusable."""
    key = b""
    where = (place, "key_file")
    if keys.action == "hash":
        try:
            key = maker.secret(keys.key).encode()
        except PasswordUnreadable as error:
            raise SensitiveUnusable(f"sensitive fields {keys.name}: {error.message}", where) from error
        if len(key) < _LEAST_KEY_BYTES:
            words = f"sensitive fields {keys.name}: the key in key_file is shorter than 16 bytes"
            raise SensitiveUnusable(words, where)
    paths = tuple(map(path_of, keys.fields))
    return FieldPolicy(keys.name, paths, Action(keys.action), keys.replacement, key, frozenset(keys.tags))
