"""The plots of reports, as SVG."""

from collections.abc import Mapping, Sequence
from datetime import UTC
from io import StringIO
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

GOOD = "#9fb8c8"
COLOURS = {
    "none": GOOD,
    "seconds": "#e69f00",
    "microseconds": "#d55e00",
    "nanoseconds": "#a11d33",
    "zero": "#444444",
    "negative": "#8c564b",
    "future": "#7b4ab5",
    "past": "#0b6e99",
}
_SHOWN = {"none": "sound"}


def bars_over_time(times_ms: Sequence[int], series: Mapping[str, Sequence[int]], title: str, unit_ms: int) -> str:
    """Bars of `unit_ms` each, a colour a series. Damage is small beside what is sound: the scale is logarithmic."""
    figure, axes = _figure(title)
    width = unit_ms / 86_400_000
    days = [t / 86_400_000 for t in times_ms]  # matplotlib's dates count days since 1970
    shift = 1 / max(len(series), 1)
    for place, (name, values) in enumerate(series.items()):
        left = [day + width * shift * place for day in days]
        axes.bar(left, values, width * shift * 0.9, align="edge", label=_SHOWN.get(name, name), color=COLOURS[name])
    axes.xaxis_date(tz=UTC)
    axes.set_yscale("symlog", linthresh=1)
    axes.set_ylabel("records")
    axes.legend(frameon=False, ncols=4, fontsize=8, loc="lower left", bbox_to_anchor=(0, 1.0))
    figure.autofmt_xdate()
    return _svg(figure)


def share_beyond(bounds: Sequence[str], series: Mapping[str, Sequence[float]], title: str) -> str:
    """How much lies beyond each bound; shares are of 1."""
    figure, axes = _figure(title)
    for name, values in series.items():
        axes.plot(bounds, [100 * value for value in values], marker="o", markersize=3, label=name)
    axes.set_yscale("symlog", linthresh=0.001)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("% of records beyond")
    axes.tick_params(axis="x", rotation=60)
    axes.legend(frameon=False, fontsize=8)
    return _svg(figure)


def bars(names: Sequence[str], series: Mapping[str, Sequence[int]], title: str, label: str) -> str:
    """Lying bars, one for each name, a colour a series."""
    figure, axes = _figure(title, 0.6 + 0.3 * max(len(names), 2))
    left = [0] * len(names)
    for place, (name, values) in enumerate(series.items()):
        axes.barh(list(names), values, left=left, label=_SHOWN.get(name, name), color=COLOURS.get(name, f"C{place}"))
        left = [a + b for a, b in zip(left, values, strict=True)]
    axes.invert_yaxis()
    axes.set_xlabel(label)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    if len(series) > 1:
        axes.legend(frameon=False, fontsize=8)
    return _svg(figure)


def _figure(title: str, height: float = 3.2) -> tuple[Figure, Any]:
    figure = Figure(figsize=(9, max(height, 1.8)), layout="constrained")
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    return figure, axes


def _svg(figure: Figure) -> str:
    """Without the XML head, to stand within a page."""
    with mpl.rc_context({"svg.hashsalt": "sluicegate"}):
        text = StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
    found = text.getvalue()
    return found[found.index("<svg") :]
