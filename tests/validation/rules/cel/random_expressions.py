"""Generates random CEL expressions and random values for them, each from a seed."""

import json
import random
from collections.abc import Callable
from typing import Any

_TEXTS = ["value.t", "key", "'ab'", "headers.h", "topic", "value.a[0]", "string(timestamp)", "''"]
_NUMBERS = ["1", "timestamp", "size(value)", "size(value.a)", "size(key)", "value.n", "int(value.t)", "2.5"]
_LISTS = ["value", "value.a", "value.b", "value.m", "[1, 2, 3]", "[value, value.a]", "headers", "[value.t, 'ab']"]
_CONDITIONS = ["true", "value.p", "has(value.t)", "value == null"]
# Operations on a loop's item.
_OF_ITEM = {
    "texts": ["x", "x.t"],
    "numbers": ["x", "x.n"],
    "lists": ["x", "x.a"],
    "conditions": ["x.p", "x == value.n", "x != 'ab'"],
}
_PATTERNS = ["a+", ".+@.+", "(a|b)*a(a|b){5}c", "a{50}", "[A-Z]{2}[0-9]{6}"]


class RandomExpressions:
    """Expressions of the same seed are the same."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._loops = 0

    def condition(self, depth: int) -> str:
        """Return an expression that gives true, false or an error, nested `depth` deep."""
        pick = self._random.choice
        if depth == 0:
            return self._one_of(_CONDITIONS, "conditions")
        macro = pick(["all", "exists", "exists_one"])
        return pick(
            [
                lambda: f"{self._list(depth - 1)}.{macro}(x, {self._within(lambda: self.condition(depth - 1))})",
                lambda: f"{self._list(depth - 1)}.{macro}(x, {self._within(lambda: self.condition(depth - 1))})",
                lambda: f"({self.condition(depth - 1)} && {self.condition(depth - 1)})",
                lambda: f"({self.condition(depth - 1)} || {self.condition(depth - 1)})",
                lambda: f"!({self.condition(depth - 1)})",
                lambda: f"({self.condition(depth - 1)} ? {self.condition(depth - 1)} : {self.condition(depth - 1)})",
                lambda: f"{self._list(depth - 1)} {pick(['==', '!='])} {self._list(depth - 1)}",
                lambda: f"{self._text(depth - 1)} {pick(['==', '!=', '<'])} {self._text(depth - 1)}",
                lambda: f"{self._number()} {pick(['==', '>', '<='])} {self._number()}",
                lambda: f"{pick([self._text(0), self._number()])} in {self._list(depth - 1)}",
                lambda: f"{self._text(depth - 1)}.contains({self._text(0)})",
                lambda: f"{self._text(depth - 1)}.startsWith({self._text(0)})",
                lambda: f"{self._text(depth - 1)}.matches('{pick(_PATTERNS)}')",
                lambda: f"size({self._list(depth - 1)}) > {self._number()}",
                lambda: f"timestamp({self._number()}).getFullYear() > 0",
            ]
        )()

    def _list(self, depth: int) -> str:
        pick = self._random.choice
        if depth <= 0:
            return self._one_of(_LISTS, "lists")
        return pick(
            [
                lambda: self._one_of(_LISTS, "lists"),
                lambda: f"{self._list(depth - 1)}.filter(x, {self._within(lambda: self.condition(depth - 1))})",
                lambda: f"{self._list(depth - 1)}.map(x, {self._within(lambda: self._list(0))})",
                lambda: f"{self._list(depth - 1)}.map(x, {self._within(lambda: self._text(depth - 1))})",
                lambda: f"({self._list(depth - 1)} + {self._list(depth - 1)})",
            ]
        )()

    def _text(self, depth: int) -> str:
        if depth <= 0 or self._random.random() < 0.6:
            return self._one_of(_TEXTS, "texts")
        return f"({self._text(depth - 1)} + {self._text(depth - 1)})"

    def _number(self) -> str:
        return self._one_of(_NUMBERS, "numbers")

    def _one_of(self, anywhere: list[str], kind: str) -> str:
        return self._random.choice(anywhere + (_OF_ITEM[kind] * 2 if self._loops > 0 else []))

    def _within(self, part: Callable[[], str]) -> str:
        """Return what a loop does with each item."""
        self._loops += 1
        written = part()
        self._loops -= 1
        return written


def random_value(seed: int) -> bytes:
    """Return JSON with the fields that random expressions ask for."""
    chosen = random.Random(seed)
    size = chosen.choice([0, 3, 30, 300, 3000])
    kinds: list[Any] = [
        lambda i: i,
        lambda i: i / 2,
        lambda i: "a" * (i % 50),
        lambda i: {"t": "ab" * (i % 20), "n": i, "p": i % 2 == 0, "a": [i, i]},
        lambda i: [i, [i], {"n": []}],
        lambda _: [],
        lambda _: None,
    ]
    kind = chosen.choice(kinds)
    items = [kind(i) for i in range(size)]
    value: Any = {
        "t": "ab" * chosen.choice([1, 100, 10_000]),
        "n": size,
        "p": chosen.random() < 0.5,
        "a": items,
        "b": items[: size // 2] if chosen.random() < 0.5 else list(items),
        "m": {str(i): item for i, item in enumerate(items)},
    }
    return json.dumps(chosen.choice([value, value, items]), separators=(",", ":")).encode()
