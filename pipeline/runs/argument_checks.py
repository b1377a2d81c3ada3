"""Checks the arguments of public functions before any work begins, against a table that declares each parameter.

If a value is of the declared kind, the function receives it in one form (an enumeration's word becomes its member).
Otherwise the check raises BadParameter, which names the parameter, the kinds of values that it accepts, and the value
that it got.
"""

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from sluicegate.pipeline.runs.errors import PipelineError

Check = Callable[[Any], Any]
"""Returns the value that the function receives. Raises UnfitValue."""
P = ParamSpec("P")
R = TypeVar("R")
_SHOWN_CHARACTERS = 80
_SECRET = frozenset({"settings", "webhook"})


class BadParameter(PipelineError, ValueError):
    """Raised if an argument of a function is invalid. The message lists the valid values."""


class UnfitValue(Exception):
    """Raised if a value is not of the declared kind. The message names the expected kind."""


def check_arguments_with(checks: Mapping[str, Check]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator that checks all arguments of a function.

    Raises TypeError for an undeclared parameter when the function is defined.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)
        undeclared = signature.parameters.keys() - checks.keys()
        if undeclared:
            raise TypeError(f"{function.__name__}: declare its parameters {sorted(undeclared)} in its table of checks")

        @wraps(function)
        def with_checked(*args: P.args, **kwargs: P.kwargs) -> R:
            given = signature.bind(*args, **kwargs)
            for name, value in given.arguments.items():
                is_optional = signature.parameters[name].default is None
                given.arguments[name] = value_checked_by(checks, name, value, is_optional=is_optional)
            return function(*given.args, **given.kwargs)

        return with_checked

    return decorate


def value_checked_by(checks: Mapping[str, Check], name: str, value: Any, *, is_optional: bool) -> Any:
    """Return the value that a function receives for its parameter `name`.

    If `is_optional` is true, None is valid. Raises BadParameter.
    """
    if value is None and is_optional:
        return None
    try:
        return checks[name](value)
    except UnfitValue as error:
        kind = f"a value of type {type(value).__name__}"
        found = "None" if value is None else f"{value!r}" if name not in _SECRET and _is_short(value) else kind
        none = ", or None" if is_optional else ""
        raise BadParameter(f"{name}: expected {error}{none}, found {found}") from None


def _is_short(value: Any) -> bool:
    return isinstance(value, str | int | float | list | tuple | Path) and len(repr(value)) <= _SHOWN_CHARACTERS


def is_integer(value: Any) -> bool:
    """Return whether a value is an integer but not a bool."""
    return isinstance(value, int) and not isinstance(value, bool)


def spark_session(value: Any) -> Any:
    """Return the value if it is a Spark session. Raises UnfitValue."""
    if not callable(getattr(value, "createDataFrame", None)):
        raise UnfitValue("a Spark session")
    return value
