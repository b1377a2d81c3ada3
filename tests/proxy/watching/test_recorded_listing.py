"""`sluicegate who --days` shows the recorded violations, the start of the recording, and gaps."""

from typing import Any

import pytest

from sluicegate.proxy.watching.recorded_listing import lines_of
from tests.proxy.live.events import NOW
from tests.proxy.watching.test_topic_violations import EVENTS, counted_groups

DAY_MS = 86_400_000
ALL = {
    "topic": "events",
    "since_ms": NOW - DAY_MS,
    "until_ms": NOW,
    "complete_since_ms": NOW - DAY_MS,
    "events": 5,
    "skipped": 0,
    "other": 0,
    "groups": [],
}
RANGE = "from 2027-01-14T08:00:00Z to 2027-01-15T08:00:00Z (events)"


def test_listing_shows_clients_of_each_topic_and_the_time_range() -> None:
    lines = list(lines_of({**ALL, "groups": counted_groups(*EVENTS)}, None))

    assert [line for line in lines if "clients" in line or "1 client " in line] == [
        f"payments: 2 clients with violations {RANGE}",
        f"another: 1 client with violations {RANGE}",
    ]


@pytest.mark.parametrize(
    ("found", "line"),
    [
        ({}, f"no violations recorded {RANGE}"),
        ({"complete_since_ms": None}, "not all of these events could be read: 5 were"),
        ({"complete_since_ms": NOW - 1000}, "only the newest 5 events were read, from 2027-01-15T07:59:59Z on"),
        ({"skipped": 2}, "skipped 2 records that are not violation events"),
        ({"other": 3}, "3 more batches are in groups beyond the limit of listed groups"),
    ],
)
def test_first_line_of_the_listing_reports_incomplete_data(found: dict[str, Any], line: str) -> None:
    assert next(lines_of({**ALL, **found}, None)) == line


def test_listing_of_a_topic_without_violations_shows_the_time_range() -> None:
    assert list(lines_of(ALL, "quiet")) == [f"quiet: no violations recorded {RANGE}"]
