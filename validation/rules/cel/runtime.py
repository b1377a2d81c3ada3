"""Wraps the CEL runtime, Google's cel-expr-python: compiles and checks expressions, and explains errors."""

import re
from collections.abc import Iterable, Iterator
from enum import Enum
from functools import cache
from importlib import import_module
from typing import Any, Final, NamedTuple, Protocol

from sluicegate.config.values.extras import RULES_EXTRA
from sluicegate.config.values.topic_pattern import re2_options
from sluicegate.validation.rules.cel.tree import (
    Call,
    Constant,
    Name,
    Node,
    Select,
    parts_of,
    tree_of,
    variables_of,
)
from sluicegate.validation.rules.cel.variables import CLIENT_FIELDS
from sluicegate.validation.rules.rule import RuleUnusable

MAX_CHARACTERS = 2000
_NOW: Final = "now"
_OF_MESSAGES = ("message", _NOW)
_OF_FIELDS = ("value", "fullName", "name", "typeName", "tags", *_OF_MESSAGES)
_OF_INLINE_RULES = ("this", _NOW)
_TRUE_OR_FALSE: Final = frozenset({"bool", "dyn"})
TEXT_OR_TRUTH: Final = _TRUE_OR_FALSE | {"string"}
"""The types that a schema's inline rule may return."""
ANY_TYPE: Final = None
"""A registry's conditions may return any type."""
_MAX_LEVELS = 32  # the limit of the runtime
_MOST_WORDS = 300
_NOT_AVAILABLE: Final = "is not available: there are neither extensions of CEL nor functions of Confluent's clients"
_METHODS: Final = frozenset(
    (
        *("contains", "endsWith", "matches", "size", "startsWith"),
        *("all", "exists", "exists_one", "filter", "map"),
        *("getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear", "getFullYear", "getHours"),
        *("getMilliseconds", "getMinutes", "getMonth", "getSeconds"),
    )
)
"""The methods and macros of the core language."""
_FUNCTIONS: Final = _METHODS | {
    *("bool", "bytes", "double", "duration", "dyn", "has", "int", "string", "timestamp", "type", "uint")
}
_WHERE = re.compile(r"ERROR: <input>:(\d+):(\d+): ([^\n]*)")
_UNDECLARED = re.compile(r"undeclared reference to '(.*?)'")


class ExpressionUnusable(RuleUnusable):
    """Raised if an expression is invalid, or a package is not installed. The message gives the reason."""


class CompiledExpression(NamedTuple):
    """A compiled expression. `programs` contains the number of instructions of each of its regular expressions."""

    program: Any
    is_always_bool: bool
    tree: Node
    names: frozenset[str]
    programs: dict[str, int]


class Dialect(Enum):
    """The variables and types that an expression over a schema may use."""

    EXPRESSION = "expression"  # `value` with the types of the schema, and the other variables of rules
    CONDITION = "condition"  # `message` of any type, as in a registry's conditions


class ValueReader(Protocol):
    """A reader of one schema's values for expressions."""

    def compiled(self, expression: str) -> CompiledExpression:
        """Compile an expression and check it against the schema. Raises ExpressionUnusable."""

    def estimate_reading(self, data: bytes) -> tuple[int, int, int]:
        """Estimate the cost of a value without reading it.

        Returns the maximum number of items, the size in bytes and items, and the time to read it (ns).
        """

    def read(self, data: bytes) -> Any:
        """Return the value for the runtime. Raises NotOfSchema and ValueUnreadable."""


class CelRuntime(NamedTuple):
    """The environment of expressions, its declared names, and orjson's `loads`."""

    environment: Any
    names: frozenset[str]
    loads: Any


class TypedEnvironment(NamedTuple):
    """An environment of the runtime, and the names of its variables."""

    environment: Any
    names: frozenset[str]


@cache
def runtime() -> CelRuntime:
    """Return the runtime, which is created once per process. Raises ExpressionUnusable if it is not installed."""
    try:
        cel, loads = import_module("cel_expr_python.cel"), import_module("orjson").loads
    except ImportError:
        raise ExpressionUnusable(f"expressions need cel-expr-python and orjson: {RULES_EXTRA}") from None
    variables = _variables(cel.Type, cel.Type.DYN)
    return CelRuntime(cel.NewEnv(variables=variables), frozenset(variables), loads)


def environment_for(pool: Any, value_type: str) -> TypedEnvironment:
    """Return an environment in which `value` is a Protobuf message of `pool`. Raises ExpressionUnusable."""
    names = runtime().names
    cel = import_module("cel_expr_python.cel")
    return TypedEnvironment(cel.NewEnv(pool, variables=_variables(cel.Type, cel.Type(value_type))), names)


def message_environment(pool: Any = None) -> TypedEnvironment:
    """Return the environment for a registry's conditions, with `message` and `now`. Raises ExpressionUnusable."""
    return _any_message() if pool is None else _of_any_type(pool, _OF_MESSAGES)


def inline_environment(pool: Any = None) -> TypedEnvironment:
    """Return the environment for rules inside schemas. Raises ExpressionUnusable."""
    return _of_any_type(pool, _OF_INLINE_RULES)


def field_environment(pool: Any = None) -> TypedEnvironment:
    """Return the environment for a registry's conditions on fields. Raises ExpressionUnusable."""
    return _any_field() if pool is None else _of_any_type(pool, _OF_FIELDS)


@cache
def _any_message() -> TypedEnvironment:
    return _of_any_type(None, _OF_MESSAGES)


@cache
def _any_field() -> TypedEnvironment:
    return _of_any_type(None, _OF_FIELDS)


def _of_any_type(pool: Any, names: Iterable[str]) -> TypedEnvironment:
    runtime()
    cel = import_module("cel_expr_python.cel")
    types = {name: cel.Type.TIMESTAMP if name == _NOW else cel.Type.DYN for name in names}
    return TypedEnvironment(cel.NewEnv(pool, variables=types), frozenset(types))


def _variables(types: Any, of_value: Any) -> dict[str, Any]:
    return {
        "key": types.DYN,
        "value": of_value,
        "headers": types.Map(types.DYN, types.DYN),  # the binding would truncate strings at a zero byte
        "timestamp": types.INT,
        "topic": types.STRING,
        "partition": types.INT,
        "client": types.Map(types.STRING, types.DYN),
    }


def compiled(
    expression: str, typed: TypedEnvironment | None = None, gives: frozenset[str] | None = _TRUE_OR_FALSE
) -> CompiledExpression:
    """Compile and check an expression: syntax, names, functions and types.

    `typed` is the environment; None means that of `runtime`, in which `value` has any type. `gives` contains the types
    that the result may have; None means any. Raises ExpressionUnusable.
    """
    if len(expression) > MAX_CHARACTERS:
        raise ExpressionUnusable(f"longer than {MAX_CHARACTERS} characters")
    environment, names = typed or runtime()[:2]
    try:
        program = environment.compile(expression)
    except Exception as error:
        raise ExpressionUnusable(_reason(str(error), expression, names)) from error
    kind = name_of(program.return_type())
    if gives is not None and kind not in gives:
        raise ExpressionUnusable(f"the expression returns {kind} instead of true or false")
    tree = tree_of(program.serialize())
    used = list(variables_of(tree))
    for field in _fields_of(used, "client"):
        if field not in CLIENT_FIELDS:
            raise ExpressionUnusable(f"client has no {field}; it has {', '.join(CLIENT_FIELDS)}")
    _check_time_zones(tree)
    return CompiledExpression(
        program, kind == "bool", tree, names & {_variable(each) for each in used}, _programs_in(tree)
    )


def name_of(kind: Any) -> str:
    """Return the name of a type as CEL writes it."""
    return str(kind.name()).partition("<")[0].lower()


def _variable(used: Name | Select) -> str:
    named = used.operand if isinstance(used, Select) else used
    return named.name if isinstance(named, Name) else ""


def _fields_of(used: list[Name | Select], variable: str) -> Iterator[str]:
    return (each.field for each in used if isinstance(each, Select) and _variable(each) == variable)


def _calls_in(node: Node) -> Iterator[Call]:
    if isinstance(node, Call):
        yield node
    for part in parts_of(node):
        yield from _calls_in(part)


def _check_time_zones(tree: Node) -> None:
    """Raise ExpressionUnusable if a record could choose a time zone. The runtime opens a file with that name."""
    for call in _calls_in(tree):
        if call.function.startswith("get") and any(not isinstance(arg, Constant) for arg in call.args[1:]):
            raise ExpressionUnusable(f"{call.function} takes only a literal time zone")


def _programs_in(tree: Node) -> dict[str, int]:
    import re2  # noqa: PLC0415  # only for expressions with a pattern

    programs = {}
    for call in _calls_in(tree):
        pattern = call.args[1] if call.function == "matches" else None
        if isinstance(pattern, Constant) and pattern.text is not None:
            try:
                programs[pattern.text] = re2.compile(pattern.text, re2_options()).programsize
            except re2.error as error:
                raise ExpressionUnusable(f"not a regular expression that RE2 accepts: {_words(error)}") from error
    return programs


def _words(error: Exception) -> str:
    said = error.args[0] if error.args else "no details"
    return (said.decode(errors="replace") if isinstance(said, bytes) else str(said))[:_MOST_WORDS]


def _reason(error: str, expression: str, names: frozenset[str]) -> str:
    """Return the compiler's first error, with its line and column in the expression. `names` contains all variables."""
    if "recursion limit" in error or "recursion depth" in error:
        return f"nested more than {_MAX_LEVELS} levels deep"
    found = _WHERE.search(error)
    if found is None:
        return error.partition("\n")[0][:_MOST_WORDS]
    line, column, words = found.groups()
    words = words.replace(" (in container '')", "").replace(" [INVALID_ARGUMENT]", "")
    undeclared = _UNDECLARED.match(words)
    if undeclared is not None:
        words += f"; {_about_undeclared(undeclared[1], expression, names)}"
    return f"line {line}, column {column}: {words}"[:_MOST_WORDS]


def _about_undeclared(name: str, expression: str, names: frozenset[str]) -> str:
    """Explain why a name is undeclared, depending on its use as a variable, a function or a function group."""
    called = re.search(rf"(?<![\w.]){re.escape(name)}\s*\.\s*(\w+)\s*\(", expression)
    if called is not None and called[1] not in _METHODS:
        return f"{name}.{called[1]} {_NOT_AVAILABLE}"
    if not re.search(rf"(?<!\w){re.escape(name)}\s*\(", expression):
        return f"there are {', '.join(sorted(names))}"
    if name in _FUNCTIONS:
        return f"{name} exists, but with other arguments"
    return f"{name} {_NOT_AVAILABLE}"
