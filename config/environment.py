"""Applies overrides from the environment: SLUICEGATE__ADMIN__LISTEN=127.0.0.1:9650 sets admin.listen.

Two underscores separate the parts. One underscore replaces a dot in a key (MESSAGE_TIMESTAMP_TYPE), and a number
selects a list item. A value is used as written; only a list or a whole section is parsed as YAML. An empty variable has
the same effect as a missing one.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import yaml

from sluicegate.config.files.source import Path, Problem, Source
from sluicegate.config.files.yaml_nodes import BadNode, Reader
from sluicegate.config.files.yaml_source import compose
from sluicegate.config.keys import annotation_at, is_list, item_of, keys_of, renamed, section_of
from sluicegate.config.model import Config
from sluicegate.config.values.near_names import nearest

PREFIX = "SLUICEGATE__"
_ALMOST = "SLUICEGATE_"
_MAX_DIGITS = 5
_OUT_OF_ORDER = "list items must be numbered consecutively from 0"


def apply_environment(source: Source, environment: Mapping[str, str]) -> None:
    """Apply every override to `source`. Unknown keys become problems that name the variable."""
    found = []
    for variable in environment:
        if variable.startswith(PREFIX):
            path = _resolve(variable[len(PREFIX) :].split("__"), variable, source)
            if path is not None:
                found.append((path, variable))
        elif variable.startswith(_ALMOST):
            _report_single_underscores(variable, source)
    for path, variable in sorted(found, key=lambda each: [(isinstance(part, str), part) for part in each[0]]):
        override(source, path, environment[variable], f"environment {variable}")


def override(source: Source, path: Path, text: str, place: str) -> None:
    """Set the value at `path` to the content of a variable or an option. `place` names the variable or option."""
    value: Any = text or None
    kind = annotation_at(Config, path)
    if value is not None and (section_of(kind) is not None or item_of(kind) is not None):
        value = _structure(text, is_list(kind) and path[-1] == "bootstrap")
        if value is None:
            source.problems.append(Problem("", place, "invalid YAML; lists and sections are parsed as YAML"))
            return
    _put(source, path, value, place)


def _structure(text: str, or_text: bool) -> Any:
    """Parse a YAML list or section; return None if it is invalid. If `or_text`, return anything but a list unparsed."""
    try:
        root = compose(text)
        value = Reader(lambda _path, _line: None).value(root, ()) if root is not None else None
    except (yaml.YAMLError, BadNode, RecursionError, ValueError, OverflowError):
        value = None
    return text if or_text and not isinstance(value, list) else value


def _resolve(parts: list[str], variable: str, source: Source) -> Path | None:
    """Return the path that the parts of a variable name. If they name no key, add a problem and return None."""
    path: list[str | int] = []
    for part in parts:
        kind = annotation_at(Config, tuple(path))
        section = section_of(kind)
        if section is not None:
            keys = {_spelled(key): key for key in keys_of(section)}
            if part.lower() not in keys:
                hint = renamed(section, part.lower()) or nearest(part.lower(), keys)
                close = f"; did you mean {_spelled(hint).upper()}?" if hint else ""
                source.problems.append(Problem("", f"environment {variable}", f"no key {part!r} here{close}"))
                return None
            path.append(keys[part.lower()])
        elif item_of(kind) is not None and part.isascii() and part.isdigit() and len(part) <= _MAX_DIGITS:
            path.append(int(part) if is_list(kind) else part)
        else:
            source.problems.append(Problem("", f"environment {variable}", f"{part!r} leads nowhere"))
            return None
    return tuple(path)


def _report_single_underscores(variable: str, source: Source) -> None:
    """Report a variable that names a key with single underscores, for example SLUICEGATE_LISTEN_BOOTSTRAP.

    Other variables are ignored, because Kubernetes sets variables such as SLUICEGATE_SERVICE_HOST.
    """
    parts = _parts_of(variable[len(_ALMOST) :].lower(), Config)
    if parts is not None:
        right = f"{PREFIX}{'__'.join(parts).upper()}"
        words = f"unknown variable; separate the parts by two underscores: {right}"
        source.problems.append(Problem("", f"environment {variable}", words))


def _parts_of(words: str, section: Any) -> list[str] | None:
    """Split words joined by single underscores into the keys that they name, or return None if they name none."""
    for name, annotation in keys_of(section).items():
        key = _spelled(name)
        if words == key:
            return [key]
        inner = section_of(annotation)
        if inner is not None and words.startswith(f"{key}_"):
            rest = _parts_of(words[len(key) + 1 :], inner)
            if rest is not None:
                return [key, *rest]
    return None


def _spelled(key: str) -> str:
    return key.replace(".", "_")


def _put(source: Source, path: Path, value: Any, place: str) -> None:
    node: Any = source.data
    for part, following in pairwise(path):
        kind: type[Any] = list if isinstance(following, int) else dict
        there = _get(node, part)
        if not isinstance(there, kind):
            there = kind()
            if not _set(node, part, there):
                source.problems.append(Problem("", place, _OUT_OF_ORDER))
                return
        node = there
    if not _set(node, path[-1], value):
        source.problems.append(Problem("", place, _OUT_OF_ORDER))
        return
    source.places = {each: there for each, there in source.places.items() if each[: len(path)] != path}
    source.places[path] = place


def _get(node: Any, part: str | int) -> Any:
    if isinstance(part, int):
        return node[part] if part < len(node) else None
    return node.get(part)


def _set(node: Any, part: str | int, value: Any) -> bool:
    if not isinstance(part, int):
        node[part] = value
    elif part <= len(node):
        node[part : part + 1] = [value]
    else:
        return False
    return True
