"""Applies a JSON Patch (RFC 6902) to a JSON value, with JSON Pointers (RFC 6901)."""

import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

_INDEX = re.compile(r"0|[1-9][0-9]{0,17}")
_BAD_ESCAPE = re.compile(r"~(?![01])")
_END = "-"
_WITH_VALUE = frozenset({"add", "replace", "test"})
_WITH_FROM = frozenset({"move", "copy"})
_NAMES = _WITH_VALUE | _WITH_FROM | {"remove"}


class BadPatch(Exception):
    """Raised if a JSON value is not a JSON Patch. The message names the operation."""


class PatchFails(Exception):
    """Raised if a patch cannot be applied to a value. The message names the operation, and quotes no contents."""


class ConditionFails(PatchFails):
    """Raised if a `test` operation finds a different value."""


@dataclass(frozen=True, slots=True)
class PatchOperation:
    """A patch operation. `path` and `source` (the member `from`) are the reference tokens of the pointers."""

    name: str
    path: tuple[str, ...]
    source: tuple[str, ...] = ()
    value: Any = None


def operations_of(patch: Any) -> tuple[PatchOperation, ...]:
    """Return a JSON Patch's operations. Raises BadPatch."""
    if not isinstance(patch, list):
        raise BadPatch("a JSON Patch is an array of operations (RFC 6902)")
    return tuple(_operation_of(each, i) for i, each in enumerate(patch))


def patched(document: Any, operations: Sequence[PatchOperation]) -> Any:
    """Apply all operations and return the new document. May modify the given document. Raises PatchFails."""
    for i, operation in enumerate(operations):
        try:
            document = _applied(document, operation)
        except _Missing as missing:
            raise PatchFails(f"operation {i} ({operation.name}): {missing}") from None
        except _Differs:
            raise ConditionFails(f"operation {i} (test): the value differs") from None
    return document


class _Missing(Exception):
    pass


class _Differs(Exception):
    pass


def _operation_of(found: Any, place: int) -> PatchOperation:
    if not isinstance(found, Mapping):
        raise BadPatch(f"operation {place} is not an object")
    name = found.get("op")
    if name not in _NAMES:
        raise BadPatch(f"operation {place}: op must be one of {', '.join(sorted(_NAMES))}")
    if name in _WITH_VALUE and "value" not in found:
        raise BadPatch(f"operation {place} ({name}): value is missing")
    path = _pointer_of(found, "path", place)
    source = _pointer_of(found, "from", place) if name in _WITH_FROM else ()
    if name == "move" and len(source) < len(path) and path[: len(source)] == source:
        raise BadPatch(f"operation {place} (move): a value cannot be moved into itself")
    if name == "remove" and not path:
        raise BadPatch(f"operation {place} (remove): the whole value cannot be removed")
    return PatchOperation(name, path, source, found.get("value"))


def _pointer_of(operation: Mapping[str, Any], member: str, place: int) -> tuple[str, ...]:
    pointer = operation.get(member)
    if not isinstance(pointer, str) or (pointer and not pointer.startswith("/")) or _BAD_ESCAPE.search(pointer):
        raise BadPatch(f'operation {place}: {member} must be a JSON Pointer, such as "/lines/0"')
    return tuple(token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:])


def _applied(document: Any, operation: PatchOperation) -> Any:
    path = operation.path
    match operation.name:
        case "add":
            return _with(document, path, deepcopy(operation.value))
        case "remove":
            return _without(document, path)
        case "replace":
            return _replaced(document, path, deepcopy(operation.value))
        case "move":
            value = _value_at(document, operation.source)
            return document if operation.source == path else _with(_without(document, operation.source), path, value)
        case "copy":
            return _with(document, path, deepcopy(_value_at(document, operation.source)))
    if not _is_same(_value_at(document, path), operation.value):
        raise _Differs
    return document


def _with(document: Any, path: Sequence[str], value: Any) -> Any:
    """Return the document with a value added. In an array, the value is inserted before the element at its index."""
    if not path:
        return value
    parent, token = _value_at(document, path[:-1]), path[-1]
    if isinstance(parent, dict):
        parent[token] = value
    elif isinstance(parent, list):
        parent.insert(len(parent) if token == _END else _index_of(token, len(parent) + 1), value)
    else:
        raise _Missing("the parent of the path is not an object or an array")
    return document


def _replaced(document: Any, path: Sequence[str], value: Any) -> Any:
    """Return the document with a value replaced. A member of an object keeps its position."""
    _value_at(document, path)
    if not path:
        return value
    parent, token = _value_at(document, path[:-1]), path[-1]
    parent[token if isinstance(parent, dict) else int(token)] = value
    return document


def _without(document: Any, path: Sequence[str]) -> Any:
    _value_at(document, path)
    parent, token = _value_at(document, path[:-1]), path[-1]
    del parent[token if isinstance(parent, dict) else int(token)]
    return document


def _value_at(document: Any, path: Sequence[str]) -> Any:
    for token in path:
        if isinstance(document, dict) and token in document:
            document = document[token]
        elif isinstance(document, list):
            document = document[_index_of(token, len(document))]
        else:
            raise _Missing("the path does not exist")
    return document


def _index_of(token: str, end: int) -> int:
    if _INDEX.fullmatch(token) is None or int(token) >= end:
        raise _Missing("the path has no index of the array")
    return int(token)


def _is_same(one: Any, other: Any) -> bool:
    """Return whether two JSON values are equal. Plain `==` does not suffice: in Python, `True == 1`."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_is_same(value, other[name]) for name, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_same, one, other))
    return bool(one == other)
