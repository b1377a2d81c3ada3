"""Reports and terminals show clients' names that are long, in any script, or hostile."""

import io
from typing import Any

import pytest
from rich.console import Console

from sluicegate.pipeline.jobs.extract import report as extract_report
from sluicegate.pipeline.jobs.violations import report as violations_report
from sluicegate.pipeline.report.plots import bar_plot
from sluicegate.pipeline.report.wording import printable, shortened
from tests.pipeline.test_many_producers import Pages, rows_in

NOW = 1_795_000_000_000
WILD = [
    "$x_{$",
    "$\\nosuch{$ $$",
    "[/b]",
    "[red]",
    "日本語",
    "<script>alert(1)</script>",
    "--><b>",
    "\x1b[31mred",
    "a\nb",
]


def offender_row(client: str | None, topic: str = "t") -> dict[str, Any]:
    moments = {"first_window": "2026-11-21T10:00:00", "latest": "2026-11-21T10:04:59.123000"}
    counts = {"events": 5, "records": 5, "bad_records": 2, "late_events": 0}
    return {"client_id": client, "topic": topic, "reason": "timestamp_in_future"} | counts | moments


def violations_summary(*offenders: dict[str, Any]) -> dict[str, Any]:
    return {"events": 5, "bad_lines": 0, "late_events": 0, "windows": 1, "offenders": list(offenders)}


@pytest.mark.parametrize("name", WILD)
def test_any_client_or_topic_name_has_a_table_row_and_a_plot_bar(name: str) -> None:
    summary, pages, terminal = violations_summary(offender_row(name), offender_row(None, name)), Pages(), io.StringIO()

    violations_report.write_report(pages, summary, NOW)
    Console(file=terminal, width=200, force_terminal=True).print(violations_report.console_table(summary))

    assert rows_in(pages.text) == 3
    assert pages.text.count("<text") >= 4
    assert "<script" not in pages.text
    assert "<b>" not in pages.text
    assert "\x1b[31mred" not in terminal.getvalue()
    if name.isprintable():
        assert name in terminal.getvalue()


def test_names_with_equal_short_labels_have_separate_bars() -> None:
    names = [f"{'a' * 100}{i}{'z' * 100}" for i in range(3)]

    plot = bar_plot(names, {"batches": [1, 2, 3]}, "title", "batches")

    assert plot.svg.count(f">{shortened(names[0])}<") == 3


def test_shortened_label_keeps_beginning_and_end_of_name() -> None:
    assert shortened("orders-service-7") == "orders-service-7"
    assert shortened("a" * 100 + "z" * 100) == "a" * 16 + "…" + "z" * 15
    assert shortened("あ" * 40) == "あ" * 8 + "…" + "あ" * 7
    assert printable("a\x1b[31mb\n日") == "a\\x1b[31mb\\n日"


def test_extract_report_of_many_partitions_is_short() -> None:
    partitions = {str(i): {"records": 10, "skipped": 1, "too_late": 0} for i in range(1000)}
    summary, pages = {"topics": {"t": {"partitions": partitions}}}, Pages()

    extract_report.write_report(pages, summary, "skip", NOW)

    assert rows_in(pages.text) == 51
    assert "10,000 (90.91 %) of 11,000 records have an event time, and 1,000 were skipped." in pages.text
    assert "The first 50 of 1,000; all are in summary.json." in pages.text
    assert len(extract_report.console_table(summary).rows) == 50
