"""Defines sections of the configuration: frozen dataclasses, which `config/reading.py` makes of a file's data."""

from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_Made = TypeVar("_Made")


def described(
    description: str, *, name: str | None = None, default: Any = MISSING, default_factory: Any = MISSING
) -> Any:
    """A key with what it does, in the words of docs/configuration.md; for a key that is a section: what that is for.

    `name`: the key in the file, where it is not the field's own name. In a section that stands below a record's key or
    value `{side}` is which of the two.
    """
    metadata = {"description": description} | ({} if name is None else {"alias": name})
    return field(default=default, default_factory=default_factory, metadata=metadata)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(described,))
def section(made: type[_Made]) -> type[_Made]:
    """Keys that stand together. `__post_init__` raises ValueError for what they cannot be together."""
    whole = dataclass(frozen=True, slots=True, kw_only=True)(made)
    whole.__pydantic_config__ = {"extra": "forbid"}  # type: ignore[attr-defined]  # keys that nobody knows are mistakes
    return whole


def is_section(kind: type) -> bool:
    """Whether these are keys that stand together."""
    return hasattr(kind, "__pydantic_config__")


def is_unset(section: "DataclassInstance") -> bool:
    """Whether all keys are as they are where nothing is given."""
    return all(getattr(section, each.name) == default_of(each) for each in fields(section))


def default_of(each: Any) -> Any:
    """What a field of a section is where it is not given; MISSING where it must be."""
    make: Callable[[], Any] | Any = each.default_factory
    return each.default if make is MISSING else make()
