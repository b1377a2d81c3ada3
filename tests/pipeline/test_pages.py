"""Reports are rendered in a browser."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sluicegate.pipeline.jobs.repair import report as repair_report
from sluicegate.pipeline.jobs.violations import report as violations_report
from tests.pipeline.test_many_producers import Pages
from tests.pipeline.test_names import offender_row, violations_summary

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
WIDTH = 1100
NOW = 1_795_000_000_000
MEASURE = """<script>
const room = table => [table.getBoundingClientRect().width, table.parentElement.clientWidth];
document.title = JSON.stringify([...document.querySelectorAll("table")].map(room));
</script>"""


def change_row(number: int, **more: Any) -> dict[str, Any]:
    """Return a row of a report about a topic with times in nanoseconds."""
    return {
        "topic": "orders.eu.checkout",
        "producer_id": 900_000 + number,
        "damage": "nanoseconds",
        "solved": True,
        "may_be_valid": False,
        "records": 1_234_567,
        "reason": None,
        "earliest_after": NOW - 3_600_000,
        "latest_after": NOW,
        "example_before": NOW * 1_000_000,
        "example_after": NOW,
        "example_at": {"partition": 11, "offset": 123_456_789},
        **more,
    }


needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")


@needs_chromium
def test_repair_report_columns_fit_in_1100_pixels(tmp_path: Path) -> None:
    changes = [change_row(0), change_row(1, damage="future", solved=False, reason="left unchanged: it may be valid")]
    of_topic = {"to": "orders.eu.checkout-clean", "records": 9, "repaired": {}, "undiagnosed": {}, "valid_looking": 0}
    summary = {"applied": False, "topics": {"orders.eu.checkout": of_topic}, "changes": changes}
    pages = Pages()
    repair_report.write_report(pages, summary | {"obstacles": [], "warnings": [], "keep": [], "rewrite": []}, NOW)

    rooms = tables_in(pages, tmp_path)

    assert len(rooms) == 1
    assert all(table <= room for table, room in rooms), rooms


@needs_chromium
def test_violations_report_columns_fit_in_1100_pixels(tmp_path: Path) -> None:
    client = "rdkafka-payments-reconciliation-worker-7f9c4d5b6-x2x9q"
    pages = Pages()

    violations_report.write_report(
        pages, violations_summary(offender_row(client, "orders.eu.checkout"), offender_row(None)), NOW
    )

    rooms = tables_in(pages, tmp_path)
    assert len(rooms) == 1
    assert all(table <= room for table, room in rooms), rooms


def tables_in(pages: Pages, folder: Path) -> list[tuple[float, float]]:
    """Return the width of each table and the width that is available to it."""
    assert CHROMIUM is not None
    page = folder / "report.html"
    page.write_text(pages.text.replace("</body>", MEASURE + "</body>"))
    own = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync")
    where = (f"--user-data-dir={page.parent / 'chromium'}", f"--window-size={WIDTH},900")
    command = [CHROMIUM, *own, *where, "--dump-dom", page.as_uri()]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    title = re.search("<title>(.*?)</title>", shown)
    assert title is not None
    found: list[tuple[float, float]] = [tuple(pair) for pair in json.loads(title[1])]
    return found
