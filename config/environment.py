"""Overrides from the environment: SLUICEGATE__ADMIN__LISTEN=127.0.0.1:9650 sets admin.listen.

Parts are separated by two underscores; a dot in a key is written as one (MESSAGE_TIMESTAMP_TYPE), a list item by its
number. Values are read as YAML, so numbers and [lists] work.
"""

from collections.abc import Mapping
from itertools import pairwise
from types import UnionType
from typing import Any, Union, get_args, get_origin

import yaml
from pydantic import BaseModel

from config.model import Config
from config.suggestions import nearest
from config.yaml_source import Path, Problem, Source

PREFIX = "SLUICEGATE__"


def apply_environment(source: Source, environment: Mapping[str, str]) -> None:
    """Put every override into `source`; unknown keys become problems that name the variable."""
    for variable in sorted(environment):
        if variable.startswith(PREFIX):
            parts = variable[len(PREFIX) :].split("__")
            found = _resolve(parts, variable, source)
            if found is not None:
                _put(source, found, environment[variable], variable)


def _resolve(parts: list[str], variable: str, source: Source) -> Path | None:
    """The path that a variable's parts name, or None and a problem."""
    annotation: Any = Config
    path: list[str | int] = []
    for part in parts:
        annotation = _unwrapped(annotation)
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            keys = {
                _spelled(field.alias or name): (field.alias or name, field.annotation)
                for name, field in annotation.model_fields.items()
            }
            if part.lower() not in keys:
                hint = nearest(part.lower(), keys)
                close = f"; did you mean {hint.upper()}?" if hint else ""
                source.problems.append(Problem("", f"environment {variable}", f"no key {part!r} here{close}"))
                return None
            key, annotation = keys[part.lower()]
            path.append(key)
        elif get_origin(annotation) in (tuple, dict) and part.isdigit():
            path.append(int(part))
            annotation = [a for a in get_args(annotation) if a is not Ellipsis][-1]
        else:
            source.problems.append(Problem("", f"environment {variable}", f"{part!r} leads nowhere"))
            return None
    return tuple(path)


def _unwrapped(annotation: Any) -> Any:
    """An optional type without its None; Annotated types as they are inside."""
    if get_origin(annotation) in (Union, UnionType):
        return next(a for a in get_args(annotation) if a is not type(None))
    return annotation


def _spelled(key: str) -> str:
    return key.replace(".", "_")


def _put(source: Source, path: Path, text: str, variable: str) -> None:
    place = f"environment {variable}"
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        value = text
    node: Any = source.data
    for part, following in pairwise(path):
        node = _child(node, part, [] if isinstance(following, int) and path[0] == "topics" else {})
        if node is None:
            source.problems.append(Problem("", place, "the items of a list must be given in order, from 0"))
            return
    if isinstance(node, list) and isinstance(path[-1], int):
        if path[-1] > len(node):
            source.problems.append(Problem("", place, "the items of a list must be given in order, from 0"))
            return
        node[path[-1] : path[-1] + 1] = [value]
    else:
        node[path[-1]] = value
    source.places[path] = place


def _child(node: Any, part: str | int, empty: Any) -> Any:
    if isinstance(node, list):
        if not isinstance(part, int) or part > len(node):
            return None
        if part == len(node):
            node.append(empty)
        return node[part]
    if not isinstance(node.get(part), dict | list):
        node[part] = empty
    return node[part]
