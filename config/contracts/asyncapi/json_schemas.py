"""Combines JSON Schemas from an AsyncAPI document into one self-contained schema, for validators that read no files."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from sluicegate.config.contracts.asyncapi.nodes import DocumentNode, Refused
from sluicegate.config.contracts.asyncapi.references import REF, References, reference_in

DRAFT_7: Final = "http://json-schema.org/draft-07/schema#"
_DRAFTS: Final = {
    "draft-03": "http://json-schema.org/draft-03/schema#",
    "draft-04": "http://json-schema.org/draft-04/schema#",
    "draft-06": "http://json-schema.org/draft-06/schema#",
    "draft-07": DRAFT_7,
    "draft-2019-09": "https://json-schema.org/draft/2019-09/schema",
    "draft-2020-12": "https://json-schema.org/draft/2020-12/schema",
}
_MAPS: Final = frozenset({"properties", "patternProperties", "dependentSchemas", "dependencies"})
_SCHEMAS: Final = frozenset(
    {
        *("items", "additionalItems", "additionalProperties", "not", "if", "then", "else", "contains"),
        *("propertyNames", "unevaluatedItems", "unevaluatedProperties", "contentSchema", "extends", "disallow"),
    }
)
_LISTS: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems", "items", "type", "extends", "disallow"})
_NAMES_OF_PLACES: Final = frozenset({"$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$schema"})
_DYNAMIC: Final = ("$dynamicRef", "$recursiveRef")
_WITH_SIBLINGS: Final = frozenset(_DRAFTS[name] for name in ("draft-2019-09", "draft-2020-12"))
_DEFINITIONS = "definitions"
_UNUSED: Final = frozenset({_DEFINITIONS, "$defs"})  # referenced definitions are written again
_UNSAFE = re.compile("[^A-Za-z0-9]")
_MOST_DEPTH = 100
_MOST_VALUES = 200_000

NoteDiscriminator = Callable[[DocumentNode], None]


def draft_of(parameters: Mapping[str, str]) -> str | None:
    """Return `$schema` for the parameters of `application/schema+json`, or None if the version is unknown."""
    version = parameters.get("version", "draft-07").removeprefix("draft/")
    return _DRAFTS.get(version if version.startswith("draft-") else f"draft-{version}")


class SchemaWriter:
    """A writer of one document's JSON Schemas. It writes at most `_MOST_VALUES` values for the whole document."""

    def __init__(self, references: References) -> None:
        self._references = references
        self._note: NoteDiscriminator = _ignore
        self._left = _MOST_VALUES
        self._names: dict[tuple[int, tuple[str | int, ...]], str] = {}
        self._definitions: dict[str, Any] = {}
        self._pending: list[tuple[str, DocumentNode]] = []
        self._keeps_siblings = False
        self._outermost = references.root

    def written(self, schemas: Sequence[DocumentNode], draft: str, note: NoteDiscriminator) -> dict[str, Any]:
        """Return a JSON Schema that accepts a value if any of the schemas accepts it.

        `note` is called with each `discriminator`, which has no effect on validation. Raises Refused.
        """
        self._note = note
        self._outermost = schemas[0]
        self._names, self._definitions, self._pending = {}, {}, []
        roots = [self._references.resolved(schema) for schema in schemas]
        drafts = {self._draft_in(root, draft) for root in roots}
        if len(drafts) > 1:
            raise Refused(roots[-1], "the messages of a channel have JSON Schemas of different drafts")
        chosen = drafts.pop()
        self._keeps_siblings = chosen in _WITH_SIBLINGS
        made = [self._schema(root, 0) for root in roots]
        while self._pending:
            name, target = self._pending.pop()
            self._definitions[name] = self._schema(target, 0)
        body = made[0] if len(made) == 1 else {"anyOf": made}
        if isinstance(body, bool):
            body = {} if body else {"not": {}}
        return {"$schema": chosen, **body, **({_DEFINITIONS: self._definitions} if self._definitions else {})}

    def _draft_in(self, root: DocumentNode, draft: str) -> str:
        own = root.value.get("$schema") if isinstance(root.value, dict) else None
        return own if isinstance(own, str) else draft

    def _schema(self, node: DocumentNode, depth: int) -> Any:
        self._count(node)
        if depth > _MOST_DEPTH:
            raise Refused(self._outermost, f"the schema is nested more than {_MOST_DEPTH} levels deep")
        if isinstance(node.value, bool):
            return node.value
        made: dict[str, Any] = {}
        is_reference = reference_in(node) is not None
        if is_reference:
            made[REF] = f"#/{_DEFINITIONS}/{self._definition(node)}"
        for key, value in node.items() if self._keeps_siblings or not is_reference else ():
            if key in _UNUSED or (key == REF and is_reference):
                continue
            if key in _DYNAMIC:
                raise Refused(value, f"{key} is not supported; write $ref")
            if key == "discriminator":
                self._note(value)
            if key in _MAPS and isinstance(value.value, dict):
                made[key] = {name: self._part(each, depth) for name, each in value.items()}
            elif key in _LISTS and isinstance(value.value, list):
                made[key] = [self._part(each, depth) for each in value.list()]
            elif key in _SCHEMAS and isinstance(value.value, dict | bool):
                made[key] = self._schema(value, depth + 1)
            elif key not in _NAMES_OF_PLACES or not isinstance(value.value, str | bool):
                made[key] = self._copied(value)
        return made

    def _part(self, node: DocumentNode, depth: int) -> Any:
        """Return a part that may also be a string, as in `type`, or a list of names, as in `dependencies`."""
        return self._schema(node, depth + 1) if isinstance(node.value, dict | bool) else self._copied(node)

    def _definition(self, node: DocumentNode) -> str:
        """Return the name of the definition for a reference's target. Raises Refused."""
        target = self._references.resolved(node)
        identity = (id(target.source), target.path)
        if identity not in self._names:
            shown = f"{target.path[-1] if target.path else 'file'}-{len(self._names) + 1}"
            name = self._names[identity] = _UNSAFE.sub("-", shown)
            self._pending.append((name, target))
        return self._names[identity]

    def _copied(self, node: DocumentNode) -> Any:
        values: list[Any] = [node.value]
        while values:
            self._count(node)
            value = values.pop()
            values += value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        return node.value

    def _count(self, node: DocumentNode) -> None:
        self._left -= 1
        if self._left < 0:
            raise Refused(node, f"the schemas of the document have more than {_MOST_VALUES} values after references")


def _ignore(_node: DocumentNode) -> None:
    """Do nothing."""
