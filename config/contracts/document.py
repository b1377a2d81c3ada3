"""Reads Open Data Contract Standard contracts: YAML files that are valid against the standard's JSON Schema, v3.

The schema is part of the package `open-data-contract-standard` (extra `rules`).
"""

import json
import math
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.resources import files
from itertools import islice
from typing import Any, Final

import yaml

from sluicegate.config.files.source import Path, Problem, Source, dotted
from sluicegate.config.files.yaml_nodes import BadNode, check_tag
from sluicegate.config.values.extras import RULES_EXTRA

_EXTRA = f"contracts need libraries: {RULES_EXTRA}"
_VERSION = "apiVersion"
_BOUNDS: Final = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}
_MOST_ERRORS = 20
_STANDARD: Final = "tag:yaml.org,2002:"
_KINDS: Final = ("bool", "int", "float", "null")
_TAGS: Final = frozenset({"!", *(_STANDARD + kind for kind in (*_KINDS, "str", "timestamp"))})
_RESOLVER: Final[Any] = yaml.resolver.Resolver()
_CONSTRUCTOR: Final[Any] = yaml.constructor.SafeConstructor()


def checked_contract(source: Source) -> Source:
    """Return the content of a contract file. `problems` contains what the standard does not allow."""
    if source.readable:
        source.problems += _problems_in(source)
    return source


def value_of(node: yaml.ScalarNode) -> Any:
    """Return a scalar's value as YAML's safe reader does, except that timestamps stay strings. Raises BadNode."""
    check_tag(node, _TAGS)
    kind = node.tag.removeprefix(_STANDARD)
    if node.style is None and kind == "str":
        kind = str(_RESOLVER.resolve(yaml.ScalarNode, node.value, (True, False))).removeprefix(_STANDARD)
    if kind not in _KINDS:
        return str(node.value)
    try:
        value = getattr(_CONSTRUCTOR, f"construct_yaml_{kind}")(node)
    except (ValueError, KeyError, IndexError):
        raise BadNode(node, f"not a value of the type {kind}") from None
    if isinstance(value, float) and not math.isfinite(value):
        raise BadNode(node, "a number that JSON does not have")
    return value


def _problems_in(source: Source) -> Iterator[Problem]:
    version = source.data.get(_VERSION)
    if isinstance(version, str) and not version.startswith("v3."):
        words = f"version 3 of the Open Data Contract Standard is read; found {version}"
        yield Problem(_VERSION, source.place_of((_VERSION,)), words)
        return
    if isinstance(version, str) and version.startswith("v3.0."):
        _write_bounds_as_in_3_1(source.data)
    try:
        validator = _validator()
    except ModuleNotFoundError:
        yield Problem("", source.name, _EXTRA)
        return
    found: dict[Path, list[Any]] = {}
    try:
        errors = (error for error in validator.iter_errors(source.data) if not _is_a_flaw_of_3_2(error))
        for error in islice(errors, _MOST_ERRORS):
            found.setdefault(tuple(error.instance_path), []).append(error)
    except ValueError as error:  # nested too deeply for the library
        yield Problem("", source.name, str(error))
    for path, its in found.items():
        telling = [error for error in its if error.kind.name != "unevaluatedProperties"]
        if telling or not _are_around(path, found):
            yield from (_problem_of(source, path, error) for error in telling or its)


def _write_bounds_as_in_3_1(contract: dict[str, Any]) -> None:
    """Replace `minimum: 0` with `exclusiveMinimum: true`, which version 3.0 uses, by `exclusiveMinimum: 0`."""
    parts: list[Any] = [contract.get("schema")]
    while parts:
        part = parts.pop()
        if isinstance(part, list):
            parts += part
        elif isinstance(part, dict):
            parts += part.values()
            given = part.get("logicalTypeOptions")
            options: dict[str, Any] = given if isinstance(given, dict) else {}
            for exclusive, bound in _BOUNDS.items():
                if options.get(exclusive) is False:
                    del options[exclusive]
                elif options.get(exclusive) is True and bound in options:
                    options[exclusive] = options.pop(bound)


def _is_a_flaw_of_3_2(error: Any) -> bool:
    """Return whether the error is the `map` that version 3.2's schema requires of properties without `logicalType`.

    The schema's condition tests the value of `logicalType` but does not require the key, so it is also met without it.
    """
    return error.kind.name == "required" and error.kind.property == "map" and "logicalType" not in error.instance


def _are_around(path: Path, found: dict[Path, list[Any]]) -> bool:
    """Return whether any error is below `path`.

    Such an error makes the keys of its object unevaluated, which is then not an error of its own.
    """
    return any(len(other) > len(path) and other[: len(path)] == path for other in found)


def _problem_of(source: Source, path: Path, error: Any) -> Problem:
    kind = error.kind
    if kind.name in ("unevaluatedProperties", "additionalProperties") and kind.unexpected:
        path = (*path, kind.unexpected[0])
        return Problem(dotted(path), source.place_of(path), "the Open Data Contract Standard has no such key")
    return Problem(dotted(path), source.place_of(path), str(error.message))


@cache
def _validator() -> Any:
    """Return the compiled JSON Schema of the standard. Raises ModuleNotFoundError without the extra."""
    schema = files("open_data_contract_standard").joinpath("schema.json").read_bytes()
    return import_module("jsonschema_rs").Draft201909Validator(json.loads(schema))
