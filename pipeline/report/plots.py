"""The plots of reports, as SVG, with what each shows in words."""

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

from sluicegate.pipeline.report.colours import INK, variable
from sluicegate.pipeline.report.wording import moment, shortened

SHOWN = {"none": "sound"}
_MOST_NAMED = 3


def told_over_time(times_ms: Sequence[int], series: Mapping[str, Sequence[int]], unit_ms: int) -> str:
    """From when to when, and of each series how many and where most of them are."""
    spans = "one span" if len(times_ms) == 1 else f"{len(times_ms):,} spans"
    parts = []
    for name, values in series.items():
        most = max(range(len(values)), key=lambda place: values[place])
        parts.append(f"{SHOWN.get(name, name)} {sum(values):,}, most ({values[most]:,}) from {moment(times_ms[most])}")
    hours = unit_ms // 3_600_000
    of = f"{spans} of {hours:,} h" if hours else spans
    return f"{moment(times_ms[0])} to {moment(times_ms[-1] + unit_ms)}, {of}: {'; '.join(parts)}."


def told_beyond(bounds: Sequence[str], series: Mapping[str, Sequence[float]]) -> str:
    """How much lies beyond the first bound, and beyond which there is nothing; shares are of 1."""
    parts = []
    for name, shares in series.items():
        if not any(shares):
            parts.append(f"{name}: nothing beyond {bounds[0]}")
            continue
        empty = next((bound for bound, part in zip(bounds, shares, strict=True) if part == 0), None)
        rest = f"none beyond {empty}" if empty else f"{100 * shares[-1]:.3g} % even beyond {bounds[-1]}"
        parts.append(f"{name}: {100 * shares[0]:.3g} % beyond {bounds[0]}, {rest}")
    return f"{'; '.join(parts)}."


def told_bars(names: Sequence[str], series: Mapping[str, Sequence[int]], label: str) -> str:
    """The longest, with what they are made of."""
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
"""What is drawn in the colour of the page's words; matplotlib knows no variables, so colours are put in afterwards."""
_THEME: Any = dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), _INK)
_GROUP_ID = re.compile(r'<g id="[^"]*"')
_DRAWN_IN = re.compile(r"(?<=fill: |roke: )#0102[0-9a-f]{2}\b")


@dataclass(frozen=True, slots=True)
class Plot:
    """`says`: what it shows, which stands below it."""

    title: str
    svg: str
    says: str


def over_time(times_ms: Sequence[int], series: Mapping[str, Sequence[int]], title: str, unit_ms: int) -> Plot:
    """A point for each span of `unit_ms`, a colour a series; what there is most of is an area behind the others.

    Damage is small beside what is sound, so the scale is logarithmic.
    """
    drawing = _Drawing(title)
    axes = drawing.axes
    middles = [(time + unit_ms / 2) / _DAY_MS for time in times_ms]  # matplotlib's dates count days since 1970
    for name, values in series.items():
        colour = drawing.colour_of(name)
        if name in _AREAS:
            axes.bar(middles, values, unit_ms / _DAY_MS, color=colour, label=SHOWN.get(name, name))
        else:
            axes.plot(middles, values, marker="o", markersize=4, linewidth=1, color=colour, label=name)
    axes.xaxis_date(tz=UTC)
    axes.set_yscale("symlog", linthresh=1)
    axes.set_ylabel("records")
    _legend(axes)
    drawing.figure.autofmt_xdate()
    return drawing.plot(told_over_time(times_ms, series, unit_ms))


def share_beyond(bounds: Sequence[str], series: Mapping[str, Sequence[float]], title: str) -> Plot:
    """How much lies beyond each bound; shares are of 1."""
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
    return drawing.plot(told_beyond(bounds, series))


def bars(names: Sequence[str], series: Mapping[str, Sequence[int]], title: str, label: str) -> Plot:
    """Lying bars, one for each name, a colour a series.

    `$` begins no formula in the name of a client, and two that are shortened alike have a bar each.
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
    return drawing.plot(told_bars(names, series, label))


class _Drawing:
    """A figure with one pair of axes, whose colours are the page's own."""

    def __init__(self, title: str, height: float = 3.2) -> None:
        with mpl.rc_context(_THEME):
            self.figure = Figure(figsize=(9, max(height, 2.0)), layout="constrained", facecolor="none")
            self.axes: Any = self.figure.add_subplot(facecolor="none")
            self.axes.spines[["top", "right"]].set_visible(False)
            self.figure.suptitle(title, x=0.01, ha="left", fontsize=11)
        self._title = title
        self._variables = {_INK: f"var(--{INK})"}

    def colour_of(self, series: str) -> str:
        """What to draw a series with, which becomes its variable."""
        number = len(self._variables)
        colour = f"#0102{number + 3:02x}"
        self._variables[colour] = variable(series, number - 1)
        return colour

    def plot(self, says: str) -> Plot:
        """Without the XML head, to stand within a page; words are in its fonts, because matplotlib's lack most scripts.
        Groups lose their names, which every plot of a page would have.
        """
        settings: Any = {"svg.hashsalt": self._title, "svg.fonttype": "none", **_THEME}
        with mpl.rc_context(settings), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph .* missing from font")
            text = StringIO()
            self.figure.savefig(text, format="svg", metadata={"Date": None}, transparent=True)
        found = _GROUP_ID.sub("<g", text.getvalue())
        found = _DRAWN_IN.sub(lambda colour: self._variables[colour[0]], found)
        label = f'<svg role="img" aria-label="{escape(self._title, quote=True)}"'
        return Plot(self._title, found[found.index("<svg") :].replace("<svg", label, 1), says)


def _legend(axes: Any) -> None:
    """Above the plot, where it covers nothing."""
    with mpl.rc_context(_THEME):
        axes.legend(frameon=False, ncols=8, fontsize=8, loc="lower left", bbox_to_anchor=(0, 1.0), borderaxespad=0)
