"""Replaces sensitive strings in a JSON text; all other bytes of the text stay.

The text must be strict JSON (RFC 8259) in UTF-8. Arrays are passed through: a path means the field in an object, and in
each object of an array. All of several fields with one name are replaced, because parsers disagree about which counts.
"""

import json
import re
from collections.abc import Callable

from sluicegate.validation.sensitive.paths import Action, Node, SensitiveFields

_STRING = re.compile(rb'"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+"')
_OTHER = re.compile(rb"(?:true|false|null|-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?)(?![0-9A-Za-z.+-])")
_SPACE = re.compile(rb"[ \t\n\r]*+")
_MOST_LEVELS = 200
_KINDS = {b"t": "a boolean", b"f": "a boolean", b"{": "an object"}

Nodes = tuple[Node, ...]


class Unmaskable(Exception):
    """A value cannot be masked, or has a field that is not allowed; the text quotes nothing from it. `fields`: the
    policy that it violates; None: the value cannot be parsed, so all of them.
    """

    def __init__(self, text: str, fields: SensitiveFields | None = None) -> None:
        super().__init__(text)
        self.fields = fields


def masked_json(text: bytes, root: Node, worked: Callable[[int], None]) -> bytes:
    """Return the text with replaced fields, the same object if there are none. Raises Unmaskable and what `worked`
    raises, which is called with each token's size.
    """
    try:
        text.decode()
    except UnicodeDecodeError as error:
        raise Unmaskable(f"the value is not UTF-8 from byte {error.start} on") from None
    try:
        return _Walk(text, worked).masked(root)
    except IndexError:
        raise Unmaskable("the value ends within its JSON") from None


class _Walk:
    """One pass over a text. `IndexError` is raised where the text ends too early."""

    def __init__(self, text: bytes, worked: Callable[[int], None]) -> None:
        self._text = text
        self._at = 0
        self._worked = worked
        self._parts: list[bytes] = []
        self._copied = 0

    def masked(self, root: Node) -> bytes:
        open_values: list[tuple[bool, Nodes]] = []  # whether it is an object, and the nodes of its place
        nodes: Nodes = (root,)
        while True:
            first = self._next()
            if first in b"{[":
                is_object = first == b"{"
                if is_object:
                    self._check_leaf(nodes, first)
                self._at += 1
                if self._next() == (b"}" if is_object else b"]"):
                    self._at += 1
                else:
                    open_values.append((is_object, nodes))
                    if len(open_values) > _MOST_LEVELS:
                        raise Unmaskable(f"the value is nested more than {_MOST_LEVELS} levels deep")
                    nodes = self._below(nodes) if is_object else nodes
                    continue
            else:
                self._scalar(first, nodes)
            while open_values:
                is_object, outer = open_values[-1]
                found = self._next()
                self._at += 1
                if found == b",":
                    self._next()
                    nodes = self._below(outer) if is_object else outer
                    break
                if found != (b"}" if is_object else b"]"):
                    raise self._not_json(self._at - 1)
                open_values.pop()
            else:
                return self._end()

    def _next(self) -> bytes:
        """Skip white space; return the next byte."""
        found = _SPACE.match(self._text, self._at)
        self._at = found.end() if found is not None else self._at
        return bytes((self._text[self._at],))

    def _below(self, nodes: Nodes) -> Nodes:
        """Read a name and its colon; return the nodes of its value."""
        token = self._string()
        if self._next() != b":":
            raise self._not_json(self._at)
        self._at += 1
        if not nodes:
            return nodes
        name = _text_of(token)
        found = (each for node in nodes for each in (node.by_name.get(name), node.any_name))
        return tuple(each for each in found if each is not None)

    def _scalar(self, first: bytes, nodes: Nodes) -> None:
        start = self._at
        fields = _fields_of(nodes)
        if first == b'"':
            token = self._string()
            if fields is not None:
                self._check_action(fields, nodes)
                self._parts += (self._text[self._copied : start], _encoded(fields.replaced(_text_of(token))))
                self._copied = self._at
            return
        found = _OTHER.match(self._text, start)
        if found is None:
            raise self._not_json(start)
        self._at = found.end()
        self._worked(self._at - start)
        if found.group() != b"null":
            self._check_leaf(nodes, first)

    def _string(self) -> bytes:
        found = _STRING.match(self._text, self._at)
        if found is None:
            raise self._not_json(self._at)
        self._worked(found.end() - self._at)
        self._at = found.end()
        return found.group()

    def _check_leaf(self, nodes: Nodes, first: bytes) -> None:
        """Raise Unmaskable if a value that is no string is sensitive."""
        fields = _fields_of(nodes)
        if fields is None:
            return
        self._check_action(fields, nodes)
        kind = _KINDS.get(first, "a number")
        raise Unmaskable(f"{_shown(nodes, fields)} is {kind}, and only strings can be masked; send a string", fields)

    def _check_action(self, fields: SensitiveFields, nodes: Nodes) -> None:
        if fields.action is Action.REJECT:
            raise Unmaskable(f"{_shown(nodes, fields)} is not allowed in this topic; leave it out", fields)

    def _end(self) -> bytes:
        found = _SPACE.match(self._text, self._at)
        if found is None or found.end() != len(self._text):
            raise self._not_json(self._at)
        return b"".join((*self._parts, self._text[self._copied :])) if self._parts else self._text

    def _not_json(self, at: int) -> Unmaskable:
        return Unmaskable(f"the value is not valid JSON at byte {at}, so its fields cannot be found")


def _fields_of(nodes: Nodes) -> SensitiveFields | None:
    return next((node.fields for node in nodes if node.fields is not None), None)


def _shown(nodes: Nodes, fields: SensitiveFields) -> str:
    """Return the path in the configuration, never a name from the record."""
    return "the field " + next(".".join(node.path) for node in nodes if node.fields is fields)


def _text_of(token: bytes) -> str:
    if b"\\" not in token:
        return token[1:-1].decode()
    text: str = json.loads(token)
    return text


def _encoded(text: str) -> bytes:
    return json.dumps(text).encode()
