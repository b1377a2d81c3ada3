"""Checks messages against their schema's `buf.validate` constraints, with protovalidate's own library.

The library has no bound of its own, and its `now` is the machine's clock, so it runs in the rules process.
"""

from collections.abc import Iterable, Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

from sluicegate.validation.rules.rule import UNBOUNDED, RuledRecord, SchemaError
from sluicegate.validation.rules.schemas.content import SchemaUnusable
from sluicegate.validation.rules.simple_rule import SimpleRule

_EXTRA: Final = "constraints need protovalidate: pip install 'sluicegate[rules,protovalidate]'"
_MOST_WORDS, _MOST_OF_A_PART = 200, 80
_TOO_MANY_ITEMS: Final = "Iteration budget exceeded"
_MESSAGE, _ONEOF, _FIELD, _PREDEFINED = "message", "oneof", "field", "predefined"
_OPTIONS: Final = {_MESSAGE: "Message", _ONEOF: "Oneof", _FIELD: "Field", _PREDEFINED: "Field"}


def check_installed() -> None:
    """Raise SchemaUnusable if the library is missing."""
    if find_spec("protovalidate") is None:
        raise SchemaUnusable(_EXTRA)


class Constraints:
    """The compiled constraints of some message types in a schema, and of all types that their fields reach."""

    def __init__(self, classes: Iterable[Any]) -> None:
        """Compile the constraints for these classes of google.protobuf. Raises SchemaUnusable."""
        check_installed()
        library = import_module("protovalidate")
        self._unusable = library.CompilationError
        self._violations = library.Validator().collect_violations
        self._unreadable = import_module("google.protobuf.message").DecodeError
        self._texts: set[str] = set()
        for descriptor in reachable_messages(each.DESCRIPTOR for each in classes):
            self._compile(_class_of(descriptor))
            self._texts.update(_texts_of_message(descriptor))

    def fault(self, message_class: Any, data: bytes) -> str | None:
        """Return a message's first violation, as a phrase that follows "the value ", or None. Raises SchemaError."""
        message = message_class()
        try:
            message.ParseFromString(data)
        except self._unreadable:
            # The rule for the schema reports data that are not a message. Here, memory may be too low to read the
            # message.
            return f"cannot be read as {message.DESCRIPTOR.full_name}"
        prefix = f"does not meet the constraints of {message.DESCRIPTOR.full_name[:_MOST_OF_A_PART]}"
        try:
            violations = self._violations(message, fail_fast=True)
        except self._unusable as error:
            raise SchemaError(_words_of(error)) from error
        except MemoryError:
            raise
        except Exception as error:  # the error's text may quote the message
            if _TOO_MANY_ITEMS in str(error)[:_MOST_WORDS]:
                return "is too costly to validate: too many items for the loops of a constraint"
            return f"{prefix}: one of the constraints cannot be evaluated"
        return f"{prefix}: {self._words(violations[0].proto)}" if violations else None

    def _compile(self, message_class: Any) -> None:
        try:
            self._violations(message_class())
        except self._unusable as error:
            name = message_class.DESCRIPTOR.full_name
            raise SchemaUnusable(f"the constraints of {name} cannot be compiled: {_words_of(error)}") from error
        except RuntimeError:
            return  # the constraints compiled, but an empty message need not satisfy them

    def _words(self, violation: Any) -> str:
        """Return the path, the message and the rule's id.

        Omits messages that expressions compute: they may quote the record.
        """
        path = "" if violation.field is None else ".".join(_shown(each) for each in violation.field.elements)
        rule = violation.rule.elements[-1].field_name if violation.rule is not None else ""
        is_standard = bool(rule) and not rule.startswith(("[", "cel"))
        text = violation.message if is_standard or violation.message in self._texts else ""
        parts = (path, text, f"({violation.rule_id[: _MOST_OF_A_PART - 2]})")
        return " ".join(part[:_MOST_OF_A_PART] for part in parts if part)


class MeetsMessageConstraints(SimpleRule):
    """A rule that requires a message to meet the constraints of its type (`ExpressionOfSchema`)."""

    def __init__(self, constraints: Constraints, message_class: Any) -> None:
        self._constraints = constraints
        self._class = message_class

    def fault(self, record: RuledRecord) -> str | None:
        """Return the fault of a record that has the message as its value, or None. Raises SchemaError."""
        record.budget.spend(UNBOUNDED)  # constraints may contain loops and patterns
        return None if record.value is None else self._constraints.fault(self._class, record.value)


def _words_of(error: Exception) -> str:
    return " ".join(str(error).split())[:_MOST_WORDS]


def _shown(element: Any) -> str:
    """Return an element of a path, without a map's key, which belongs to the record."""
    subscript = element.subscript
    if subscript is None:
        return str(element.field_name)
    return f"{element.field_name}[{subscript.value if subscript.field == 'index' else '…'}]"


def reachable_messages(descriptors: Iterable[Any]) -> Iterator[Any]:
    """Yield the message types, and the types of their fields at every depth, except map entries."""
    waiting = list(descriptors)
    seen = {each.full_name for each in waiting}
    while waiting:
        descriptor = waiting.pop()
        if not descriptor.GetOptions().map_entry:
            yield descriptor
        for field in descriptor.fields:
            inner = field.message_type
            if inner is not None and inner.full_name not in seen:
                seen.add(inner.full_name)
                waiting.append(inner)


def _texts_of_message(descriptor: Any) -> Iterator[str]:
    """Yield the messages that the schema's author wrote for the constraints of a message type and its fields."""
    pool = descriptor.file.pool
    yield from _texts_of(pool, _MESSAGE, descriptor)
    for oneof in descriptor.oneofs:
        yield from _texts_of(pool, _ONEOF, oneof)
    for field in descriptor.fields:
        yield from _texts_of(pool, _FIELD, field)


def _texts_of(pool: Any, extension: str, described: Any) -> Iterator[str]:
    """Yield the strings in a descriptor's options.

    Only the descriptor's own pool can read the options with their extensions.
    """
    options = described.GetOptions()
    if not options.ByteSize():
        return
    try:
        found = pool.FindExtensionByName(f"buf.validate.{extension}")
        of_pool = _class_of(pool.FindMessageTypeByName(f"google.protobuf.{_OPTIONS[extension]}Options"))
    except KeyError:
        return  # the schema imports no constraints
    read = of_pool.FromString(options.SerializeToString())
    if read.HasExtension(found):
        yield from _texts(pool, read.Extensions[found])


def _texts(pool: Any, rules: Any) -> Iterator[str]:
    name = rules.DESCRIPTOR.name
    if name == "Rule":
        yield rules.message or _false(rules.expression)
    elif name == "OneofRules":
        yield "exactly one field is required in oneof"
    elif name == "MessageOneofRule":
        yield f"only one of {', '.join(rules.fields)} can be set"
        yield f"one of {', '.join(rules.fields)} must be set"
    for field, value in rules.ListFields():
        if field.is_extension:
            yield from _texts_of(pool, _PREDEFINED, field)
        elif field.name == "cel_expression":
            yield from map(_false, value)
        elif field.message_type is not None:
            for each in (value,) if hasattr(value, "DESCRIPTOR") else value:
                yield from _texts(pool, each)


def _false(expression: str) -> str:
    return f'"{expression}" returned false'


def _class_of(descriptor: Any) -> Any:
    return import_module("google.protobuf.message_factory").GetMessageClass(descriptor)
