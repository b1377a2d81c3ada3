"""Declares the values that each parameter of the jobs' functions accepts (see `argument_checks`)."""

from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from sluicegate.pipeline.commands.running import now_in_ms
from sluicegate.pipeline.jobs.extract.extractors import TimestampExtractor, TooLate
from sluicegate.pipeline.jobs.repair.correction import BY_NAME_ONLY, INVALID_TIMESTAMPS
from sluicegate.pipeline.jobs.repair.settings import Retention
from sluicegate.pipeline.jobs.replay.request import FixTimes
from sluicegate.pipeline.jobs.replay.writing import Headers
from sluicegate.pipeline.kafka.addresses import parse_addresses
from sluicegate.pipeline.runs.argument_checks import (
    Check,
    UnfitValue,
    check_arguments_with,
    is_integer,
    spark_session,
    value_checked_by,
)
from sluicegate.pipeline.runs.moments import APPEND, BadEpoch, BadMoment, epoch_ms_from, is_epoch, moment_from
from sluicegate.pipeline.runs.tables import TableFormat
from sluicegate.protocol.integers import LONG_MAX

P = ParamSpec("P")
R = TypeVar("R")
_MOST_SAMPLES = 1000
ALL_SAMPLES = "all"
_LEAST_MOMENT_MS, _MOST_MOMENT_MS = 10**11, 10**15 - 1


def check_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """Check all arguments of a job's function against `CHECKS`.

    Raises TypeError for an undeclared parameter when the function is defined.
    """
    return check_arguments_with(CHECKS)(function)


def checked_value(name: str, value: Any, *, is_optional: bool) -> Any:
    """Return the value that a function receives for its parameter `name`.

    If `is_optional` is true, None is valid. Raises BadParameter.
    """
    return value_checked_by(CHECKS, name, value, is_optional=is_optional)


def samples_from(value: Any) -> int | None:
    """Return the number of samples; None means all. Raises UnfitValue."""
    if value is None or value == ALL_SAMPLES:
        return None
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= len(str(_MOST_SAMPLES)):
        value = int(value)
    if is_integer(value) and 0 <= value <= _MOST_SAMPLES:
        return int(value)
    raise UnfitValue(f"a number from 0 to {_MOST_SAMPLES}, or {ALL_SAMPLES}")


def _frame(value: Any) -> Any:
    if not callable(getattr(value, "withColumn", None)):
        raise UnfitValue("a DataFrame of the raw source")
    return value


def _text(what: str) -> Check:
    def check(value: Any) -> str:
        if not isinstance(value, str) or not value.strip():
            raise UnfitValue(what)
        return str(value)

    return check


def _path(what: str) -> Check:
    def check(value: Any) -> str:
        if not isinstance(value, str | Path) or not str(value).strip():
            raise UnfitValue(what)
        return str(value)

    return check


def _number(least: int, what: str) -> Check:
    def check(value: Any) -> int:
        if not is_integer(value) or not least <= value <= LONG_MAX:
            raise UnfitValue(f"{what}, from {least} on")
        return int(value)

    return check


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise UnfitValue("True or False")
    return value


def _word(kind: type[StrEnum]) -> Check:
    def check(value: Any) -> StrEnum:
        if isinstance(value, str) and value in list(kind):
            return kind(value)
        raise UnfitValue(f"one of {', '.join(kind)}")

    return check


def _words(known: Sequence[str]) -> Check:
    def check(value: Any) -> tuple[str, ...]:
        given = (value,) if isinstance(value, str) else value
        if not isinstance(given, Sequence | Set) or not all(isinstance(word, str) and word in known for word in given):
            raise UnfitValue(f"some of {', '.join(known)}")
        return tuple(str(word) for word in given)

    return check


def _topics(value: Any) -> tuple[str, ...]:
    given = (value,) if isinstance(value, str) else value
    if not isinstance(given, list | tuple) or not given:
        raise UnfitValue("a topic's name, or a list of names")
    if not all(isinstance(name, str) and name.strip() and "," not in name for name in given):
        raise UnfitValue("a topic's name, or a list of names, each a string without commas")
    return tuple(dict.fromkeys(given))


def _bootstrap(value: Any) -> str:
    with suppress(ValueError):
        if isinstance(value, str) and parse_addresses(value):
            return value
    raise UnfitValue("host:port of one or more brokers, separated by commas; the port is 1 to 65535")


def _settings(value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping) or not all(isinstance(each, str) for pair in value.items() for each in pair):
        raise UnfitValue("a mapping of librdkafka's names to strings")
    return dict(value)


def _epoch(value: Any) -> int | None:
    now_ms = now_in_ms()
    if isinstance(value, str):
        try:
            return epoch_ms_from(value, now_ms)
        except BadEpoch:
            pass
    elif is_integer(value) and is_epoch(value, now_ms):
        return int(value)
    raise UnfitValue("milliseconds since 1970, 10y, 3650d, or a date (2016, 2016-11-30), between February 1970 and now")


def _as_of(value: Any) -> int | None:
    if value == APPEND and isinstance(value, str):
        return None
    if isinstance(value, str):
        try:
            return moment_from(value, now_in_ms())
        except BadMoment:
            pass
    elif is_integer(value) and _LEAST_MOMENT_MS <= value <= _MOST_MOMENT_MS:
        return int(value)
    raise UnfitValue(
        f"milliseconds since 1970 (12 to 15 digits), {APPEND}, now, a date, or a moment (2026-11-30T12:00:00Z)"
    )


def _extractor(value: Any) -> TimestampExtractor:
    if isinstance(value, type) or not callable(getattr(value, "extract", None)):
        raise UnfitValue("an object with the method extract(record, previous)")
    found: TimestampExtractor = value
    return found


_FILE = _path("the path of the proxy's configuration file")
_FOLDER = _path("the path of a folder")
_MS = "a number of milliseconds"
CHECKS: Mapping[str, Check] = {
    "spark": spark_session,
    "bootstrap": _bootstrap,
    "topics": _topics,
    "source": _text("a topic's name"),
    "target": _text("a topic's name"),
    "out": _FOLDER,
    "settings": _settings,
    "policies": _FILE,
    "after_max_ms": _number(0, _MS),
    "before_max_ms": _number(0, _MS),
    "epoch_ms": _epoch,
    "as_of_ms": _as_of,
    "assume_ms": _number(1, "milliseconds since 1970"),
    "tables": _path("the path of a folder, or catalog:NAME.NAMESPACE"),
    "tables_format": _word(TableFormat),
    "events": _path("the path of files with violation events"),
    "samples": samples_from,
    "to": _text("the name of a topic, in which {topic} is replaced by the source"),
    "keep": _words(INVALID_TIMESTAMPS),
    "rewrite": _words(BY_NAME_ONLY),
    "retention": _word(Retention),
    "skip_unreadable": _flag,
    "skip_unwritable": _flag,
    "fix": _word(FixTimes),
    "by": _text("module:function"),
    "headers": _word(Headers),
    "findings": _path("the folder of an audit"),
    "plan": _path("the folder of a repair"),
    "quiet_hours": _number(1, "a number of hours"),
    "offsets_a_batch": _number(1, "a number of offsets"),
    "webhook": _text("the address of a webhook"),
    "frame": _frame,
    "extractor": _extractor,
    "too_late": _word(TooLate),
}
