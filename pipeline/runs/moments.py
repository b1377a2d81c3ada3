"""Parses the times and time spans that users write for --epoch and --as-of."""

import re
from datetime import UTC, datetime

_DAY_MS = 86_400_000
_DAYS = {"y": 365, "d": 1}
_BACK = re.compile(r"(\d{1,5})([yd])")
_DATES = ("%Y", "%Y-%m", "%Y-%m-%d")
_LEAST_MS = 31 * _DAY_MS
DEFAULT_EPOCH = "10y"
APPEND = "append"
_MILLISECONDS = re.compile(r"\d{12,15}", re.ASCII)


class BadEpoch(ValueError):
    """Raised if the value of --epoch is invalid. The message lists valid values."""


class BadMoment(ValueError):
    """Raised if the value of --as-of is invalid. The message lists valid values."""


def epoch_ms_from(text: str, now_ms: int) -> int | None:
    """Return --epoch in ms since 1970; None for the default, ten years before now. Raises BadEpoch."""
    if text == DEFAULT_EPOCH:
        return None
    found = _date(text, now_ms)
    if found is None or not is_epoch(found, now_ms):
        raise BadEpoch(
            f"--epoch: expected how far back (10y, 3650d) or a date (2016, 2016-11-30) between February 1970 and now, "
            f"found {text!r}"
        )
    return found


def is_epoch(moment_ms: int, now_ms: int) -> bool:
    """Return whether times (ms) before this moment can be called implausible."""
    return _LEAST_MS <= moment_ms < now_ms


def _date(text: str, now_ms: int) -> int | None:
    back = _BACK.fullmatch(text)
    if back is not None:
        return now_ms - int(back[1]) * _DAYS[back[2]] * _DAY_MS
    for form in _DATES:
        try:
            return int(datetime.strptime(text, form).replace(tzinfo=UTC).timestamp() * 1000)
        except ValueError:
            continue
    return None


def moment_from(text: str, now_ms: int) -> int:
    """Return --as-of in ms since 1970.

    The value is `now`, a number of ms, or a date with or without a time (UTC by default). Raises BadMoment.
    """
    if text == "now":
        return now_ms
    if _MILLISECONDS.fullmatch(text):
        return int(text)
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise BadMoment(
            f"--as-of: expected now, a date (2026-11-30), a moment (2026-11-30T12:00:00Z) or milliseconds since 1970, "
            f"found {text!r}"
        ) from None
    return int((found if found.tzinfo is not None else found.replace(tzinfo=UTC)).timestamp() * 1000)
