"""A rule: an expression of CEL (Common Expression Language) is true of a record.

It sees `key` (text, or bytes where it is none), `value` (what its JSON says, behind a schema's id too, or bytes where
it is none), `headers` (the last value of each name, as text or bytes), `timestamp` (int64 ms), `topic`, `partition` and
`client` (`id`, `software`, `version`, `principal`, `address`). An expression cannot loop but over what a record holds,
so its time is bounded before it begins: by how many items that is, to the power of how deep its loops lie within each
other.
"""

import re
from importlib import import_module
from typing import Any, Final

from sluicegate.validation.rules.json_text import WELL_FORMED, fault_in
from sluicegate.validation.rules.json_weight import is_too_heavy, words_for_more_than
from sluicegate.validation.rules.ordinary_reading import is_ordinary_json
from sluicegate.validation.rules.rule import CONSTANT_STEPS, Outage, Part, RuledRecord, RuleUnusable
from sluicegate.validation.rules.wire_format import behind_id, has_schema_id

MAX_CHARACTERS = 2000
_MAX_BRACKETS = 30
_MAX_DEPTH = 100
# What one record may cost: some tenths of a second. Steps of loops, for each fifty characters of the expression, and
# bytes that are searched, or compared, in each step.
_MOST_STEPS = 200_000
_MOST_SEARCHED = 100_000_000
_MOST_COMPARED = 20_000_000_000
# What it sees is made anew for each record, at some four microseconds for a list, an object or a key.
_MOST_WEIGHT = 50_000
_SEARCHES = re.compile(r"\b(?:matches|contains|startsWith|endsWith|size|in|string)\b|\+")
_LOOPS = frozenset({"all", "exists", "exists_one", "existsOne", "map", "filter"})
_NAMES: Final = frozenset({"key", "value", "headers", "timestamp", "topic", "partition", "client"})
_NEEDS: Final = {"key": Part.KEY, "value": Part.VALUE, "headers": Part.HEADERS}
_TEXTS = re.compile(r"""[rRbB]{0,2}("{3}.*?"{3}|'{3}.*?'{3}|"(\\.|[^"\\])*"|'(\\.|[^'\\])*')""", re.DOTALL)
_BOUND = re.compile(r"\.(?:all|exists|exists_one|existsOne|map|filter)\(\s*(\w+)\s*,(?:\s*(\w+)\s*,)?")


class ExpressionUnusable(RuleUnusable):
    """An expression is none, or what it needs is not installed: the operator's fault. The text says why."""


class IsTrue:
    """`expression` is true. What it finds missing, or of another type than it wants, is not."""

    is_slow = True

    def __init__(self, expression: str) -> None:
        """Raises ExpressionUnusable."""
        cel, self._loads = _libraries()
        bare = _TEXTS.sub('""', expression)
        if len(expression) > MAX_CHARACTERS or _brackets(bare) > _MAX_BRACKETS:
            raise ExpressionUnusable(f"longer than {MAX_CHARACTERS} characters, or {_MAX_BRACKETS} brackets deep")
        try:
            self._program = cel.compile(expression)
            names = set(self._program.variables())
        except Exception as error:
            raise ExpressionUnusable(str(error).partition("\n")[0][:300]) from error
        bound = {name for match in _BOUND.findall(bare) for name in match}
        unknown = sorted(names - _NAMES - bound)
        if unknown:
            raise ExpressionUnusable(f"unknown name {unknown[0]}; there are {', '.join(sorted(_NAMES))}")
        self._names = names & _NAMES
        self._shown = expression if len(expression) <= 200 else expression[:200] + " …"
        self._loops = _loops_within(bare)
        self._literals = bare.count(",")
        self._weight = 1 + len(expression) // 50
        self._most_bytes = _MOST_SEARCHED if _SEARCHES.search(bare) else _MOST_COMPARED
        self.needs = Part.NONE
        for name in self._names:
            self.needs |= _NEEDS.get(name, Part.NONE)

    def steps(self, _record: RuledRecord) -> int:
        """What is expensive is bounded by itself."""
        return CONSTANT_STEPS

    def complaint(self, record: RuledRecord) -> str | None:
        try:
            seen = self._seen(record)
        except _TooHeavy:
            return f"the value is {words_for_more_than(_MOST_WEIGHT)}: {self._shown}"
        if self._loops > 0 and self._is_long(record, seen):
            return f"the record has too many items for the loops of the expression {self._shown}"
        try:
            result = self._program.execute(seen)
        except (KeyError, IndexError):
            return f"the record lacks what the expression asks for: {self._shown}"
        except (TypeError, ArithmeticError, ValueError):
            return f"the record has something of another type or size than the expression can use: {self._shown}"
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # a function that is none, or a panic of the library
            raise Outage(f"the expression {self._shown} fails: {type(error).__name__}") from error
        if not isinstance(result, bool):
            raise Outage(f"the expression {self._shown} gives {type(result).__name__} instead of true or false")
        return None if result else f"not true of the record: {self._shown}"

    def explanation(self, _record: RuledRecord) -> str | None:
        """Its complaint is all of it."""
        return None

    def _is_long(self, record: RuledRecord, seen: dict[str, Any]) -> bool:
        steps: int = (_longest(seen) + self._literals) ** self._loops
        size = max(0, record.key_size) + max(0, record.value_size)
        return steps * self._weight > _MOST_STEPS or steps * size > self._most_bytes

    def _seen(self, record: RuledRecord) -> dict[str, Any]:
        """Only what the expression names."""
        seen: dict[str, Any] = {}
        for name in self._names:
            if name == "value":
                seen[name] = self._json_of(record.value)
            elif name == "key":
                seen[name] = _text_of(record.key)
            elif name == "headers":
                seen[name] = {_text_of(header) or "": _text_of(value) for header, value in record.headers}
            elif name == "client":
                client = record.client
                seen[name] = {
                    "id": client.client_id,
                    "software": client.software_name,
                    "version": client.software_version,
                    "principal": client.principal,
                    "address": client.address,
                }
            else:
                seen[name] = getattr(record, name)
        return seen

    def _json_of(self, value: bytes | None) -> Any:
        if value is None:
            return None
        text = behind_id(value) if has_schema_id(value) else value  # a zero byte begins no JSON
        if not is_ordinary_json(text, _MAX_DEPTH) and fault_in(text, _MAX_DEPTH) != WELL_FORMED:
            return value
        if is_too_heavy(text, _MOST_WEIGHT):
            raise _TooHeavy
        try:
            return self._loads(text)
        except ValueError:  # half a character
            return value


class _TooHeavy(Exception):
    """A value is JSON that is not read."""


def _text_of(data: bytes | None) -> str | bytes | None:
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def _longest(seen: Any) -> int:
    """How many items the longest list, or entries the largest object, has: what one loop may go over."""
    longest = 0
    waiting = [seen]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            longest = max(longest, len(part))
            waiting.extend(part.values())
        elif isinstance(part, list):
            longest = max(longest, len(part))
            waiting.extend(part)
    return longest


def _brackets(bare: str) -> int:
    """How deep brackets, and signs that bind what follows, lie within each other at most."""
    depth = most = signs = 0
    for char in bare:
        signs = signs + 1 if char in "!-?" else signs
        depth += (char in "([{") - (char in ")]}")
        most = max(most, depth)
    return most + signs // 10


def _loops_within(bare: str) -> int:
    """How deep loops lie within each other at most."""
    open_loops: list[bool] = []
    most = 0
    for i, char in enumerate(bare):
        if char == "(":
            word = re.search(r"\.\s*(\w+)\s*$", bare[max(0, i - 30) : i])
            open_loops.append(word is not None and word[1] in _LOOPS)
            most = max(most, sum(open_loops))
        elif char == ")" and open_loops:
            open_loops.pop()
    return most


def _libraries() -> tuple[Any, Any]:
    try:
        return import_module("cel"), import_module("orjson").loads
    except ImportError:
        raise ExpressionUnusable(
            "expressions need common-expression-language and orjson: pip install 'sluicegate[rules]'"
        ) from None
