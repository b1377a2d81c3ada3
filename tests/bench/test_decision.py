"""The pages about choosing a proxy show the figures of the last benchmark."""

from pathlib import Path

import pytest

from bench.decision import DECISION, SIZING, Results, capacity, latency, summary


@pytest.mark.parametrize(
    ("page", "text"),
    [(DECISION, summary(Results())), (SIZING, capacity(Results())), (SIZING, latency(Results()))],
    ids=["summary", "capacity", "latency"],
)
def test_decision_pages_show_the_measured_figures(page: Path, text: str) -> None:
    assert text in page.read_text(), f"run `python -m bench.decision`: the figures of {page.name} differ"


def test_capacity_per_core_follows_from_cpu_time_per_megabyte() -> None:
    results = Results()

    cost = results.of("ms CPU per MB", "100 B none")

    assert f"{1000 / cost:,.0f} MB/s" in capacity(results)
