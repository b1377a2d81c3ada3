"""Guesses at what a number was written in, beside what other calendars make of the same moment."""

from datetime import UTC, datetime

import pytest

from sluicegate.validation.odd_units import likely_unit

MOMENT = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)
NOW = int(MOMENT.timestamp() * 1000)


@pytest.mark.parametrize(
    ("number", "unit"),
    [
        (46_347, "Excel's days since 1900"),  # what a spreadsheet shows for 2026-11-21
        ((MOMENT - datetime(1970, 1, 1, tzinfo=UTC)).days, "days since 1970"),
        (NOW // 100, "seconds × 10"),
        (978_307_200, "seconds"),  # 2001-01-01
        (20_261_121, "YYYYMMDD"),
        (20_261_121_093_000, "YYYYMMDDhhmmss"),
        (1_280_000_000_000_000, "microseconds"),
        (1_280_000_000_000_000_000, "nanoseconds"),
        (116_444_736_000_000_000 + NOW * 10_000, "100 ns since 1601"),  # the epoch of 1970 as FILETIME has it
        (621_355_968_000_000_000 + NOW * 10_000, "100 ns since the year 1"),  # DateTime.Ticks of .NET
        (5_000_000, None),
        (NOW, None),
        (0, None),
        (-5, None),
        (2**63 - 1, None),
    ],
)
def test_the_unit_that_fits(number: int, unit: str | None) -> None:
    assert likely_unit(number, NOW) == unit
