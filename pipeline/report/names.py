"""Names that clients give themselves, as pages, plots and terminals can show them."""

from unicodedata import east_asian_width

_MOST = 32


def printable(name: str) -> str:
    """Without control characters, which a terminal would obey."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)


def shortened(name: str) -> str:
    """Beside a plot: its beginning and its end."""
    width = sum(2 if east_asian_width(c) in "WF" else 1 for c in name)
    kept = _MOST // 2 * len(name) // max(width, 1)
    return name if width <= _MOST else f"{name[:kept]}…{name[-kept + 1 :]}"
