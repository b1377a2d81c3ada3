"""What a wrong timestamp was probably meant to be."""

import pytest

from sluicegate.validation.units import diagnose

NOW = 1_800_000_000_000
DAY = 86_400_000


@pytest.mark.parametrize(
    ("timestamp", "said"),
    [
        ((NOW - 400) * 1_000_000, "looks like nanoseconds: as milliseconds it is 0.4 s ago"),
        ((NOW - 90_000) * 1000, "looks like microseconds: as milliseconds it is 1.5 min ago"),
        (NOW // 1000, "looks like seconds: as milliseconds it is 0.0 s ago"),
        (0, "is 0, probably never set"),
        (-5, "is negative, before 1970"),
        (NOW + 2 * 3_600_000, "is 2.0 h ahead"),
        (NOW - 3 * DAY, "is 3.0 days ago"),
        (NOW + 730 * DAY, "is 2.0 years ahead"),
        (2**63 - 1, f"is {(2**63 - 1 - NOW) / (365 * DAY):.1f} years ahead"),
    ],
)
def test_diagnoses(timestamp: int, said: str) -> None:
    assert diagnose(timestamp, NOW) == said
