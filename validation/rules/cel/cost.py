"""Computes an upper bound of a CEL expression's evaluation time, from its tree and the sizes of its inputs.

The cost of each part depends on how often it runs and how much data it reads each time. In a loop, the items' sizes are
counted once for all rounds together, because all items together are no larger than the list. Times are in ns, and about
twice the longest measured times.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from sluicegate.validation.rules.cel.tree import Call, Constant, ListOf, Loop, MapOf, Name, Node, Select

MOST_ITERATIONS: Final = 10_000
"""The runtime aborts an evaluation after this many items of all loops together. The limit cannot be configured."""

_NODE, _ITERATION = 100, 200
_COPY = 120  # per item of the list that `map` or `filter` builds, because each round copies the list
_ENTRY = 300  # per entry of a list or map literal
# The costs per byte, or per item.
_COMPARE, _JOIN, _READ_TEXT, _CONVERT = 150, 40, 5, 40
_CONVERSION = 800
_TIME_OF_DAY = 800
_PATTERN, _PATTERN_INSTRUCTION = 6000, 2000  # the pattern is compiled again for each string
# The costs per byte, and per byte and instruction of the pattern. RE2 may build a state for each byte.
_MATCH, _MATCH_INSTRUCTION = 10, 20
_NEEDLE = 16  # bytes of the searched string that are compared in one ns
_TEXT_OF_NUMBER = 40


class CostUnknown(Exception):
    """Raised if an expression uses something without a known bound."""


@dataclass(frozen=True, slots=True)
class Extent:
    """The maximum size of a value.

    `items` is its number of items, or that of an inner value. `size` is the number of all bytes and items. `total` is
    the sum over all values that one part of the expression has in all its rounds.
    """

    items: int
    size: int
    total: int

    def within(self, rounds: int, rounds_each: int) -> "Extent":
        """Return the extent in a loop of `rounds` rounds in total, and `rounds_each` rounds per start of the loop."""
        return Extent(self.items, self.size, min(self.size * rounds, self.total * rounds_each))


_Charge = Callable[["_CostEstimate", tuple[Node, ...], list[Extent], int], Extent]


def nanoseconds(tree: Node, variables: Mapping[str, tuple[int, int]], programs: Mapping[str, int]) -> int:
    """Return the longest evaluation time (ns). Raises CostUnknown.

    `variables` contains the number of items and the size of each variable. `programs` contains the number of
    instructions of each literal pattern.
    """
    estimate = _CostEstimate(programs)
    estimate.extent(tree, 1, {name: Extent(items, size, size) for name, (items, size) in variables.items()})
    return estimate.nanoseconds


class _CostEstimate:
    def __init__(self, programs: Mapping[str, int]) -> None:
        self.nanoseconds = 0
        self._programs = programs

    def extent(self, node: Node, times: int, scope: Mapping[str, Extent]) -> Extent:
        """Return the extent of a part's value. Adds the cost of evaluating the part `times` times."""
        self.nanoseconds += _NODE * times
        match node:
            case Constant(size):
                return Extent(0, size, size * times)
            case Name(name):
                return scope.get(name) or _scalar(times)
            case Select(operand):
                return self.extent(operand, times, scope)
            case Call(function, args):
                return self._call(function, args, times, scope)
            case ListOf(parts) | MapOf("", parts):
                self.nanoseconds += _ENTRY * len(parts) * times
                held = [self.extent(part, times, scope) for part in parts]
                return _sum(held, len(parts), times)
            case Loop():
                return self._loop(node, times, scope)
        raise CostUnknown  # a message

    def _call(self, function: str, args: tuple[Node, ...], times: int, scope: Mapping[str, Extent]) -> Extent:
        given = [self.extent(arg, times, scope) for arg in args]
        charge = _CHARGES.get(function)
        if charge is None:
            raise CostUnknown
        return charge(self, args, given, times)

    def scalar_extent(self, _args: tuple[Node, ...], _given: list[Extent], times: int) -> Extent:
        """Return the extent of a number or a boolean."""
        return _scalar(times)

    def conditional(self, _args: tuple[Node, ...], given: list[Extent], _times: int) -> Extent:
        """Return the extent of a conditional: that of its two alternatives."""
        _, one, other = given
        return Extent(max(one.items, other.items), max(one.size, other.size), one.total + other.total)

    def argument_extent(self, _args: tuple[Node, ...], given: list[Extent], _times: int) -> Extent:
        """Return the extent of a function that returns its argument."""
        return given[0]

    def comparison(self, _args: tuple[Node, ...], given: list[Extent], times: int) -> Extent:
        """Return the extent of a comparison, which reads as much as the smaller value."""
        self.nanoseconds += _COMPARE * min(given[0].total, given[1].total)
        return _scalar(times)

    def conversion(self, _args: tuple[Node, ...], given: list[Extent], times: int) -> Extent:
        """Return the extent of a conversion to another type."""
        self.nanoseconds += _CONVERSION * times + _CONVERT * given[0].total
        return Extent(0, given[0].size + _TEXT_OF_NUMBER, given[0].total + _TEXT_OF_NUMBER * times)

    def part_of_time(self, _args: tuple[Node, ...], _given: list[Extent], times: int) -> Extent:
        """Return the extent of a part of a timestamp (a year, an hour, and so on) in a time zone."""
        self.nanoseconds += _TIME_OF_DAY * times
        return _scalar(times)

    def item(self, _args: tuple[Node, ...], given: list[Extent], _times: int) -> Extent:
        """Return the extent of a list's item, or of the value of a map's key."""
        self.nanoseconds += _READ_TEXT * given[1].total
        return given[0]

    def membership(self, _args: tuple[Node, ...], given: list[Extent], times: int) -> Extent:
        """Return the extent of a test whether a list contains an item, or a map a key."""
        self.nanoseconds += _READ_TEXT * given[0].total + _COMPARE * given[1].total
        return _scalar(times)

    def concatenation_extent(self, args: tuple[Node, ...], given: list[Extent], times: int) -> Extent:
        """Return the extent of the concatenation or sum of two values."""
        if any(isinstance(arg, Constant) and arg.is_number for arg in args):
            return _scalar(times)
        self.nanoseconds += _JOIN * sum(extent.total for extent in given)
        both = _sum(given, 0, times)
        return Extent(sum(extent.items for extent in given), both.size, both.total)

    def size(self, _args: tuple[Node, ...], given: list[Extent], times: int) -> Extent:
        """Return the extent of a size. For a string, the runtime counts all code points."""
        self.nanoseconds += _READ_TEXT * given[0].total
        return _scalar(times)

    def beginning(self, _args: tuple[Node, ...], given: list[Extent], times: int) -> Extent:
        """Return the extent of a test whether one string starts or ends with another."""
        self.nanoseconds += _READ_TEXT * min(given[0].total, given[1].total)
        return _scalar(times)

    def contained(self, _args: tuple[Node, ...], given: list[Extent], times: int) -> Extent:
        """Return the extent of a test whether one string contains another, which is compared at each position."""
        self.nanoseconds += given[0].total * (_READ_TEXT + given[1].size // _NEEDLE)
        return _scalar(times)

    def match(self, args: tuple[Node, ...], given: list[Extent], times: int) -> Extent:
        """Return the extent of a pattern match. A pattern from a record has no known bound."""
        pattern = args[1]
        if not isinstance(pattern, Constant) or pattern.text is None:
            raise CostUnknown
        instructions = self._programs[pattern.text]
        self.nanoseconds += (_PATTERN + _PATTERN_INSTRUCTION * instructions) * times
        self.nanoseconds += (_MATCH + _MATCH_INSTRUCTION * instructions) * given[0].total
        return _scalar(times)

    def _loop(self, loop: Loop, times: int, scope: Mapping[str, Extent]) -> Extent:
        over = self.extent(loop.over, times, scope)
        each = min(over.items, MOST_ITERATIONS)
        rounds = min(times * each, MOST_ITERATIONS)
        inner = {name: extent.within(rounds, each) for name, extent in scope.items()}
        inner |= dict.fromkeys(loop.names, over)
        inner[loop.gathered] = Extent(0, 0, 0)
        self.nanoseconds += _ITERATION * rounds
        self.extent(loop.initial, times, scope)
        self.extent(loop.condition, rounds, inner)
        step = self.extent(loop.step, rounds, inner)
        gathered = _scalar(times)
        if isinstance(loop.initial, ListOf):  # map, or filter
            self.nanoseconds += _COPY * rounds * (each + 1) // 2
            gathered = Extent(max(each, step.items), min(each * step.size, step.total) + 1, step.total + times)
        return self.extent(loop.result, times, {**scope, loop.gathered: gathered})


def _scalar(times: int) -> Extent:
    return Extent(0, 1, times)


def _sum(held: list[Extent], own: int, times: int) -> Extent:
    return Extent(
        max((own, *(extent.items for extent in held))),
        own + 1 + sum(extent.size for extent in held),
        (own + 1) * times + sum(extent.total for extent in held),
    )


def _same(functions: str, charge: _Charge) -> dict[str, _Charge]:
    return dict.fromkeys(functions.split(), charge)


_CHARGES: dict[str, _Charge] = {
    **_same("_&&_ _||_ !_ -_ _-_ _*_ _/_ _%_ type @not_strictly_false", _CostEstimate.scalar_extent),
    **_same("_==_ _!=_ _<_ _<=_ _>_ _>=_", _CostEstimate.comparison),
    **_same("bool int uint double string bytes timestamp duration", _CostEstimate.conversion),
    **_same("getFullYear getMonth getDate getDayOfMonth getDayOfWeek getDayOfYear", _CostEstimate.part_of_time),
    **_same("getHours getMinutes getSeconds getMilliseconds", _CostEstimate.part_of_time),
    **_same("startsWith endsWith", _CostEstimate.beginning),
    "_?_:_": _CostEstimate.conditional,
    "_[_]": _CostEstimate.item,
    "_+_": _CostEstimate.concatenation_extent,
    "@in": _CostEstimate.membership,
    "contains": _CostEstimate.contained,
    "dyn": _CostEstimate.argument_extent,
    "matches": _CostEstimate.match,
    "size": _CostEstimate.size,
}
"""The costs of the functions and operators in CEL's standard library, by their names in the tree."""
