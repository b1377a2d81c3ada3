"""An upper bound of a regular expression's time per byte, from its text, for an engine without backtracking.

If the regex crate cannot keep a table of states, it simulates an automaton whose states are the pattern's characters,
with expanded repetitions (https://docs.rs/regex/latest/regex/#untrusted-input): O(states) for each byte.
"""

_MOST_STATES = 1_000_000
_OF_CLASS = 4  # \w, \p{L} or a set: characters of several bytes have states of their own
_CLASSES = frozenset("wWdDsSpPbB")
# Measured: at most 8 ns for each state and byte, 20 ns for a character class.
_STEPS_OF_STATE = 0.1
_LEAST_STEPS = 0.1


def steps_of_byte(pattern: str) -> float:
    """Return an upper bound of the steps (100 ns) for each byte of a text."""
    return max(_LEAST_STEPS, states_of(pattern) * _STEPS_OF_STATE)


def states_of(pattern: str) -> int:
    """Return an estimate of a pattern's states that is too low by at most a constant factor."""
    outer: list[tuple[int, int]] = []  # of each open group: the states before it, and those of its last part
    states = last = 0
    at, end = 0, len(pattern)
    while at < end:
        sign = pattern[at]
        at += 1
        if sign == "(":
            outer.append((states, last))
            states = last = 0
        elif sign == ")":
            inside = states + last + 1
            states, last = outer.pop() if outer else (0, 0)
            states, last = states + last, inside
        elif sign == "{":
            closing = pattern.find("}", at)
            last = min(last * _most_times(pattern[at:closing]), _MOST_STATES) if closing >= 0 else last + 1
            at = closing + 1 if closing >= 0 else at
        elif sign in "*+?":
            last += 1
        else:
            states, last = min(states + last, _MOST_STATES), 1
            if sign == "[":
                at = _behind_set(pattern, at)
                last = _OF_CLASS
            elif sign == "\\" and at < end:
                last = _OF_CLASS if pattern[at] in _CLASSES else 1
                at += 1
                if pattern[at - 1] in "pPuxk" and at < end and pattern[at] == "{":
                    at = pattern.find("}", at) + 1 or end
            elif sign == "." or sign > "\x7f":
                last = _OF_CLASS
    while outer:
        before, before_last = outer.pop()
        states += before + before_last
    return min(states + last + 1, _MOST_STATES)


def _most_times(counted: str) -> int:
    """Return the repetitions of {3}, {3,} or {3,5}; anything else is one character."""
    least, _, most = counted.partition(",")
    numbers = [int(one) for one in (least, most) if one.isdecimal() and len(one) < 8]
    return max([1, *numbers]) + 1


def _behind_set(pattern: str, at: int) -> int:
    while at < len(pattern) and pattern[at] != "]":
        at += 2 if pattern[at] == "\\" else 1
    return at + 1
