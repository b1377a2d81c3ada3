"""Moments as people read them, with the number that stands on the wire beside."""

from datetime import UTC, datetime


def moment(milliseconds: int) -> str:
    """As `2026-11-21 09:30:00 UTC`; `no date` where calendars do not reach."""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        return "no date"


def dated(milliseconds: int | None) -> str:
    """As `1970-01-01 00:00:00 UTC (0)`; `none` for none."""
    return "none" if milliseconds is None else f"{moment(milliseconds)} ({milliseconds})"
