"""Draws the plots of a run: CPU and throughput by load, latency at fixed rates."""

import statistics
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("svg")
mpl.rcParams["svg.hashsalt"] = "sluicegate"  # the same run draws an identical file

from matplotlib import pyplot as plt  # noqa: E402  # after the choice of a backend

_COLOURS = {
    "direct": "#7f7f7f",
    "bare relay": "#bcbd22",
    "sluicegate unchecked": "#9ecae1",
    "sluicegate": "#1f77b4",
    "sluicegate, 4 workers": "#08306b",
    "kroxylicious": "#fdae6b",
    "kroxylicious validating": "#d94801",
}


def draw(folder: Path, raw: dict[str, Any]) -> None:
    """Draw cpu.svg, throughput.svg, requests.svg and latency.svg."""
    loads = list(dict.fromkeys(run["load"] for run in raw["runs"]))
    requests = [load for load in loads if load.startswith("one record")]
    rates = [load for load in ("20 MB/s", "2,000 requests/s") if load in loads]
    whole = [load for load in loads if load not in requests and load not in rates]
    _bars(folder / "cpu.svg", raw, whole, "CPU of the proxy, ms per MB (less is better)", _cpu_per_mb)
    _bars(folder / "throughput.svg", raw, whole, "MB/s (more is better)", _mb_per_second)
    _bars(folder / "requests.svg", raw, requests, "CPU of the proxy, us per request (less is better)", _cpu_per_request)
    for percentile in ("p50", "p99", "p99.9"):
        title = f"{percentile} of latency at a fixed rate, ms (less is better)"
        _bars(folder / f"latency-{percentile}.svg", raw, rates, title, partial(_latency, percentile))


Value = Callable[[dict[str, Any]], float]
"""Returns a measured value of a run."""


def _cpu_per_mb(run: dict[str, Any]) -> float:
    return float(run["cpu_seconds"] * 1000 / run["megabytes"])


def _mb_per_second(run: dict[str, Any]) -> float:
    return float(run["megabytes"] / run["seconds"])


def _cpu_per_request(run: dict[str, Any]) -> float:
    return float(run["cpu_seconds"] * 1e6 / run["requests"])


def _latency(percentile: str, run: dict[str, Any]) -> float:
    return float(run["latencies"][percentile])


def _bars(file: Path, raw: dict[str, Any], loads: list[str], title: str, value: Value) -> None:
    targets = [t for t in _COLOURS if any(run["target"] == t for run in raw["runs"])]
    if "CPU" in title:
        targets = [t for t in targets if t != "direct"]
    figure, axes = plt.subplots(figsize=(10, 4.5), layout="constrained")
    width = 0.8 / len(targets)
    for position, target in enumerate(targets):
        values = [[value(r) for r in raw["runs"] if r["load"] == load and r["target"] == target] for load in loads]
        middles = [statistics.median(v) for v in values]
        spread = [
            [m - min(v) for m, v in zip(middles, values, strict=True)],
            [max(v) - m for m, v in zip(middles, values, strict=True)],
        ]
        places = [i + (position - (len(targets) - 1) / 2) * width for i in range(len(loads))]
        axes.bar(places, middles, width * 0.92, yerr=spread, label=target, color=_COLOURS[target], error_kw={"lw": 0.8})
    axes.set_xticks(range(len(loads)), loads)
    axes.set_title(title, loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    axes.yaxis.grid(visible=True, lw=0.4)
    axes.set_axisbelow(True)
    axes.legend(frameon=False, ncols=4, loc="upper center", bbox_to_anchor=(0.5, -0.08))
    figure.savefig(file, metadata={"Date": None})
    plt.close(figure)
