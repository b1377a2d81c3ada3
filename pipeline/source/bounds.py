"""Determines the start and the end of reading from the options for offsets and times.

As in Spark's own source, a time for all partitions takes precedence over times for single partitions, and both take
precedence over offsets. A bound beyond a partition's end is reported, because the query would read less than the user
requested.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sluicegate.pipeline.kafka.cluster import KafkaCluster, TopicPartition
from sluicegate.pipeline.runs.errors import PipelineError
from sluicegate.protocol.messages.fetch import EARLIEST, LATEST, NOT_FOUND

_WORDS = {"earliest": EARLIEST, "latest": LATEST}
_LARGEST = 2**63 - 1
_ERROR, _LATEST = "error", "latest"
_PairsOf = tuple[tuple[TopicPartition, int], ...]


class BadOption(PipelineError, ValueError):
    """Raised if an option is unknown or invalid. The message names the option."""


@dataclass(frozen=True, slots=True)
class ReadBound:
    """The start or the end of reading.

    It is one of: the same `offset` (EARLIEST or LATEST) for every partition; an offset for each partition in `of`; or
    the first record at or after `timestamp` (ms), which `times` replaces for some partitions. `option` is the option's
    name in messages. With `latest_if_none`, a partition without a record at or after the time starts at its end;
    otherwise this is an error.
    """

    offset: int
    of: _PairsOf = ()
    timestamp: int | None = None
    times: _PairsOf = ()
    option: str = ""
    latest_if_none: bool = True


def bound_of(options: Mapping[str, str], which: str, default: int, *, is_stream: bool) -> ReadBound:
    """Parse the options that begin with `which` ("starting" or "ending"). Raises BadOption.

    The options' names must be in lower case.
    """
    is_start = which == "starting"
    latest_if_none = not is_start or _is_latest_if_none(options)
    stamp = options.get(f"{which}timestamp")
    if stamp is not None:
        name = f"{which}Timestamp"
        return ReadBound(default, timestamp=_time(name, stamp.strip()), option=name, latest_if_none=latest_if_none)
    text = options.get(f"{which}offsetsbytimestamp")
    if text is not None:
        name = f"{which}OffsetsByTimestamp"
        times = _pairs(name, text, '{"topic": {"0": 1790000000000}} with times in ms')
        negative = [str(of) for of, time in times if time < 0]
        if negative:
            raise BadOption(f"{name}: expected a time in ms of at least 0, found a negative one for {negative[0]}")
        return ReadBound(default, times=times, option=name, latest_if_none=latest_if_none)
    name = f"{which}Offsets"
    text = options.get(name.lower())
    if text is None:
        return ReadBound(default, option=name)
    useless = None if is_stream else LATEST if is_start else EARLIEST
    if text.strip().lower() in _WORDS:
        offset = _WORDS[text.strip().lower()]
        if offset == useless:
            raise BadOption(
                f"{name}: {text.strip().lower()} selects no records in a batch query; it is only useful in a stream"
            )
        return ReadBound(offset, option=name)
    pairs = _pairs(name, text, 'earliest, latest or {"topic": {"0": 17, "1": -2}}')
    for of, offset in pairs:
        if offset < min(EARLIEST, LATEST):
            raise BadOption(f"{name}: expected an offset, -1 (latest) or -2 (earliest) for {of}, found {offset}")
        if offset == useless:
            raise BadOption(
                f"{name}: {offset} for {of} selects no records in a batch query; it is only useful in a stream"
            )
    return ReadBound(default, pairs, option=name)


def check_order(start: ReadBound, end: ReadBound) -> None:
    """Raise BadOption if the start time is later than the end time."""
    starts, ends = dict(start.times), dict(end.times)
    for of in dict.fromkeys([None, *starts, *ends]):
        begun = start.timestamp if of is None else starts.get(of, start.timestamp)
        until = end.timestamp if of is None else ends.get(of, end.timestamp)
        if begun is not None and until is not None and begun > until:
            where = "" if of is None else f" for {of}"
            raise BadOption(f"{start.option} is {begun}{where}, after {end.option}, which is {until}")


def _is_latest_if_none(options: Mapping[str, str]) -> bool:
    text = options.get("startingoffsetsbytimestampstrategy", _ERROR).lower()
    if text not in (_ERROR, _LATEST):
        raise BadOption(f"startingOffsetsByTimestampStrategy: expected {_ERROR} or {_LATEST}, found {text!r}")
    return text == _LATEST


def _time(name: str, text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text[:20]) > _LARGEST:
        raise BadOption(f"{name}: expected a time in ms, found {text!r}")
    return int(text)


def _pairs(name: str, text: str, expected: str) -> _PairsOf:
    try:
        value: dict[str, dict[str, Any]] = json.loads(text)
        pairs = [
            (TopicPartition(topic, int(partition)), number)
            for topic, its in value.items()
            for partition, number in its.items()
        ]
    except (ValueError, AttributeError, TypeError) as error:
        raise BadOption(f"{name}: expected {expected}, found {text!r}") from error
    for of, number in pairs:
        if not isinstance(number, int) or isinstance(number, bool) or abs(number) > _LARGEST:
            raise BadOption(f"{name}: expected a 64-bit integer for {of}, found {number!r}")
    return tuple(pairs)


def offsets_at(
    cluster: KafkaCluster, bound: ReadBound, partitions: Sequence[TopicPartition], *, committed: bool
) -> dict[TopicPartition, int]:
    """Return the bound's offset in each partition. Raises BadOption, TopicTrouble and BrokerUnreachable."""
    for of, _ in (*bound.of, *bound.times):
        if of not in partitions:
            raise BadOption(f"{bound.option} names {of}, which is not a partition of the subscribed topics")
    times = dict.fromkeys(partitions, bound.timestamp) if bound.timestamp is not None else dict(bound.times)
    named = dict(bound.of)
    wanted = {of: named.get(of, bound.offset) for of in partitions}
    for time in sorted({time for time in times.values() if time is not None}):
        at_this = [of for of in partitions if times.get(of) == time]
        found = cluster.offsets(at_this, time, committed)
        late = [of for of in at_this if found[of] == NOT_FOUND]
        if late and not bound.latest_if_none:
            raise BadOption(
                f"{bound.option}: {late[0]} has no record at or after {time}. Use an earlier time, or start such "
                "partitions at their end with startingOffsetsByTimestampStrategy=latest"
            )
        wanted |= found | dict.fromkeys(late, LATEST)
    for special in (EARLIEST, LATEST):
        its = [of for of, offset in wanted.items() if offset == special]
        if its:
            wanted |= cluster.offsets(its, special, committed)
    return wanted
