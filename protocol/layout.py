"""How a response is laid out, as far as it takes to find brokers' addresses in it: its fields in order.

An API whose response names brokers declares it where the API is declared (`sluicegate.protocol.api`), with Kafka's own
names of types. `program_of` turns it into the steps of one version, which
`sluicegate.protocol.response_walks.addresses_in` walks.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import IntEnum, auto

_NEWEST = 32767
MAX_NODES = 2000
"""Brokers in one list; no cluster has as many."""
MAX_COORDINATORS = 20_000
"""Coordinators in one response: one for each group that an admin client asks about."""


class Step(IntEnum):
    """What the walk does."""

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
class Field:
    """One field in versions `since` to `until`. `size`: bytes, or the most items; `fields`: of a struct or an item."""

    step: Step | None
    size: int = 0
    fields: tuple["Field", ...] = ()
    since: int = 0
    until: int = _NEWEST


INT8, INT16, INT32, INT64, UUID = (Field(Step.FIXED, size) for size in (1, 2, 4, 8, 16))
STRING, BYTES = Field(Step.STRING), Field(Step.BYTES)
ADDRESS = Field(Step.ADDRESS)
"""A broker's id (int32), host (string) and port (int32)."""
ERROR = Field(Step.ERROR)
"""The int16 error code beside an address: COORDINATOR_NOT_AVAILABLE is put there where the broker has no listener."""
REST = Field(Step.END)
"""What follows is not looked at."""


def array(*fields: Field) -> Field:
    """An array of structs that have these fields."""
    return Field(Step.ARRAY, fields=fields)


def struct(*fields: Field) -> Field:
    """Fields that end with tagged ones of their own in flexible versions."""
    return Field(None, fields=fields)


def nodes(*fields: Field, most: int = MAX_NODES) -> Field:
    """An array whose items each have an ADDRESS. Those without an ERROR leave out brokers without a listener."""
    return Field(Step.NODES, most, fields)


def since(version: int, field: Field) -> Field:
    """The field exists from `version` on."""
    return replace(field, since=version)


def until(version: int, field: Field) -> Field:
    """The field exists up to `version`."""
    return replace(field, until=version)


NODE_ENDPOINTS = nodes(ADDRESS, STRING)
"""As KIP-951 has them; the string is the rack."""

Program = tuple[tuple[int, int, "Program"], ...]
"""The steps of one version: what to do, how many bytes or items at most, and the steps for each item."""


def program_of(fields: tuple[Field, ...], version: int) -> Program:
    """The steps for a whole response, to its end unless REST is among its fields."""
    end = () if REST in fields else ((int(Step.TAGS), 0, ()), (int(Step.END), 0, ()))
    return (*_merged(_steps(fields, version)), *end)


def flaw_in(fields: tuple[Field, ...]) -> str | None:
    """What keeps addresses of such a response from being rewritten, in a sentence; None: nothing."""
    lists = [field.fields for field in fields if field.step is Step.NODES]
    steps = {field.step for field in fields}
    if any(_names_brokers(field) for each in fields if each.step is not Step.NODES for field in each.fields):
        return "an address within an array or a struct is not found: it stands in nodes(...), or by itself"
    if len(lists) > 1:
        return "it has more than one nodes(...), and only one can be rewritten"
    if any(Step.ADDRESS not in {field.step for field in items} for items in lists):
        return "its nodes(...) have no ADDRESS"
    if Step.ADDRESS in steps and Step.ERROR not in steps:
        return "an ADDRESS by itself needs an ERROR beside it, for a broker without a listener"
    if not lists and Step.ADDRESS not in steps:
        return "it has no ADDRESS, so there is nothing to rewrite"
    return None


def _names_brokers(field: Field) -> bool:
    return field.step in (Step.ADDRESS, Step.NODES) or any(map(_names_brokers, field.fields))


def _steps(fields: tuple[Field, ...], version: int) -> Iterator[tuple[int, int, Program]]:
    for field in fields:
        if field is REST or not field.since <= version <= field.until:
            continue
        inner = (*_merged(_steps(field.fields, version)), (int(Step.TAGS), 0, ())) if field.fields else ()
        if field.step is None:
            yield from inner
        else:
            yield int(field.step), field.size, inner


def _merged(steps: Iterator[tuple[int, int, Program]]) -> Iterator[tuple[int, int, Program]]:
    """Fields of fixed size beside each other are one step."""
    fixed = 0
    for step in steps:
        if step[0] == Step.FIXED:
            fixed += step[1]
            continue
        if fixed:
            yield int(Step.FIXED), fixed, ()
            fixed = 0
        yield step
    if fixed:
        yield int(Step.FIXED), fixed, ()
