"""Replaces sensitive strings in JSON. All other bytes stay unchanged.

The input must be strict JSON (RFC 8259) in UTF-8. Arrays are not part of a path: a path refers to the field in an
object, and in each object in an array. If several fields have the same name, all are replaced, because parsers disagree
about which one applies.

Regular expressions match windows of the JSON, which may cut a long token. `_long_string`, `_long_number` and
`_text_pieces` handle such tokens.
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import Final

from sluicegate.validation.sensitive.edits import (
    Nodes,
    Unmaskable,
    check_not_sensitive,
    check_string,
    fields_of,
    nodes_below,
)
from sluicegate.validation.sensitive.paths import FieldPolicy
from sluicegate.validation.sensitive.texts import PIECE_BYTES, distinguishing_bytes, first_not_utf8
from sluicegate.validation.sensitive.writing import ValueWriter

_CHARACTERS: Final = rb'(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+'
_CONTENT = re.compile(_CHARACTERS)
_STRING = re.compile(b'"' + _CHARACTERS + b'"')
_OTHER = re.compile(rb"(?:true|false|null|-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?)(?![0-9A-Za-z.+-])")
_AFTER_NUMBER = re.compile(rb"[0-9A-Za-z.+-]")
_DIGITS = re.compile(rb"[0-9]*+")
_SPACE = re.compile(rb"[ \t\n\r]*+")
_MOST_LEVELS = 200
_TOKEN_WORK: Final = 1024
_COUNTED_WORK: Final = 64 * 1024
_ESCAPE_WORK: Final = 16
"""The cost of reading an escaped byte (ns)."""
_QUOTE, _COMMA, _COLON, _OBJECT, _OBJECT_END, _ARRAY, _ARRAY_END = b'",:{}[]'
_BLANK = 0x20
_WHITE_SPACE = frozenset(b" \t\n\r")
_SIGNS_AND_DIGITS = frozenset(b"-0123456789")
_KINDS = {ord("t"): "a boolean", ord("f"): "a boolean"}
_WITHIN_CHARACTER = range(0x80, 0xC0)


def mask_json(value: bytes, begin: int, root: Nodes, writer: ValueWriter, worked: Callable[[int], None]) -> None:
    """Write the replacements in the JSON, starting at `begin`.

    Raises Unmaskable, and the errors of `writer` and `worked`.
    """
    wrong = first_not_utf8(value, begin, len(value), worked)
    if wrong is not None:
        raise Unmaskable(f"the value is invalid UTF-8 at byte {wrong - begin}")
    walk = _Walk(value, begin, writer, worked)
    try:
        walk.values(root)
    except IndexError:
        raise Unmaskable("the value ends in the middle of its JSON") from None


class _Walk:
    """A pass over JSON. Raises IndexError if the JSON ends too early."""

    def __init__(self, text: bytes, begin: int, writer: ValueWriter, worked: Callable[[int], None]) -> None:
        self._text = text
        self._begin = begin
        self._at = begin
        self._writer = writer
        self._worked = worked
        self._work = 0

    def values(self, root: Nodes) -> None:
        open_values: list[tuple[bool, Nodes]] = []  # whether the value is an object, and the nodes of its place
        nodes = root
        while True:
            first = self._next()
            if first in (_OBJECT, _ARRAY):
                is_object = first == _OBJECT
                if is_object and nodes:
                    check_not_sensitive(nodes, "an object")
                self._at += 1
                if self._next() == (_OBJECT_END if is_object else _ARRAY_END):
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
                if found == _COMMA:
                    self._next()
                    nodes = self._below(outer) if is_object else outer
                    break
                if found != (_OBJECT_END if is_object else _ARRAY_END):
                    raise self._not_json(self._at - 1)
                open_values.pop()
            else:
                if self._after_all(_SPACE, self._at) != len(self._text):
                    raise self._not_json(self._at)
                return

    def _count(self, work: int) -> None:
        self._work += work
        if self._work >= _COUNTED_WORK:
            counted, self._work = self._work, 0
            self._worked(counted)

    def _next(self) -> int:
        """Skip white space. Return the next byte."""
        self._count(_TOKEN_WORK)
        if self._text[self._at] <= _BLANK:
            self._skip_blanks()
        return self._text[self._at]

    def _skip_blanks(self) -> None:
        self._at = self._after_all(_SPACE, self._at)

    def _after_all(self, pattern: re.Pattern[bytes], at: int) -> int:
        """Return the position after all bytes that match a pattern, in windows of the JSON.

        The pattern must also match every prefix of such bytes that does not cut an escape.
        """
        while True:
            found = pattern.match(self._text, at, at + PIECE_BYTES)
            if found is None or found.end() == at:
                return at
            self._count(found.end() - at)
            at = found.end()

    def _below(self, nodes: Nodes) -> Nodes:
        """Read a name and its colon. Return the nodes of its value."""
        start = self._at
        self._string()
        end = self._at
        if self._next() != _COLON:
            raise self._not_json(self._at)
        self._at += 1
        return nodes_below(nodes, self._name(start, end, nodes), self._worked) if nodes else nodes

    def _scalar(self, first: int, nodes: Nodes) -> None:
        start = self._at
        if first == _QUOTE:
            self._string()
            fields = fields_of(nodes) if nodes else None
            if fields is not None:
                check_string(nodes, fields)
                new = self._replacement(start, self._at, fields)
                if new is not None:
                    written = json.dumps(new.decode("utf-8", "surrogatepass")).encode()
                    self._writer.replace(start, self._at, written, fields)
            return
        found = _OTHER.match(self._text, start, start + PIECE_BYTES)
        if found is None or found.end() == start + PIECE_BYTES:
            self._at = self._long_number(start)
        else:
            self._at = found.end()
            self._count(self._at - start)
            if found.group() == b"null":
                return
        if nodes:
            check_not_sensitive(nodes, _KINDS.get(first, "a number"))

    def _string(self) -> None:
        """Move past a string."""
        found = _STRING.match(self._text, self._at, self._at + PIECE_BYTES)
        if found is None:
            self._at = self._long_string(self._at)
        else:
            self._count(found.end() - self._at)
            self._at = found.end()

    def _long_string(self, start: int) -> int:
        if self._text[start] != _QUOTE:
            raise self._not_json(start)
        end = self._after_all(_CONTENT, start + 1)
        if self._text[end : end + 1] != b'"':
            raise self._not_json(start)
        return end + 1

    def _long_number(self, start: int) -> int:
        """Return the position after a number of any length."""
        text = self._text
        if text[start] not in _SIGNS_AND_DIGITS:
            raise self._not_json(start)
        first = start + (text[start : start + 1] == b"-")
        at = self._after_digits(first, start)
        if text[first : first + 1] == b"0" and at > first + 1:
            raise self._not_json(start)
        if text[at : at + 1] == b".":
            at = self._after_digits(at + 1, start)
        if text[at : at + 1] in (b"e", b"E"):
            at += 1
            at = self._after_digits(at + (text[at : at + 1] in (b"+", b"-")), start)
        if _AFTER_NUMBER.match(text, at) is not None:
            raise self._not_json(start)
        return at

    def _after_digits(self, at: int, start: int) -> int:
        """Return the position after at least one digit of the number at `start`."""
        end = self._after_all(_DIGITS, at)
        if end == at:
            raise self._not_json(start)
        return end

    def _name(self, start: int, end: int, nodes: Nodes) -> str:
        """Return a token's name. If it is longer than all names of the places, return only its beginning."""
        if end - start <= PIECE_BYTES:
            return _text_of(self._text[start:end])
        enough, name = distinguishing_bytes(nodes), bytearray()
        for piece in self._text_pieces(start, end):
            name += piece
            if len(name) >= enough:
                break
        return name.decode("utf-8", "surrogatepass")

    def _replacement(self, start: int, end: int, fields: FieldPolicy) -> bytes | None:
        """Return the JSON string that replaces a string, or None if it does not change."""
        if end - start <= PIECE_BYTES:
            text = _text_of(self._text[start:end]).encode("utf-8", "surrogatepass")
            self._count(_ESCAPE_WORK * len(text))
            new = fields.replaced((text,))
            return None if new == text else new
        new = fields.replaced(self._text_pieces(start, end))
        most = 2 + 6 * len(new)  # if each character is escaped
        return None if end - start <= most and b"".join(self._text_pieces(start, end)) == new else new

    def _text_pieces(self, start: int, end: int) -> Iterator[bytes]:
        """Yield a long string's content as UTF-8, with its escapes decoded. Lone surrogates are encoded unchanged."""
        text, at, last, before = self._text, start + 1, end - 1, ""
        while at < last:
            found = _CONTENT.match(text, at, min(at + PIECE_BYTES, last))
            assert found is not None
            stop = found.end()
            while text[stop] in _WITHIN_CHARACTER:
                stop -= 1
            piece = _text_of(b'"' + text[at:stop] + b'"')
            if before:  # the window may cut a surrogate pair
                piece = (before + piece).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
            before = piece[-1] if "\ud800" <= piece[-1] <= "\udbff" else ""
            yield piece[: len(piece) - len(before)].encode("utf-8", "surrogatepass")
            self._count(_ESCAPE_WORK * PIECE_BYTES)
            at = stop
        yield before.encode("utf-8", "surrogatepass")

    def _not_json(self, at: int) -> Unmaskable:
        return Unmaskable(f"the value is not valid JSON at byte {at - self._begin}, so its fields cannot be found")


def _text_of(token: bytes) -> str:
    if b"\\" not in token:
        return token[1:-1].decode()
    text: str = json.loads(token)
    return text
