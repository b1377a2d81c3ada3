"""Validates AsyncAPI documents against the JSON Schema that AsyncAPI publishes for their version.

AsyncAPI validates documents after resolving references. Here, they are validated as written: an object with a reference
is always valid, and referenced files are not validated. Formats, such as those of URLs, are not validated either.
"""

import gzip
import json
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.resources import files
from itertools import islice
from typing import Any, Final

from sluicegate.config.contracts.asyncapi.references import REF
from sluicegate.config.files.source import Path, Problem, Source, dotted
from sluicegate.config.values.extras import RULES_EXTRA

VERSION_KEY: Final = "asyncapi"
_EXTRA: Final = f"contracts need libraries: {RULES_EXTRA}"
_VERSION = re.compile(r"(2\.[0-6]|3\.[01])\.[0-9]+(-.*)?", re.DOTALL)
_MOST_ERRORS = 20
_MOST_CHARACTERS = 300


def problems_in(source: Source) -> Iterator[Problem]:
    """Yield the errors that the published JSON Schema reports for a document: at most 20."""
    version = _VERSION.fullmatch(str(source.data[VERSION_KEY]))
    if version is None:
        words = f"versions 2.0 to 2.6, 3.0 and 3.1 of AsyncAPI are read; found {str(source.data[VERSION_KEY])[:100]}"
        yield Problem(VERSION_KEY, source.place_of((VERSION_KEY,)), words)
        return
    published = f"{version[1]}.0"  # a patch version of the specification changes no schema
    try:
        validator = _validator(published)
    except ModuleNotFoundError:
        yield Problem("", source.name, _EXTRA)
        return
    found: dict[Problem, None] = {}
    try:
        for error in validator.iter_errors({**source.data, VERSION_KEY: published}):
            for mistake in _mistakes(error):
                found.update(dict.fromkeys(_problems_of(source, mistake, version[1])))
            if len(found) >= _MOST_ERRORS:
                break
    except ValueError as error:  # nested too deeply for the library
        yield Problem("", source.name, str(error))
    yield from islice(found, _MOST_ERRORS)


def _mistakes(error: Any) -> list[Any]:
    """Return the errors that explain an error. There are none if it is about an object with a reference.

    If a schema has alternatives, these are the errors of the alternative with the fewest errors. There are none if
    several alternatives match.
    """
    if isinstance(error.instance, dict) and isinstance(error.instance.get(REF), str):
        return []
    alternatives = getattr(error.kind, "context", None)
    if not alternatives:
        return [error]
    explained = [[mistake for inner in each for mistake in _mistakes(inner)] for each in alternatives]
    telling = [each for each in explained if not any(map(_is_missing_reference, each))]
    return min(
        telling or explained, key=lambda each: (len(each), -max((len(one.instance_path) for one in each), default=0))
    )


def _is_missing_reference(error: Any) -> bool:
    return bool(error.kind.name == "required" and error.kind.property == REF)


def _problems_of(source: Source, error: Any, version: str) -> Iterator[Problem]:
    path: Path = tuple(error.instance_path)
    if error.kind.name == "additionalProperties":
        for key in error.kind.unexpected:
            yield _problem(source, (*path, key), f"AsyncAPI {version} has no such key")
    else:
        yield _problem(source, path, str(error.message)[:_MOST_CHARACTERS])


def _problem(source: Source, path: Path, words: str) -> Problem:
    return Problem(dotted(path), source.place_of(path), words)


@cache
def _validator(version: str) -> Any:
    """Return the compiled schema for a version. Raises ModuleNotFoundError without the extra."""
    content = files(__package__).joinpath(f"schemas/{version}.json.gz").read_bytes()
    return import_module("jsonschema_rs").Draft7Validator(json.loads(gzip.decompress(content)), validate_formats=False)
