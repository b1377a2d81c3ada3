"""Generates random JSON Schemas with all keywords, and random values, some of them large, each from a seed."""

import json
from collections.abc import Callable
from random import Random
from typing import Any

NAMES = ["a", "b", "c", "é", "dd", "zzzzzz"]
NUMBERS = [0, 1, -3, 7, 2.5, 0.1, -0.25, 10**17, 10**30, 1e-300, -1e300, 5e-324, 123.456, 1e10]
TEXTS = ["", "x", "naïve", "abc", 'q"u', "z" * 50, "2020-01-01", "a@b.c", "漢字" * 5]
PATTERNS = ["^a", "b$", "^[a-z]+$", "(a|b)*c", r"\d{3}", "^.{0,20}$", "[ab]*a[ab]{12}c", "^x-", "(é|漢)+", r"\w+\s"]
FORMATS = ["date", "date-time", "email", "uri", "uuid", "ipv4", "regex", "idn-hostname", "duration", "json-pointer"]
TYPES = ["string", "number", "object", "array", "integer", "null"]
_REFERENCES = ["#/$defs/a", "#/$defs/b", "#/$defs/c", "#"]


class RandomJson:
    """Draws schemas and values."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def schema(self) -> dict[str, Any]:
        """Return a schema with definitions that refer to each other."""
        schema = self._keywords(0)
        schema["$defs"] = {name: self._schema(1) for name in "abc"}
        return schema

    def text(self) -> bytes:
        """Return a value, which sometimes has many items or keys, is deeply nested, or has long strings."""
        value = self._value(0)
        kind = self.random.random()
        if kind < 0.3:
            value = [value] * self.random.choice([1, 10, 100, 1000])
        elif kind < 0.5:
            value = [self._value(0) for _ in range(self.random.choice([10, 100, 1000]))]
        elif kind < 0.6:
            value = {f"k{i}": self._value(2) for i in range(self.random.choice([10, 300, 3000]))}
        elif kind < 0.7:
            for _ in range(self.random.randint(1, 40)):
                value = self.random.choice([[value], {self.random.choice(NAMES): value}])
        elif kind < 0.8:
            value = [self.random.choice(TEXTS) * self.random.choice([1, 100, 1000])]
        elif kind < 0.9:
            value = [self._number() for _ in range(self.random.choice([14, 15, 500]))]
        return json.dumps(value, ensure_ascii=self.random.random() < 0.5).encode()

    def _number(self) -> Any:
        number = self.random.random() * 10.0 ** self.random.randint(-300, 300)
        return self.random.choice([self.random.choice(NUMBERS), number])

    def _value(self, depth: int) -> Any:
        kind = self.random.random()
        if depth > 4 or kind < 0.5:
            leaves = [None, True, self.random.choice(TEXTS), self.random.choice(NUMBERS), self.random.randint(-9, 999)]
            return self.random.choice([*leaves, self._number()])
        if kind < 0.75:
            return [self._value(depth + 1) for _ in range(self.random.randint(0, 4))]
        return {self.random.choice(NAMES): self._value(depth + 1) for _ in range(self.random.randint(0, 5))}

    def _schema(self, depth: int) -> Any:
        if depth > 3 or self.random.random() < 0.15:
            reference = self.random.choice(_REFERENCES[: 3 if self.random.random() < 0.8 else 4])
            return self.random.choice([{}, {"type": self.random.choice(TYPES)}, {"$ref": reference}, True])
        return self._keywords(depth)

    def _keywords(self, depth: int) -> dict[str, Any]:
        schema: dict[str, Any] = {}
        for _ in range(self.random.randint(1, 4)):
            schema |= self.random.choice(self._choices(depth))()
        return schema

    def _choices(self, depth: int) -> list[Callable[[], dict[str, Any]]]:
        draw = self.random

        def nested_schema() -> Any:
            return self._schema(depth + 1)

        def list_of_schemas(keyword: str) -> Callable[[], dict[str, Any]]:
            return lambda: {keyword: [nested_schema() for _ in range(draw.randint(1, 4))]}

        def one_schema(keyword: str) -> Callable[[], dict[str, Any]]:
            return lambda: {keyword: nested_schema()}

        return [
            lambda: {"type": draw.sample(TYPES, draw.randint(1, 4))},
            lambda: {"enum": [self._value(2) for _ in range(draw.randint(1, 20))]},
            lambda: {"enum": [f"w{i}" for i in range(draw.randint(1, 300))]},
            lambda: {"enum": list(range(draw.randint(1, 100)))},
            lambda: {"const": self._value(2)},
            lambda: {draw.choice(["minimum", "exclusiveMaximum"]): draw.choice(NUMBERS)},
            lambda: {"multipleOf": abs(draw.choice(NUMBERS)) or 1},
            lambda: {draw.choice(["minLength", "maxLength", "minItems", "minProperties"]): draw.randint(0, 10)},
            lambda: {"pattern": draw.choice(PATTERNS)},
            lambda: {"format": draw.choice(FORMATS)},
            lambda: {"uniqueItems": True},
            lambda: {"properties": {name: nested_schema() for name in draw.sample(NAMES, draw.randint(1, 4))}},
            lambda: {"required": draw.sample(NAMES, draw.randint(1, 3))},
            lambda: {"patternProperties": {pattern: nested_schema() for pattern in draw.sample(PATTERNS, 2)}},
            lambda: {"prefixItems": [nested_schema()], "contains": nested_schema(), "minContains": draw.randint(0, 3)},
            lambda: {"if": nested_schema(), "then": nested_schema(), "else": nested_schema()},
            lambda: {"dependentSchemas": {draw.choice(NAMES): nested_schema()}},
            *map(list_of_schemas, ("allOf", "anyOf", "oneOf")),
            *map(one_schema, ("additionalProperties", "propertyNames", "items", "not")),
            *map(one_schema, ("unevaluatedProperties", "unevaluatedItems")),
        ]
