"""Describes the layout of a response, so that broker addresses and error codes can be found in it.

If an API's responses contain addresses, or error codes of partitions, `sluicegate.protocol.api` declares the fields of
their layout in order, with Kafka's type names. `program_of` compiles the layout into the steps for one version, which
`sluicegate.protocol.response_walks` executes.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import IntEnum, auto

_NEWEST = 32767
MAX_NODES = 2000
"""The maximum number of brokers in one list; no cluster has this many."""
MAX_COORDINATORS = 20_000
"""The maximum number of coordinators in one response: one per group in an admin client's request."""


class LayoutStep(IntEnum):
    """A step of the walk."""

    FIXED = auto()
    STRING = auto()
    BYTES = auto()
    TAGS = auto()
    ARRAY = auto()
    NODES = auto()
    ADDRESS = auto()
    ERROR = auto()
    END = auto()


@dataclass(frozen=True, slots=True)
class LayoutField:
    """A field in versions `since` to `until`.

    `size` is its size in bytes, or the maximum number of items. `fields` are those of a struct or of an array's items.
    """

    step: LayoutStep | None
    size: int = 0
    fields: tuple["LayoutField", ...] = ()
    since: int = 0
    until: int = _NEWEST


INT8, INT16, INT32, INT64, UUID = (LayoutField(LayoutStep.FIXED, size) for size in (1, 2, 4, 8, 16))
STRING, BYTES = LayoutField(LayoutStep.STRING), LayoutField(LayoutStep.BYTES)
ADDRESS = LayoutField(LayoutStep.ADDRESS)
"""A broker's id (int32), host (string) and port (int32)."""
ERROR = LayoutField(LayoutStep.ERROR)
"""An int16 error code. Next to an address, it is set to COORDINATOR_NOT_AVAILABLE if the broker has no listener."""
REST = LayoutField(LayoutStep.END)
"""The rest of the response, which is not read."""


def array(*fields: LayoutField) -> LayoutField:
    """Return an array of structs with these fields."""
    return LayoutField(LayoutStep.ARRAY, fields=fields)


def struct(*fields: LayoutField) -> LayoutField:
    """Return a struct. In flexible versions, it ends with its own tagged fields."""
    return LayoutField(None, fields=fields)


def nodes(*fields: LayoutField, most: int = MAX_NODES) -> LayoutField:
    """Return an array of items with an ADDRESS.

    If the items have no ERROR, brokers without a listener are omitted.
    """
    return LayoutField(LayoutStep.NODES, most, fields)


def since(version: int, field: LayoutField) -> LayoutField:
    """Return the field, limited to versions from `version` on."""
    return replace(field, since=version)


def until(version: int, field: LayoutField) -> LayoutField:
    """Return the field, limited to versions up to `version`."""
    return replace(field, until=version)


NODE_ENDPOINTS = nodes(ADDRESS, STRING)
"""Node endpoints (KIP-951). The string is the rack."""

Program = tuple[tuple[int, int, "Program"], ...]
"""The steps for one version: each has its kind, its maximum number of bytes or items, and the steps for each item."""


def program_of(fields: tuple[LayoutField, ...], version: int) -> Program:
    """Return the steps for a whole response, or for its part before REST."""
    end = () if REST in fields else ((int(LayoutStep.TAGS), 0, ()), (int(LayoutStep.END), 0, ()))
    return (*_merged(_steps(fields, version)), *end)


def flaw_in(fields: tuple[LayoutField, ...]) -> str | None:
    """Return why the addresses in a response with this layout cannot be rewritten, or None if they can."""
    lists = [field.fields for field in fields if field.step is LayoutStep.NODES]
    steps = {field.step for field in fields}
    if any(_names_brokers(field) for each in fields if each.step is not LayoutStep.NODES for field in each.fields):
        return "an address within an array or a struct is not found: put it into nodes(...), or by itself"
    if len(lists) > 1:
        return "it has more than one nodes(...), and only one can be rewritten"
    if any(LayoutStep.ADDRESS not in {field.step for field in items} for items in lists):
        return "its nodes(...) have no ADDRESS"
    if LayoutStep.ADDRESS in steps and LayoutStep.ERROR not in steps:
        return "an ADDRESS by itself needs an ERROR beside it, for a broker without a listener"
    if not lists and LayoutStep.ADDRESS not in steps:
        return "it has no ADDRESS, so there is nothing to rewrite"
    return None


def _names_brokers(field: LayoutField) -> bool:
    return field.step in (LayoutStep.ADDRESS, LayoutStep.NODES) or any(map(_names_brokers, field.fields))


def _steps(fields: tuple[LayoutField, ...], version: int) -> Iterator[tuple[int, int, Program]]:
    for field in fields:
        if field is REST or not field.since <= version <= field.until:
            continue
        inner = (*_merged(_steps(field.fields, version)), (int(LayoutStep.TAGS), 0, ())) if field.fields else ()
        if field.step is None:
            yield from inner
        else:
            yield int(field.step), field.size, inner


def _merged(steps: Iterator[tuple[int, int, Program]]) -> Iterator[tuple[int, int, Program]]:
    """Merge adjacent fields of fixed size into one step."""
    fixed = 0
    for step in steps:
        if step[0] == LayoutStep.FIXED:
            fixed += step[1]
            continue
        if fixed:
            yield int(LayoutStep.FIXED), fixed, ()
            fixed = 0
        yield step
    if fixed:
        yield int(LayoutStep.FIXED), fixed, ()
