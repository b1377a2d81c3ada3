"""Draws the reports' plots as SVG, each with a description in words, and defines the reports' colours."""

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from html import escape
from io import StringIO
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from sluicegate.pipeline.report.wording import moment_text, shortened

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
    "maybe_future": ("#a98fd0", "#8c6cc0"),
    "maybe_past": ("#6aa9c4", "#3d86a8"),
    "maybe_either": ("#8f9bb5", "#7482a3"),
}
"""Colours of the kinds of invalid timestamps; `none` is for valid records."""
OTHERS = (
    ("#0b6e99", "#5db8e0"),
    ("#b85c00", "#ff9c40"),
    ("#2b7d3f", "#6cc784"),
    ("#a11d33", "#ff6b81"),
    ("#7b4ab5", "#b894e6"),
    ("#8c564b", "#cf9a8e"),
)
"""Colours for all other series, in this order."""


def _names() -> dict[str, tuple[str, str]]:
    others = {f"series-{number}": pair for number, pair in enumerate(OTHERS)}
    return {**_PAGE, **{f"series-{name}": pair for name, pair in SERIES.items()}, **others}


def as_css() -> str:
    """Return the colours as CSS variables for the reader's preferred colour scheme."""
    light, dark = (" ".join(f"--{name}: {pair[which]};" for name, pair in _names().items()) for which in (0, 1))
    return (
        f":root {{ color-scheme: light dark; {light} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}"
    )


def css_variable(series: str, number: int) -> str:
    """Return a series' CSS variable, by its name, or by its number if it has no colour of its own."""
    return f"var(--series-{series if series in SERIES else number % len(OTHERS)})"


SHOWN = {"none": "valid", "maybe_future": "perhaps future", "maybe_past": "perhaps past", "maybe_either": "either"}
_MOST_NAMED = 3


def describe_over_time(times_ms: Sequence[int], series: Mapping[str, Sequence[int]], unit_ms: int) -> str:
    """Describe the time span, and the sum and the peak of each series."""
    spans = "one span" if len(times_ms) == 1 else f"{len(times_ms):,} spans"
    parts = []
    for name, values in series.items():
        most = max(range(len(values)), key=lambda place: values[place])
        parts.append(
            f"{SHOWN.get(name, name)} {sum(values):,}, most ({values[most]:,}) from {moment_text(times_ms[most])}"
        )
    hours = unit_ms // 3_600_000
    of = f"{spans} of {hours:,} h" if hours else spans
    return f"{moment_text(times_ms[0])} to {moment_text(times_ms[-1] + unit_ms)}, {of}: {'; '.join(parts)}."


def share_beyond_bounds(bounds: Sequence[str], series: Mapping[str, Sequence[float]]) -> str:
    """Describe the share beyond the first bound, and name the bound beyond which there are no records.

    Shares are fractions of 1.
    """
    parts = []
    for name, shares in series.items():
        if not any(shares):
            parts.append(f"{name}: nothing beyond {bounds[0]}")
            continue
        empty = next((bound for bound, part in zip(bounds, shares, strict=True) if part == 0), None)
        rest = f"none beyond {empty}" if empty else f"{100 * shares[-1]:.3g} % even beyond {bounds[-1]}"
        parts.append(f"{name}: {100 * shares[0]:.3g} % beyond {bounds[0]}, {rest}")
    return f"{'; '.join(parts)}."


def describe_bars(names: Sequence[str], series: Mapping[str, Sequence[int]], label: str) -> str:
    """Describe the longest bars with their parts."""
    sums = [sum(values[place] for values in series.values()) for place in range(len(names))]
    longest = sorted(range(len(names)), key=lambda place: -sums[place])[:_MOST_NAMED]
    parts = []
    for place in longest:
        kinds = [f"{SHOWN.get(name, name)} {values[place]:,}" for name, values in series.items() if values[place]]
        of = f" ({', '.join(kinds)})" if len(series) > 1 and kinds else ""
        parts.append(f"{shortened(names[place])} {sums[place]:,}{of}")
    rest = f"; {len(names) - len(longest):,} more below" if len(names) > len(longest) else ""
    return f"{label[:1].upper()}{label[1:]}, the most first: {'; '.join(parts)}{rest}."


_AREAS = frozenset({"none"})
_DAY_MS = 86_400_000
_INK = "#010203"
"""Placeholder for the text colour. matplotlib does not support CSS variables, so they are inserted afterwards."""
_THEME: Any = dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), _INK)
_GROUP_ID = re.compile(r'<g id="[^"]*"')
_DRAWN_IN = re.compile(r"(?<=fill: |roke: )#0102[0-9a-f]{2}\b")


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot as SVG. `description` is the text below the plot."""

    title: str
    svg: str
    description: str


def time_plot(times_ms: Sequence[int], series: Mapping[str, Sequence[int]], title: str, unit_ms: int) -> Plot:
    """Plot a point for each span of `unit_ms`, with one colour per series. Bars behind the points show valid records.

    The scale is logarithmic, because there are few records with invalid timestamps compared with valid records.
    """
    drawing = _Drawing(title)
    axes = drawing.axes
    middles = [(time + unit_ms / 2) / _DAY_MS for time in times_ms]  # matplotlib's dates are days since 1970
    for name, values in series.items():
        colour = drawing.colour_of(name)
        if name in _AREAS:
            axes.bar(middles, values, unit_ms / _DAY_MS, color=colour, label=SHOWN.get(name, name))
        else:
            axes.plot(middles, values, marker="o", markersize=4, linewidth=1, color=colour, label=SHOWN.get(name, name))
    axes.xaxis_date(tz=UTC)
    axes.set_yscale("symlog", linthresh=1)
    highest = max((value for values in series.values() for value in values), default=1)
    axes.set_ylim(0, 2 * max(highest, 1))  # begin at 0; otherwise a narrow range of values has no labelled tick
    axes.set_ylabel("records")
    _legend(axes)
    drawing.figure.autofmt_xdate()
    return drawing.plot(describe_over_time(times_ms, series, unit_ms))


def share_beyond(bounds: Sequence[str], series: Mapping[str, Sequence[float]], title: str) -> Plot:
    """Plot the share beyond each bound. Shares are fractions of 1."""
    drawing = _Drawing(title)
    axes = drawing.axes
    for name, values in series.items():
        shares = [100 * value for value in values]
        axes.plot(bounds, shares, marker="o", markersize=3, label=name, color=drawing.colour_of(name))
    axes.set_yscale("symlog", linthresh=0.001)
    axes.set_ylim(0, max([0.01, *(300 * value for values in series.values() for value in values)]))
    axes.set_ylabel("% of records beyond")
    axes.tick_params(axis="x", rotation=60)
    _legend(axes)
    return drawing.plot(share_beyond_bounds(bounds, series))


def bar_plot(names: Sequence[str], series: Mapping[str, Sequence[int]], title: str, label: str) -> Plot:
    """Plot a horizontal bar for each name, with one colour per series.

    `$` in a client's name is not parsed as a formula, and names with the same shortened form keep separate bars.
    """
    drawing = _Drawing(title, 0.6 + 0.3 * max(len(names), 2))
    axes = drawing.axes
    places, left = range(len(names)), [0] * len(names)
    for name, values in series.items():
        axes.barh(places, values, left=left, label=SHOWN.get(name, name), color=drawing.colour_of(name))
        left = [a + b for a, b in zip(left, values, strict=True)]
    axes.set_yticks(places, [shortened(name) for name in names], parse_math=False)
    axes.invert_yaxis()
    axes.set_xlabel(label)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    if len(series) > 1:
        _legend(axes)
    return drawing.plot(describe_bars(names, series, label))


class _Drawing:
    """A figure with one pair of axes in the report's colours."""

    def __init__(self, title: str, height: float = 3.2) -> None:
        with mpl.rc_context(_THEME):
            self.figure = Figure(figsize=(9, max(height, 2.0)), layout="constrained", facecolor="none")
            self.axes: Any = self.figure.add_subplot(facecolor="none")
            self.axes.spines[["top", "right"]].set_visible(False)
            self.figure.suptitle(title, x=0.01, ha="left", fontsize=11)
        self._title = title
        self._variables = {_INK: f"var(--{INK})"}

    def colour_of(self, series: str) -> str:
        """Return a placeholder colour, which becomes the series' CSS variable."""
        number = len(self._variables)
        colour = f"#0102{number + 3:02x}"
        self._variables[colour] = css_variable(series, number - 1)
        return colour

    def plot(self, description: str) -> Plot:
        """Return the SVG without its XML declaration.

        Text uses the page's fonts, because matplotlib's fonts lack most scripts. Ids of groups are removed, because
        several plots on a page would have the same ids.
        """
        settings: Any = {"svg.hashsalt": self._title, "svg.fonttype": "none", **_THEME}
        with mpl.rc_context(settings), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph .* missing from font")
            text = StringIO()
            self.figure.savefig(text, format="svg", metadata={"Date": None}, transparent=True)
        found = _GROUP_ID.sub("<g", text.getvalue())
        found = _DRAWN_IN.sub(lambda colour: self._variables[colour[0]], found)
        label = f'<svg role="img" aria-label="{escape(self._title, quote=True)}"'
        return Plot(self._title, found[found.index("<svg") :].replace("<svg", label, 1), description)


def _legend(axes: Any) -> None:
    """Draw the legend above the plot."""
    with mpl.rc_context(_THEME):
        axes.legend(frameon=False, ncols=8, fontsize=8, loc="lower left", bbox_to_anchor=(0, 1.0), borderaxespad=0)
