"""What a configuration is made of is sent from one process to another, whenever a file is read."""

from dataclasses import fields
from typing import Any, TypeVar

_Made = TypeVar("_Made")


def sent_often(made: type[_Made]) -> type[_Made]:
    """A frozen dataclass that is pickled as every other one is, but leaves nothing behind.

    Dataclasses ask for their fields each time (CPython's `_dataclass_setstate`), and the tuples of those fill its free
    lists, up to 2,000 of each length: the process that receives them would grow with each file.
    """
    names = tuple(each.name for each in fields(made))  # type: ignore[arg-type]  # a dataclass, as it says

    def state_of(sent: Any) -> list[Any]:
        return [getattr(sent, name) for name in names]

    def restore(came: Any, state: list[Any]) -> None:
        for name, value in zip(names, state, strict=True):
            object.__setattr__(came, name, value)

    made.__getstate__ = state_of  # type: ignore[assignment]
    made.__setstate__ = restore  # type: ignore[attr-defined]
    return made
