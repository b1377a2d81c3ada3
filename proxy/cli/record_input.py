"""Reads a record from the options of `sluicegate try`."""

import os
import re
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sluicegate.config.values.quantity import MILLISECONDS, format_quantity
from sluicegate.protocol.integers import LONG_MAX
from sluicegate.protocol.records.writing import NewRecord

_NUMBER = re.compile(r"[+-]?\d{1,19}", re.ASCII)
_FROM_NOW = re.compile(r"now(?:\s*([+-])\s*(.+))?", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_STANDARD_INPUT = Path("-")


class BadGivenRecord(Exception):
    """An option is invalid. The text names the option."""


def given_record(
    key: str | None,
    value: str | None,
    value_file: Path | None,
    headers: Sequence[str],
    timestamp: str,
    now_ms: int,
    most_bytes: int,
) -> NewRecord:
    """Return the record. `most_bytes` is the maximum size of its value. Raises BadGivenRecord."""
    if value is not None and value_file is not None:
        raise BadGivenRecord("--value and --value-file cannot be combined")
    data = _bytes(value) if value_file is None else _content(value_file, most_bytes)
    return NewRecord(time_of(timestamp, now_ms), _bytes(key), data, tuple(map(_header, headers)))


def time_of(text: str, now_ms: int) -> int:
    """Return ms since 1970 for a number of ms, an ISO 8601 time, or a distance from now. Raises BadGivenRecord."""
    text = text.strip()
    if _NUMBER.fullmatch(text):
        return _int64(int(text), text)
    from_now = _FROM_NOW.fullmatch(text)
    if from_now is not None:
        sign, away = from_now.groups()
        try:
            distance = int(MILLISECONDS.read(away)) if away is not None else 0
        except ValueError as error:
            raise BadGivenRecord(f"--timestamp: {error}") from error
        return _int64(now_ms - distance if sign == "-" else now_ms + distance, text)
    try:
        date = datetime.fromisoformat(text)
    except ValueError:
        raise BadGivenRecord(
            "--timestamp: expected milliseconds, a time such as 2026-11-22T10:00:00Z, or now+1h; "
            f"found {format_quantity(text)}"
        ) from None
    in_utc = date.replace(tzinfo=UTC) if date.tzinfo is None else date
    return (in_utc - _EPOCH) // timedelta(milliseconds=1)


def _int64(time: int, text: str) -> int:
    if not -LONG_MAX - 1 <= time <= LONG_MAX:
        raise BadGivenRecord(f"--timestamp: expected at most 64 bits; found {format_quantity(text)}")
    return time


def _header(text: str) -> tuple[bytes, bytes | None]:
    name, equals, value = text.partition("=")
    if not equals:
        raise BadGivenRecord(f"--header: expected NAME=VALUE, found {format_quantity(text)}")
    return os.fsencode(name), os.fsencode(value)


def _bytes(text: str | None) -> bytes | None:
    """Return the bytes that the shell passed, even if they are not UTF-8."""
    return None if text is None else os.fsencode(text)


def _content(file: Path, most_bytes: int) -> bytes:
    try:
        if file == _STANDARD_INPUT:
            found = sys.stdin.buffer.read(most_bytes + 1)
        else:
            with file.open("rb") as opened:
                found = opened.read(most_bytes + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BadGivenRecord(f"--value-file: {file} cannot be read: {reason}") from error
    if len(found) > most_bytes:
        raise BadGivenRecord(f"--value-file: {file} has more than limits.max_frame_bytes ({most_bytes}) bytes")
    return found
