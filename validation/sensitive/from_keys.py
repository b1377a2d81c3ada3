"""Compiles the configured sensitive fields of a topic."""

from collections.abc import Sequence

from sluicegate.config.sensitive import SensitiveFields as Keys
from sluicegate.config.values.password import PasswordUnreadable
from sluicegate.validation.rules.rule import RuleUnusable
from sluicegate.validation.sensitive.paths import Action, Node, SensitiveFields, path_of, tree_of

_LEAST_KEY_BYTES = 16


class Sensitive:
    """The sensitive fields of one topic. `root`: the root of their paths. `first`: the name for a violation of all."""

    def __init__(self, policies: Sequence[SensitiveFields]) -> None:
        self.policies = tuple(policies)
        self.root: Node = tree_of(policies)
        self.first = policies[0].name

    def __str__(self) -> str:
        return ", ".join(map(str, self.policies))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sensitive) and self.policies == other.policies

    def __hash__(self) -> int:
        return hash(self.policies)


def sensitive_of(keys: Sequence[Keys] | None) -> Sensitive | None:
    """Return the sensitive fields of a topic; None if there are none. Raises RuleUnusable for an unusable key file."""
    return Sensitive([_compiled(each) for each in keys]) if keys else None


def _compiled(keys: Keys) -> SensitiveFields:
    key = b""
    if keys.action == "hash":
        try:
            key = keys.key.get().encode()
        except PasswordUnreadable as error:
            raise RuleUnusable(f"sensitive fields {keys.name}: {error}") from error
        if len(key) < _LEAST_KEY_BYTES:
            raise RuleUnusable(f"sensitive fields {keys.name}: the key in key_file is shorter than 16 bytes")
    return SensitiveFields(keys.name, tuple(map(path_of, keys.fields)), Action(keys.action), keys.replacement, key)
