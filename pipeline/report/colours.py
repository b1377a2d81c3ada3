"""Colours of the report and its plots, for light and dark mode. Contrast: at least 3:1 for shapes, 4.5:1 for text."""

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
"""Colours of damages; `none` is for sound records."""
OTHERS = (
    ("#0b6e99", "#5db8e0"),
    ("#b85c00", "#ff9c40"),
    ("#2b7d3f", "#6cc784"),
    ("#a11d33", "#ff6b81"),
    ("#7b4ab5", "#b894e6"),
    ("#8c564b", "#cf9a8e"),
)
"""Colours for series that are not damages, in this order."""


def _names() -> dict[str, tuple[str, str]]:
    others = {f"series-{number}": pair for number, pair in enumerate(OTHERS)}
    return {**_PAGE, **{f"series-{name}": pair for name, pair in SERIES.items()}, **others}


def as_css() -> str:
    """Return the colours as CSS variables, by the reader's preferred colour scheme."""
    light, dark = (" ".join(f"--{name}: {pair[which]};" for name, pair in _names().items()) for which in (0, 1))
    return (
        f":root {{ color-scheme: light dark; {light} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}"
    )


def variable(series: str, number: int) -> str:
    """Return the CSS variable of a series: by name, or by number if it has no colour of its own."""
    return f"var(--series-{series if series in SERIES else number % len(OTHERS)})"
