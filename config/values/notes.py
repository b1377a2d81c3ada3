"""Notes on kinds of values: how pydantic reads and checks their texts."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic_core import core_schema


@dataclass(frozen=True, slots=True)
class Reads:
    """What a file says becomes a value, before anything else looks at it. The function raises ValueError."""

    read: Callable[[Any], Any]

    def __get_pydantic_core_schema__(self, kind: Any, handler: Any) -> Any:
        """For pydantic."""
        return core_schema.no_info_before_validator_function(self.read, handler(kind))


@dataclass(frozen=True, slots=True)
class NamesFile:
    """A text is the name of a file that is read: a relative one begins where the file lies that it stands in."""


@dataclass(frozen=True, slots=True)
class Checks:
    """A value of its kind is looked at, and may become another. The function raises ValueError."""

    check: Callable[[Any], Any]

    def __get_pydantic_core_schema__(self, kind: Any, handler: Any) -> Any:
        """For pydantic."""
        return core_schema.no_info_after_validator_function(self.check, handler(kind))
