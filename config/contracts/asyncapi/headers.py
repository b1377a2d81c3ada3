"""Translates the headers of AsyncAPI messages to rules for headers."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sluicegate.config.contracts.asyncapi.media_types import JSON, language_of, media_type_of
from sluicegate.config.contracts.asyncapi.messages import ChannelMessage
from sluicegate.config.contracts.asyncapi.nodes import DocumentNode, Refused
from sluicegate.config.contracts.asyncapi.references import References
from sluicegate.config.contracts.asyncapi.text_checks import expressions_of
from sluicegate.config.values.topic_pattern import regular_expression_of

NoteAt = Callable[[DocumentNode, str, str], None]
"""Receives the place of a statement that has no effect, the statement, and the reason."""

_READ: Final = frozenset({"type", "properties", "required", "allOf"})
_SILENT: Final = frozenset({"title", "description", "examples", "example", "default", "$schema", "$id", "$comment"})
_MOST_PARTS = 50
_TRACING: Final = "producers and agents may add headers"
_DECIDED: Final = "the message or another trait has a schema of the same header, which is compared"


@dataclass(slots=True)
class HeaderChecks:
    """The required headers, and the patterns that headers must match, by header."""

    required: set[str] = field(default_factory=set)
    patterns: dict[str, list[str]] = field(default_factory=dict)

    def rules(self) -> Iterator[dict[str, Any]]:
        """Yield each rule's section `headers`: a rule has one pattern per header."""
        count = max(map(len, self.patterns.values()), default=0)
        for i in range(max(count, 1 if self.required else 0)):
            patterns = {name: f"/{each[i]}/" for name, each in sorted(self.patterns.items()) if i < len(each)}
            required = {"required": sorted(self.required)} if i == 0 and self.required else {}
            yield required | ({"patterns": patterns} if patterns else {})


def header_checks(references: References, message: ChannelMessage, note: NoteAt) -> HeaderChecks:
    """Return the checks of a message's headers. Raises Refused."""
    checks = HeaderChecks()
    has_required = False
    schemas: dict[str, list[Any]] = {}
    for layer in message.all(references, "headers"):
        schema = _plain(references, layer, message, note)
        if schema is None:
            continue
        parts = list(_parts(references, schema))
        if not has_required and any(part.get("required") is not None for part in parts):
            checks.required, has_required = {name for part in parts for name in _required(part)}, True
        seen = set(schemas)
        for part in parts:
            _note_rest(part, message, note)
            for name, header in references.items(part.get("properties")):
                if name not in seen:
                    schemas.setdefault(name, []).append(header.value)
                    checks.patterns.setdefault(name, []).extend(_patterns(name, header, message, note))
                elif header.value not in schemas[name]:
                    note(header, f"header {name} of message {message.name}", _DECIDED)
    return checks


def common_checks(all_checks: Sequence[HeaderChecks]) -> HeaderChecks:
    """Return the checks that all of the messages share."""
    first, *others = all_checks
    patterns = {
        name: [each for each in of_one if all(each in other.patterns.get(name, ()) for other in others)]
        for name, of_one in first.patterns.items()
    }
    return HeaderChecks(first.required.intersection(*(other.required for other in others)), patterns)


def _plain(references: References, layer: DocumentNode, message: ChannelMessage, note: NoteAt) -> DocumentNode | None:
    """Return the headers' JSON Schema, which may be inside a schema with a format; None for any other language."""
    if not isinstance(layer.value, dict) or "schemaFormat" not in layer.value:
        return layer
    written = layer.at("schemaFormat").text()
    if language_of(media_type_of(written)) != JSON:
        note(layer, f"headers of message {message.name}", f"schemas in {written[:100]} are not read for headers")
        return None
    return references.get(layer, "schema")


def _parts(references: References, schema: DocumentNode) -> Iterator[DocumentNode]:
    """Yield a schema, and the schemas that its `allOf` combines. Raises Refused."""
    pending = [schema]
    for _ in range(_MOST_PARTS):
        if not pending:
            return
        part = pending.pop()
        yield part
        several = part.get("allOf")
        pending += [] if several is None else map(references.resolved, several.list())
    if pending:
        raise Refused(schema, f"headers combine more than {_MOST_PARTS} schemas")


def _required(part: DocumentNode) -> list[str]:
    given = part.get("required")
    return [] if given is None or isinstance(given.value, bool) else [each.text() for each in given.list()]


def _note_rest(part: DocumentNode, message: ChannelMessage, note: NoteAt) -> None:
    for key, value in part.items():
        if (
            key in _READ
            or key in _SILENT
            or key.startswith("x-")
            or (key, value.value) == ("additionalProperties", True)
        ):
            continue
        why = _TRACING if key == "additionalProperties" else "only properties, required and allOf are compared"
        note(value, f"{key} of the headers of message {message.name}", why)


def _patterns(name: str, header: DocumentNode, message: ChannelMessage, note: NoteAt) -> Iterator[str]:
    schema = header.mapping()
    for expression in expressions_of(
        schema, lambda what, why: note(header, f"{what} of header {name} of message {message.name}", why)
    ):
        try:
            regular_expression_of(f"/{expression}/")
        except ValueError as error:
            note(header, f"header {name} of message {message.name}", str(error))
        else:
            yield expression
