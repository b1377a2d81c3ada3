"""Warns about timestamp bounds that were probably written in seconds. As in Kafka, they are in milliseconds."""

from collections.abc import Iterator
from typing import Any

from sluicegate.config.files.source import Path, Source
from sluicegate.config.model import Config

_KEYS = ("message.timestamp.before.max.ms", "message.timestamp.after.max.ms", "message.timestamp.difference.max.ms")
# Ten minutes to 366 days, in seconds. In this range, a whole number of minutes that is not a multiple of 500 probably
# means seconds: 3600, 86400 and 604800, but not 1500, 30000 or 60000.
_LEAST, _MOST = 600, 366 * 86_400
_MINUTE, _HALF_SECOND_MS = 60, 500
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))


def probable_seconds(config: Config, source: Source) -> Iterator[tuple[Path, str]]:
    """Yield the key of each bound that was probably written in seconds, with a message about both readings."""
    sections: list[Path] = [("defaults",)]
    sections += [("topics", i) for i in range(len(config.topics))]
    sections += [("floor", i) for i in range(len(config.floor))]
    for section in sections:
        keys = _at(source.data, section)
        for inner in ((), ("rehearse",)):
            for key in _KEYS:
                path = (*section, *inner, key)
                written = _at(keys, (*inner, key))
                for each in written if isinstance(written, list) else (written,):
                    bound = _number(each)
                    if _is_in_seconds(bound):
                        yield path, f"is {bound / 1000:g} s, because the unit is milliseconds; for {_meant(bound)}"


def _at(value: Any, path: Path) -> Any:
    """Return the value at a path in the file, or None if the file has no such path."""
    for part in path:
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and isinstance(part, int) and part < len(value):
            value = value[part]
        else:
            return None
    return value


def _number(written: Any) -> int:
    """Return a number that is written without a unit, or 0 for other values."""
    if isinstance(written, int):
        return int(written)
    return int(written) if isinstance(written, str) and written.isdecimal() and len(written) <= len(str(_MOST)) else 0


def _is_in_seconds(bound: int) -> bool:
    return _LEAST <= bound <= _MOST and bound % _MINUTE == 0 and bound % _HALF_SECOND_MS != 0


def _meant(seconds: int) -> str:
    size, unit = next((size, unit) for size, unit in _UNITS if seconds % size == 0)
    return f"{seconds} seconds write {seconds // size}{unit} or {seconds * 1000}"
