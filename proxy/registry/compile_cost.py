"""Estimates how long a library holds the interpreter lock to compile a schema, which blocks the event loop."""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from sluicegate.proxy.rules_process.messages import EvaluatorKind, Specification

# Upper bounds for jsonschema-rs, from measurements: 14 ms for 224 kB without patterns, 100 ms for 4,000 patterns, 62 ms
# for `\p{L}{200}` (each copy contains the ranges of a Unicode class), 23 ms for `.{5000}`.
_OF_BYTE: Final = 1e-7
_OF_PATTERN: Final = 3e-5
_OF_COPY: Final = 5e-6
_OF_UNICODE_COPY: Final = 3.2e-4
_MOST_COPIES: Final = 1_000_000
_COUNTED = re.compile(r"\{(\d{1,6})(?:,(\d{0,6}))?\}")


def held_seconds(specification: Specification) -> float:
    """Return an upper bound in seconds. It is 0 for Avro and Protobuf, because 256 KiB of them take 12 ms."""
    if specification.kind is not EvaluatorKind.JSON:
        return 0.0
    try:
        schema = json.loads(specification.text)
    except (ValueError, RecursionError):
        return 0.0  # the compiler reports the error at once
    return specification.size * _OF_BYTE + sum(map(_of_pattern, _patterns_of(schema)))


def _patterns_of(schema: Any) -> Iterator[str]:
    """Yield the values of `pattern` and the keys of `patternProperties` at any depth."""
    left = [schema]
    while left:
        here = left.pop()
        if isinstance(here, dict):
            left += here.values()
            if isinstance(here.get("pattern"), str):
                yield here["pattern"]
            if isinstance(here.get("patternProperties"), dict):
                yield from here["patternProperties"]
        elif isinstance(here, list):
            left += here


def _of_pattern(pattern: str) -> float:
    copies = 1
    for least, most in _COUNTED.findall(pattern):
        copies = min(copies * max(int(least), int(most or 0), 1), _MOST_COPIES)
    classes = pattern.count(r"\p") + pattern.count(r"\P")
    return _OF_PATTERN + copies * (_OF_COPY * len(pattern) + _OF_UNICODE_COPY * classes)
