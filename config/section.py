"""Defines sections of the configuration: frozen dataclasses, which `config/loading.py` builds from a file's data."""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_Made = TypeVar("_Made")


def described(
    description: str,
    *,
    name: str | None = None,
    formerly: str | None = None,
    corrections: Mapping[str, str] | None = None,
    misnomers: Mapping[str, str] | None = None,
    default: Any = MISSING,
    default_factory: Any = MISSING,
) -> Any:
    """Declare a key with its default and its description, which docs/configuration.md shows.

    `name` is the key in the file; None means that it is the attribute's name. `formerly` is the key's old name, which
    is rejected with a message that gives the new one. In a description, `{side}` is replaced by `key` or `value`.

    Two arguments serve error messages. `corrections` maps words that people write as the value, in lower case, to the
    correct value or the whole correct line. `misnomers` maps other names that people use for the key to the correct
    line, in which `{value}` stands for the given value.
    """
    names = {"alias": name, "formerly": formerly, "corrections": corrections, "misnomers": misnomers}
    metadata = {"description": description} | {each: given for each, given in names.items() if given is not None}
    return field(default=default, default_factory=default_factory, metadata=metadata)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(described,))
def section(made: type[_Made]) -> type[_Made]:
    """Make a class a section: a group of keys.

    `__post_init__` raises ValueError for values that cannot be combined.
    """
    whole = dataclass(frozen=True, slots=True, kw_only=True)(made)
    whole.__pydantic_config__ = {"extra": "forbid"}  # type: ignore[attr-defined]  # unknown keys are errors
    return whole


def is_section(kind: type) -> bool:
    """Return whether the type is a section."""
    return hasattr(kind, "__pydantic_config__")


def is_unset(section: "DataclassInstance") -> bool:
    """Return whether all keys have their defaults."""
    return all(getattr(section, each.name) == default_of(each) for each in fields(section))


def default_of(each: Any) -> Any:
    """Return the default of a section's field, or MISSING if the field is required."""
    make: Callable[[], Any] | Any = each.default_factory
    return each.default if make is MISSING else make()
