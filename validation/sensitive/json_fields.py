"""Replaces sensitive strings in a JSON text; all other bytes of the text stay.

The text must be strict JSON (RFC 8259) in UTF-8. Arrays are passed through: a path means the field in an object, and in
each object of an array. All of several fields with one name are replaced, because parsers disagree about which counts.
"""

import json
import re
from collections.abc import Callable

from sluicegate.validation.sensitive.edits import (
    Edits,
    Nodes,
    Unmaskable,
    below,
    check_other,
    check_string,
    fields_of,
)

_STRING = re.compile(rb'"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+"')
_OTHER = re.compile(rb"(?:true|false|null|-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?)(?![0-9A-Za-z.+-])")
_SPACE = re.compile(rb"[ \t\n\r]*+")
_MOST_LEVELS = 200
_KINDS = {b"t": "a boolean", b"f": "a boolean"}


def edits_of_json(text: bytes, root: Nodes, worked: Callable[[int], None]) -> Edits:
    """Return the replacements in a text. Raises Unmaskable and what `worked` raises, which is called with each token's
    size.
    """
    try:
        text.decode()
    except UnicodeDecodeError as error:
        raise Unmaskable(f"the value is not UTF-8 from byte {error.start} on") from None
    try:
        return _Walk(text, worked).edits(root)
    except IndexError:
        raise Unmaskable("the value ends within its JSON") from None


class _Walk:
    """One pass over a text. `IndexError` is raised where the text ends too early."""

    def __init__(self, text: bytes, worked: Callable[[int], None]) -> None:
        self._text = text
        self._at = 0
        self._worked = worked
        self._edits = Edits()

    def edits(self, root: Nodes) -> Edits:
        open_values: list[tuple[bool, Nodes]] = []  # whether it is an object, and the nodes of its place
        nodes = root
        while True:
            first = self._next()
            if first in b"{[":
                is_object = first == b"{"
                if is_object:
                    check_other(nodes, "an object")
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
        return below(nodes, _text_of(token)) if nodes else nodes

    def _scalar(self, first: bytes, nodes: Nodes) -> None:
        start = self._at
        if first == b'"':
            token = self._string()
            fields = fields_of(nodes)
            if fields is not None:
                check_string(nodes, fields)
                text = _text_of(token)
                replaced = fields.replaced(text)
                if replaced != text:
                    self._edits.replace(start, self._at, json.dumps(replaced).encode(), fields)
            return
        found = _OTHER.match(self._text, start)
        if found is None:
            raise self._not_json(start)
        self._at = found.end()
        self._worked(self._at - start)
        if found.group() != b"null":
            check_other(nodes, _KINDS.get(first, "a number"))

    def _string(self) -> bytes:
        found = _STRING.match(self._text, self._at)
        if found is None:
            raise self._not_json(self._at)
        self._worked(found.end() - self._at)
        self._at = found.end()
        return found.group()

    def _end(self) -> Edits:
        found = _SPACE.match(self._text, self._at)
        if found is None or found.end() != len(self._text):
            raise self._not_json(self._at)
        return self._edits

    def _not_json(self, at: int) -> Unmaskable:
        return Unmaskable(f"the value is not valid JSON at byte {at}, so its fields cannot be found")


def _text_of(token: bytes) -> str:
    if b"\\" not in token:
        return token[1:-1].decode()
    text: str = json.loads(token)
    return text
