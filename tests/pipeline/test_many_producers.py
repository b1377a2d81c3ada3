"""For topics with very many producers, the time for a report is proportional to their number, and the report's size is
limited."""

import re
from typing import Any

import pytest

from sluicegate.pipeline.jobs.profile import job as profile_job
from sluicegate.pipeline.jobs.profile import report as profile_report
from sluicegate.pipeline.jobs.repair import report as repair_report
from sluicegate.pipeline.runs.results import Results

PRODUCERS = 20_000
pytestmark = pytest.mark.timeout(60)  # takes a second; comparing each producer with all others would take hours


class Pages(Results):
    """Results that store the written text."""

    def __init__(self) -> None:
        self.text = ""

    def write_text(self, name: str, text: str) -> None:
        self.text = text


def rows_in(page: str) -> int:
    return len(re.findall("<tr>", page))


def test_profile_report_shows_worst_producers_and_sum_of_others() -> None:
    cell = {"codec": "none", "timestamp_type": 0, "records": 5, "null_keys": 0, "bytes": 9, "batches": 1}
    times = {"stored_bytes": 9, "earliest": 5, "latest": 9, "ahead_beyond_ms": 1000, "behind_beyond_ms": 0}
    times |= {"ahead_at_most_ms": 1000, "behind_at_most_ms": 0, "likely_unit": None, "is_dated": True}
    rows: list[dict[str, Any]] = [
        {"producer_id": i // 2, "damage": "zero" if i % 2 else "none"} | cell | times for i in range(2 * PRODUCERS)
    ]

    topic = profile_job._topic(rows)
    shown = profile_report._producers_table(topic["producers"])

    assert (topic["records"], topic["damage"]["zero"]) == (10 * PRODUCERS, 5 * PRODUCERS)
    ahead = {b["bound_ms"]: (b["beyond"], b["valid_beyond"]) for b in topic["bounds"] if b["side"] == "ahead"}
    assert (ahead[1000], ahead[2000]) == ((10 * PRODUCERS, 5 * PRODUCERS), (0, 0))
    assert len(topic["producers"]) == PRODUCERS
    assert len(shown.rows) == 13
    assert shown.rows[-1][:2] == ("19,988 others", 10 * (PRODUCERS - 12))
    assert shown.caption == (
        f"Producers: the 12 worst of {PRODUCERS:,} and the sum of the others; summary.json lists all"
    )


def test_repair_report_shows_most_repaired_producers_and_sum_of_others() -> None:
    change = {
        "topic": "t", "damage": "zero", "solved": True, "may_be_valid": False, "reason": None, "earliest_after": 5,
        "latest_after": 6, "example_before": 0, "example_after": 5, "example_at": {"partition": 0, "offset": 1},
    }  # fmt: skip
    changes = [change | {"producer_id": i, "records": i + 1} for i in range(PRODUCERS)]
    of_topic = {"to": "t-clean", "records": 9, "repaired": {"zero": 9}, "undiagnosed": {}, "valid_looking": 0}
    summary = {"applied": False, "topics": {"t": of_topic}, "changes": changes, "obstacles": [], "warnings": []}
    summary |= {"keep": [], "rewrite": []}
    pages = Pages()

    repair_report.write_report(pages, summary, 1_795_000_000_000)

    assert rows_in(pages.text) == 14
    assert f"the 12 of {PRODUCERS:,} with most records and the sum of the others; summary.json lists all" in pages.text
    assert f"the 12 producers with most of {PRODUCERS:,}" in pages.text
    assert len(repair_report.console_table(changes, applied=False).rows) == 50
