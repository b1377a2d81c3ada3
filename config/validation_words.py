"""Describes invalid values: the key, the expected value, and the given value unless it is secret."""

from collections.abc import Iterable
from typing import Any

from sluicegate.config.corrections import correction_of, misnomer_of
from sluicegate.config.files.source import Path, Problem, Source
from sluicegate.config.keys import annotation_at, each_key_of, holds_secret, item_of, keys_of, renamed, section_of
from sluicegate.config.mistakes import SectionMistakes
from sluicegate.config.values.near_names import nearest
from sluicegate.config.values.quantity import format_quantity

_KEY = "[key]"
_UNKNOWN, _MISSING = "unexpected_keyword_argument", "missing"
_RENAMED_VALUES = {"refuse": "reject"}


def problems_of(details: Iterable[Any], source: Source, root: type[Any]) -> list[Problem]:
    """Return the problems in pydantic's errors. A required key that is only misspelled is not reported as missing.

    `root` is the section that describes the whole file.
    """
    found = list(details)
    meant = {_meant(_path_of(detail), root) for detail in found if detail["type"] == _UNKNOWN}
    return [
        problem
        for detail in found
        if detail["type"] != _MISSING or _path_of(detail) not in meant
        for problem in _problems_of(detail, source, root)
    ]


def _meant(path: Path, root: type[Any]) -> Path | None:
    """Return the path of the key that an unknown one probably meant."""
    close = nearest(str(path[-1]), _known_keys(path[:-1], root))
    return None if close is None else (*path[:-1], close)


def _problems_of(detail: Any, source: Source, root: type[Any]) -> list[Problem]:
    """Return the problems in one error. Several mistakes in a section are separate problems."""
    error = detail.get("ctx", {}).get("error")
    if isinstance(error, SectionMistakes):
        path = _path_of(detail)
        return [Problem(source.key_of(path + at), source.place_of(path + at), text) for at, text in error.found]
    return [_problem_of(detail, source, root)]


def _path_of(detail: Any) -> Path:
    return tuple(part for part in detail["loc"] if part != _KEY)


def _problem_of(detail: Any, source: Source, root: type[Any]) -> Problem:
    path = _path_of(detail)
    place = source.place_of(path)
    kind = detail["type"]
    if kind == _UNKNOWN:
        if detail["input"] is None and holds_secret(annotation_at(root, path[:-1])):
            known = ", ".join(_known_keys(path[:-1], root))  # a value in braces looks like a key
            return Problem(source.key_of(path[:-1]), place, f"a key without a value; known keys: {known}")
        return Problem(source.key_of(path), place, _unknown(path, detail["input"], root))
    if kind == _MISSING:
        empty = path in source.places
        return Problem(source.key_of(path), place, "it is empty" if empty else "this key is required")
    is_renamed = str(detail["input"]) in _RENAMED_VALUES
    correction = None if is_renamed else correction_of(path, detail["input"], source.data, root)
    if kind == "value_error":
        message = str(detail["ctx"]["error"])
    else:
        message = _expected(kind, detail, path, root, correction is not None)
        if kind not in _SHAPES and not holds_secret(annotation_at(root, path)):
            message += f"; found {format_quantity(detail['input'])}"
    return Problem(source.key_of(path), place, message if correction is None else f"{message}; {correction}")


_SHAPES = frozenset({"dataclass_type", "dict_type", "tuple_type"})


def _expected(kind: str, detail: Any, path: Path, root: type[Any], is_brief: bool) -> str:
    """Describe the expected value in words. Use fewer if `is_brief`, because a correction follows."""
    if kind in ("dataclass_type", "tuple_type"):
        return _expected_shape(kind, path, root, is_brief)
    if kind == "dict_type":
        return _expected_names(path, root)
    if kind in ("string_type", "string_sub_type"):
        return "expected a text"
    if kind == "string_unicode":
        return "the text contains a lone surrogate (half of a character)"
    if kind == "literal_error":
        expected = str(detail["ctx"]["expected"])
        return f"expected {expected}" if is_brief else _expected_choice(expected, str(detail["input"]))
    if kind in ("bool_type", "bool_parsing"):
        return "expected true or false"
    message = str(detail["msg"])
    return f"{message[0].lower()}{message[1:]}"


def _expected_shape(kind: str, path: Path, root: type[Any], is_brief: bool) -> str:
    shape = "a section" if kind == "dataclass_type" else "a list"
    if is_brief:
        return f"expected {shape}"
    if kind == "dataclass_type":
        return f"expected {shape}; known keys: {', '.join(_known_keys(path, root))}"
    item = section_of(item_of(annotation_at(root, path)))
    return f"expected {shape}" + (f", each item beginning with `- {_first_key(item)}:`" if item else "")


def _expected_choice(expected: str, found: str) -> str:
    known = {word.lower(): word for word in expected.split("'")[1::2]}
    current = _RENAMED_VALUES.get(found)
    if current in known:
        return f"expected {expected}; {found} was renamed to {current}"
    close = known.get(nearest(found.lower(), known) or "")
    return f"expected {expected}" + (f"; did you mean {close}?" if close else "")


def _expected_names(path: Path, root: type[Any]) -> str:
    if section_of(item_of(annotation_at(root, path))) is not None:
        return "expected names, each with keys below it"
    return 'expected {node id: "host:port"}' if path[-1] == "brokers" else "expected {name: value}"


def _unknown(path: Path, value: Any, root: type[Any]) -> str:
    known = _known_keys(path[:-1], root)
    word = str(path[-1])
    section = section_of(annotation_at(root, path[:-1]))
    current = renamed(section, word) if section is not None else None
    if current is not None:
        return f"no such key; it was renamed to {current}"
    meant = misnomer_of(path, value, root)
    if meant is not None:
        return f"no such key; {meant}"
    nested = [key for key in known if key.startswith(f"{word}.")]
    if nested:
        return f"no such key; dots are part of key names, write {nested[0]}: …; known keys: {', '.join(known)}"
    close = nearest(word, known)
    return "no such key; " + (f"did you mean {close}?" if close else f"known keys: {', '.join(known)}")


def _first_key(section: type[Any]) -> str:
    required = (key.name for key in each_key_of(section) if key.is_required)
    return next(required, next(iter(keys_of(section))))


def _known_keys(path: Path, root: type[Any]) -> list[str]:
    """Return the keys that `path` may have."""
    section = section_of(annotation_at(root, path))
    return list(keys_of(section)) if section is not None else []
