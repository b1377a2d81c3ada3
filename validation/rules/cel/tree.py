"""Parses the tree of a compiled CEL expression from the runtime's serialization.

The bytes are a google.protobuf.Any that contains a cel.expr.CheckedExpr. Field numbers are those in cel-spec's
checked.proto and syntax.proto. Macros (`all`, `map` and so on) are expanded to Loops.
"""

from collections.abc import Iterator
from dataclasses import dataclass

_ANY_VALUE, _CHECKED_EXPR = 2, 4
_CONSTANT, _IDENT, _SELECT, _CALL, _LIST, _STRUCT, _COMPREHENSION = 3, 4, 5, 6, 7, 8, 9
_STRING_VALUE, _BYTES_VALUE = 6, 7
_VARINT, _FIXED64, _BYTES = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal. `text` is the content of a string. `size` is the size in bytes of a string or bytes, or else 1."""

    size: int
    text: str | None = None
    is_number: bool = False


@dataclass(frozen=True, slots=True)
class Name:
    """A variable, or a type."""

    name: str


@dataclass(frozen=True, slots=True)
class Select:
    """A field or key of `operand`, or a test whether it exists (`has`)."""

    operand: "Node"
    field: str


@dataclass(frozen=True, slots=True)
class Call:
    """A function or operator. A receiver is the first of `args`."""

    function: str
    args: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list literal."""

    items: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class MapOf:
    """A map literal, or a message of the type `message`. `parts` are its keys and values."""

    message: str
    parts: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Loop:
    """An expanded macro.

    It runs `step` for each item of `over` while `condition` is true, and accumulates the results in `gathered`.
    """

    names: tuple[str, ...]
    over: "Node"
    gathered: str
    initial: "Node"
    condition: "Node"
    step: "Node"
    result: "Node"


Node = Constant | Name | Select | Call | ListOf | MapOf | Loop


def tree_of(serialized: bytes) -> Node:
    """Return the tree from `Expression.serialize()`. Raises ValueError for other bytes."""
    return _node(_one(_one(serialized, _ANY_VALUE), _CHECKED_EXPR))


def variables_of(node: Node, bound: frozenset[str] = frozenset()) -> Iterator[Name | Select]:
    """Yield the free variables, each as the Select of its field if it has one."""
    match node:
        case Name(name):
            if name not in bound:
                yield node
        case Select(Name(name)):
            if name not in bound:
                yield node
        case Select(operand):
            yield from variables_of(operand, bound)
        case Loop():
            yield from variables_of(node.over, bound)
            yield from variables_of(node.initial, bound)
            inner = bound | {node.gathered, *node.names}
            for part in (node.condition, node.step, node.result):
                yield from variables_of(part, inner)
        case _:
            for part in parts_of(node):
                yield from variables_of(part, bound)


def keys_of(node: Node, variable: str) -> frozenset[str] | None:
    """Return the constant keys with which an expression reads a map, or None if it may read any key."""
    match node:
        case Name(name) if name == variable:
            return None
        case Select(Name(name), field) if name == variable:
            return frozenset({field})
        case Call("_[_]", (Name(name), Constant(_, str(key)))) if name == variable:
            return frozenset({key})
        case Call("@in", (Constant(_, str(key)), Name(name))) if name == variable:
            return frozenset({key})
    found: frozenset[str] = frozenset()
    for part in parts_of(node):
        keys = keys_of(part, variable)
        if keys is None:
            return None
        found |= keys
    return found


def parts_of(node: Node) -> tuple[Node, ...]:
    """Return a node's immediate children."""
    match node:
        case Select(operand):
            return (operand,)
        case Call(_, args):
            return args
        case ListOf(items):
            return items
        case MapOf(_, parts):
            return parts
        case Loop():
            return (node.over, node.initial, node.condition, node.step, node.result)
        case _:
            return ()


def _node(data: bytes) -> Node:
    for number, content in _fields(data):
        if not isinstance(content, bytes):
            continue
        if number == _CONSTANT:
            return _constant(content)
        if number == _IDENT:
            return Name(_text(content, 1))
        if number == _SELECT:
            return Select(_node(_one(content, 1)), _text(content, 2))
        if number == _CALL:
            return Call(_text(content, 2), tuple(_node(part) for part in (*_all(content, 1), *_all(content, 3))))
        if number == _LIST:
            return ListOf(tuple(_node(part) for part in _all(content, 1)))
        if number == _STRUCT:
            parts = tuple(_node(part) for entry in _all(content, 2) for part in (*_all(entry, 3), *_all(entry, 4)))
            return MapOf(_text(content, 1), parts)
        if number == _COMPREHENSION:
            return _loop(content)
    raise ValueError("a part of the expression has an unknown kind")


def _constant(data: bytes) -> Constant:
    for number, content in _fields(data):
        if number == _STRING_VALUE and isinstance(content, bytes):
            return Constant(len(content) + 1, content.decode())
        if number == _BYTES_VALUE and isinstance(content, bytes):
            return Constant(len(content) + 1)
    return Constant(1, is_number=True)  # a number, true, false or null cannot be concatenated


def _loop(data: bytes) -> Loop:
    names = tuple(name for name in (_text(data, 1), _text(data, 8)) if name)
    over, initial, condition, step, result = (_node(_one(data, number)) for number in (2, 4, 5, 6, 7))
    return Loop(names, over, _text(data, 3), initial, condition, step, result)


def _text(data: bytes, wanted: int) -> str:
    return next(iter(_all(data, wanted)), b"").decode()


def _one(data: bytes, wanted: int) -> bytes:
    found = _all(data, wanted)
    if len(found) != 1:
        raise ValueError(f"expected one field {wanted} of the compiled expression, found {len(found)}")
    return found[0]


def _all(data: bytes, wanted: int) -> list[bytes]:
    return [content for number, content in _fields(data) if number == wanted and isinstance(content, bytes)]


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the number and the content of each field in a message."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        if kind == _VARINT:
            number, at = _varint(data, at)
            yield key >> 3, number
        elif kind == _FIXED64:
            yield key >> 3, int.from_bytes(data[at : at + 8], "little")
            at += 8
        elif kind == _BYTES:
            size, at = _varint(data, at)
            yield key >> 3, data[at : at + size]
            at += size
        else:
            raise ValueError(f"wire type {kind} in the compiled expression")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
        shift += 7
