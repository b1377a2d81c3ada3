"""The step function that fits a partition's times best, in the order of their offsets, and never goes down.

Each time is on the function, or late (below it), or ahead of it. Late costs its weight: replays and backfills are
common. Ahead costs three times that: a clock has to be wrong for it. So what goes up is on the function, one record
that is ahead stands out, and old records written among current ones, or behind them, are late.

The best total by the function's height is itself a function that never goes down; it is kept as its jumps, which a new
time adds one of and takes some from, and what changed is remembered to walk back: n log n in all.
"""

from bisect import bisect_left, bisect_right, insort

import numpy as np
from numpy.typing import NDArray

_AHEAD_COSTS = 3


def fitted(values: NDArray[np.int64], weights: NDArray[np.int64]) -> NDArray[np.int64]:
    """The places of those that are on the best function, ascending."""
    ranks = np.unique(values, return_inverse=True)[1].tolist()
    heights: list[int] = []  # where the jumps are, ascending
    jumps: dict[int, int] = {}
    undone: list[list[tuple[int, int]]] = []  # at each time: a jump's height, and what it was before
    for rank, weight in zip(ranks, weights.tolist(), strict=True):
        before = jumps.get(rank, 0)
        if not before:
            insort(heights, rank)
        # Lower than this time, the function would have it ahead; at this height it is on the function.
        jumps[rank] = before + weight * _AHEAD_COSTS
        changes = [(rank, before)]
        # Higher, it would be late: what was better there is better by so much less.
        place, left = bisect_right(heights, rank), weight
        end = place
        while left and end < len(heights):
            jump = jumps[heights[end]]
            changes.append((heights[end], jump))
            if jump > left:
                jumps[heights[end]] = jump - left
                break
            left -= jump
            del jumps[heights[end]]
            end += 1
        del heights[place:end]
        undone.append(changes)
    return _walked_back(ranks, heights, jumps, undone)


def _walked_back(
    ranks: list[int], heights: list[int], jumps: dict[int, int], undone: list[list[tuple[int, int]]]
) -> NDArray[np.int64]:
    on_it = []
    height = len(ranks)
    for place in range(len(ranks) - 1, -1, -1):
        at = bisect_right(heights, height)
        if at == 0:
            break  # all that came before is ahead of the function
        height = heights[at - 1]
        if ranks[place] == height:
            on_it.append(place)
        for jumped, before in undone[place]:
            if before and jumped not in jumps:
                insort(heights, jumped)
            if before:
                jumps[jumped] = before
            else:
                del jumps[jumped]
                del heights[bisect_left(heights, jumped)]
    return np.array(on_it[::-1], np.int64)
