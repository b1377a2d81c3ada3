"""What a plot shows, in words: for those who do not see it, and for those who do."""

from collections.abc import Mapping, Sequence

from sluicegate.pipeline.report.moments import moment
from sluicegate.pipeline.report.names import shortened

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
