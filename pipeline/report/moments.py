"""Moments as people read them."""

from datetime import UTC, datetime


def moment(milliseconds: int) -> str:
    """As `2026-11-21 09:30:00 UTC`; `no date` where calendars do not reach."""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        return "no date"
