"""Checks the values at the places of fields."""

from collections.abc import Callable

from sluicegate.validation.sensitive.paths import Action, FieldPlace, FieldPolicy

Nodes = tuple[FieldPlace, ...]


class Unmaskable(Exception):
    """Raised if a value cannot be masked, or contains a forbidden field. The message quotes nothing from the value.

    `fields` is the policy that the value violates. It is None if the value cannot be parsed and so violates all
    policies.
    """

    def __init__(self, text: str, fields: FieldPolicy | None = None) -> None:
        super().__init__(text)
        self.fields = fields


def fields_of(nodes: Nodes) -> FieldPolicy | None:
    """Return the policy that applies to a place, or None if the place is not sensitive."""
    for node in nodes:
        if node.fields is not None:
            return node.fields
    return None


def nodes_below(nodes: Nodes, name: str, worked: Callable[[int], None]) -> Nodes:
    """Return the nodes for a name."""
    if len(nodes) == 1:
        return nodes[0].named(name, worked)
    return tuple(each for node in nodes for each in node.named(name, worked))


def check_string(nodes: Nodes, fields: FieldPolicy) -> None:
    """Raise Unmaskable if a sensitive string is not allowed."""
    if fields.action is Action.REJECT:
        raise Unmaskable(f"{_shown(nodes, fields)} is not allowed in this topic; remove it", fields)


def check_not_sensitive(nodes: Nodes, kind: str) -> None:
    """Raise Unmaskable if a value that is not a string is sensitive. `kind` is the value's kind with its article."""
    fields = fields_of(nodes)
    if fields is not None:
        check_string(nodes, fields)
        raise Unmaskable(f"{_shown(nodes, fields)} is {kind}, and only strings can be masked; send a string", fields)


def _shown(nodes: Nodes, fields: FieldPolicy) -> str:
    """Return the path in the configuration or the schema. It never contains a name from the record."""
    return "the field " + next(".".join(node.path) for node in nodes if node.fields is fields)
