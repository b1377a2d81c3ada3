"""Finds the known names that are similar to a mistyped name."""

from collections.abc import Iterable
from difflib import get_close_matches

_MOST_NEAR = 3
_MOST_COMPARED = 20_000


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the closest name in `known`, or None if nothing is close."""
    return next(iter(_near(word, known, 1)), None)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean a or b?` with the closest names in `known`, or an empty string if nothing is close."""
    near = _near(word, known, _MOST_NEAR)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def _near(word: str, known: Iterable[str], most: int) -> list[str]:
    return get_close_matches(word, sorted(known)[:_MOST_COMPARED], most)
