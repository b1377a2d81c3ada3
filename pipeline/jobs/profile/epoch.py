"""The beginning of plausible times, as people give it."""

import re
from datetime import UTC, datetime

_DAY_MS = 86_400_000
_DAYS = {"y": 365, "d": 1}
_BACK = re.compile(r"(\d{1,5})([yd])")
_DATES = ("%Y", "%Y-%m", "%Y-%m-%d")
_LEAST_MS = 31 * _DAY_MS
_DEFAULT = "10y"


class BadEpoch(ValueError):
    """What was given is no such time; the text says what is."""


def epoch_ms_from(text: str, now_ms: int) -> int | None:
    """In ms since 1970; None for the default, ten years before whatever moment is now. Raises BadEpoch."""
    if text == _DEFAULT:
        return None
    found = _moment(text, now_ms)
    if found is None or not _LEAST_MS <= found < now_ms:
        raise BadEpoch(
            f"--epoch: expected how far back (10y, 3650d) or a date (2016, 2016-11-30) between February 1970 and now, "
            f"found {text!r}"
        )
    return found


def _moment(text: str, now_ms: int) -> int | None:
    back = _BACK.fullmatch(text)
    if back is not None:
        return now_ms - int(back[1]) * _DAYS[back[2]] * _DAY_MS
    for form in _DATES:
        try:
            return int(datetime.strptime(text, form).replace(tzinfo=UTC).timestamp() * 1000)
        except ValueError:
            continue
    return None
