"""The colours of a page and of its plots, on light and on dark ground: each stands out by 3 to 1 or better, words by
4.5 to 1.
"""

INK = "ink"
_PAGE = {
    "ground": ("#ffffff", "#12161c"),
    "panel": ("#f4f6f8", "#1a2028"),
    INK: ("#1c2733", "#e6eaf0"),
    "soft": ("#55606e", "#a3aebb"),
    "line": ("#d5dae1", "#343d49"),
    "accent": ("#0b6e99", "#5db8e0"),
}
SERIES = {
    "none": ("#7f9bad", "#6b8799"),
    "seconds": ("#b87400", "#e69f00"),
    "microseconds": ("#d55e00", "#ff8533"),
    "nanoseconds": ("#a11d33", "#ff6b81"),
    "zero": ("#444444", "#c4c4c4"),
    "negative": ("#8c564b", "#cf9a8e"),
    "implausible": ("#8a7617", "#d9c45a"),
    "future": ("#7b4ab5", "#b894e6"),
    "past": ("#0b6e99", "#5db8e0"),
}
"""What is wrong with a time; `none` is what is sound."""
OTHERS = (
    ("#0b6e99", "#5db8e0"),
    ("#b85c00", "#ff9c40"),
    ("#2b7d3f", "#6cc784"),
    ("#a11d33", "#ff6b81"),
    ("#7b4ab5", "#b894e6"),
    ("#8c564b", "#cf9a8e"),
)
"""For series that are no damage, one after the other."""


def _names() -> dict[str, tuple[str, str]]:
    others = {f"series-{number}": pair for number, pair in enumerate(OTHERS)}
    return {**_PAGE, **{f"series-{name}": pair for name, pair in SERIES.items()}, **others}


def as_css() -> str:
    """A variable for each, by what whoever looks at the page prefers."""
    light, dark = (" ".join(f"--{name}: {pair[which]};" for name, pair in _names().items()) for which in (0, 1))
    return (
        f":root {{ color-scheme: light dark; {light} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}"
    )


def variable(series: str, number: int) -> str:
    """Of a series by its name, or, where it has no colour of its own, by its place."""
    return f"var(--series-{series if series in SERIES else number % len(OTHERS)})"
