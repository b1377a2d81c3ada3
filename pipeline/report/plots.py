"""The plots of reports, as SVG."""

import warnings
from collections.abc import Mapping, Sequence
from datetime import UTC
from io import StringIO
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from sluicegate.pipeline.report.names import shortened

GOOD = "#9fb8c8"
COLOURS = {
    "none": GOOD,
    "seconds": "#e69f00",
    "microseconds": "#d55e00",
    "nanoseconds": "#a11d33",
    "zero": "#444444",
    "negative": "#8c564b",
    "implausible": "#c2a83e",
    "future": "#7b4ab5",
    "past": "#0b6e99",
}
_SHOWN = {"none": "sound"}
_AREAS = frozenset({"none"})
_DAY_MS = 86_400_000


def over_time(times_ms: Sequence[int], series: Mapping[str, Sequence[int]], title: str, unit_ms: int) -> str:
    """A point for each span of `unit_ms`, a colour a series; what there is most of is an area behind the others.

    Damage is small beside what is sound, so the scale is logarithmic.
    """
    figure, axes = _figure(title)
    middles = [(time + unit_ms / 2) / _DAY_MS for time in times_ms]  # matplotlib's dates count days since 1970
    for name, values in series.items():
        if name in _AREAS:
            axes.bar(middles, values, unit_ms / _DAY_MS, color=COLOURS[name], label=_SHOWN.get(name, name))
        else:
            axes.plot(middles, values, marker="o", markersize=4, linewidth=1, color=COLOURS[name], label=name)
    axes.xaxis_date(tz=UTC)
    axes.set_yscale("symlog", linthresh=1)
    axes.set_ylabel("records")
    _legend(axes)
    figure.autofmt_xdate()
    return _svg(figure)


def share_beyond(bounds: Sequence[str], series: Mapping[str, Sequence[float]], title: str) -> str:
    """How much lies beyond each bound; shares are of 1."""
    figure, axes = _figure(title)
    for name, values in series.items():
        axes.plot(bounds, [100 * value for value in values], marker="o", markersize=3, label=name)
    axes.set_yscale("symlog", linthresh=0.001)
    axes.set_ylim(0, max([0.01, *(300 * value for values in series.values() for value in values)]))
    axes.set_ylabel("% of records beyond")
    axes.tick_params(axis="x", rotation=60)
    _legend(axes)
    return _svg(figure)


def bars(names: Sequence[str], series: Mapping[str, Sequence[int]], title: str, label: str) -> str:
    """Lying bars, one for each name, a colour a series.

    `$` begins no formula in the name of a client, and two that are shortened alike have a bar each.
    """
    figure, axes = _figure(title, 0.6 + 0.3 * max(len(names), 2))
    places, left = range(len(names)), [0] * len(names)
    for number, (name, values) in enumerate(series.items()):
        axes.barh(places, values, left=left, label=_SHOWN.get(name, name), color=COLOURS.get(name, f"C{number}"))
        left = [a + b for a, b in zip(left, values, strict=True)]
    axes.set_yticks(places, [shortened(name) for name in names], parse_math=False)
    axes.invert_yaxis()
    axes.set_xlabel(label)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    if len(series) > 1:
        _legend(axes)
    return _svg(figure)


def _figure(title: str, height: float = 3.2) -> tuple[Figure, Any]:
    figure = Figure(figsize=(9, max(height, 2.0)), layout="constrained")
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    return figure, axes


def _legend(axes: Any) -> None:
    """Above the plot, where it covers nothing."""
    axes.legend(frameon=False, ncols=8, fontsize=8, loc="lower left", bbox_to_anchor=(0, 1.0), borderaxespad=0)


def _svg(figure: Figure) -> str:
    """Without the XML head, to stand within a page; words are in its fonts, because matplotlib's lack most scripts."""
    with mpl.rc_context({"svg.hashsalt": "sluicegate", "svg.fonttype": "none"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        text = StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
    found = text.getvalue()
    return found[found.index("<svg") :]
