"""Parses the options of the data source. Options of Spark's own Kafka source keep their names.

Each option of that source is either supported, or rejected with advice on its replacement (`foreign_options`).
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum

from sluicegate.pipeline.kafka.addresses import parse_addresses
from sluicegate.pipeline.kafka.connection import Address
from sluicegate.pipeline.kafka.settings import ClientSettings, client_settings
from sluicegate.pipeline.source.arrow import Column, columns_named
from sluicegate.pipeline.source.bounds import BadOption, ReadBound, bound_of, check_order
from sluicegate.pipeline.source.foreign_options import advice_instead_of
from sluicegate.pipeline.source.subscription import Subscription, subscription_of
from sluicegate.protocol.messages.fetch import EARLIEST, LATEST

_CLIENT_PREFIX = "kafka."
_ISOLATION, _KAFKA_ISOLATION = "isolation.level", "kafka.isolation.level"
_SPELLED = (
    *("kafka.bootstrap.servers", "subscribe", "subscribePattern", "assign", "columns", "includeHeaders"),
    *("startingOffsets", "endingOffsets", "startingTimestamp", "endingTimestamp"),
    *("startingOffsetsByTimestamp", "endingOffsetsByTimestamp", "startingOffsetsByTimestampStrategy"),
    *("minPartitions", "maxRecordsPerPartition", "maxOffsetsPerTrigger", "trigger"),
    *("failOnDataLoss", "failOnUnreadable", _ISOLATION, _KAFKA_ISOLATION),
)
_SHOWN = {name.lower(): name for name in _SPELLED}
_OF_STREAMS = ("maxoffsetspertrigger", "trigger")
_OF_BATCHES = ("endingoffsets", "endingoffsetsbytimestamp", "endingtimestamp")
_OUTSIDE = "path"
"""An option that Spark adds."""


class Trigger(StrEnum):
    """The trigger of a stream in the option `trigger`. Only releases before Spark 4.2 need the option."""

    PROCESSING_TIME = "processingtime"
    AVAILABLE_NOW = "availablenow"
    ONCE = "once"


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """All options, checked.

    `most_records` is the maximum number of offsets that one task reads, and `max_offsets` is the maximum for a stream's
    batch. `trigger` is None if the option is not set.
    """

    bootstrap: tuple[Address, ...]
    settings: ClientSettings
    subscription: Subscription
    columns: tuple[Column, ...]
    start: ReadBound
    end: ReadBound
    min_partitions: int | None
    most_records: int | None
    max_offsets: int | None
    trigger: Trigger | None
    fail_on_data_loss: bool
    fail_on_unreadable: bool
    committed: bool


def source_options(given: Mapping[str, str], *, is_stream: bool = False) -> SourceOptions:
    """Parse Spark's options, whose names are case-insensitive. By default, a stream starts at the end.

    Raises BadOption, BadSetting and UnknownColumn.
    """
    options = {name.lower(): value for name, value in given.items()}
    clients = {}
    for name, value in options.items():
        if name in _SHOWN or name == _OUTSIDE:
            continue
        advice = advice_instead_of(name)
        if advice is not None:
            raise BadOption(f"the option {name} does not apply to this source: {advice}")
        if not name.startswith(_CLIENT_PREFIX):
            near = get_close_matches(name, _SHOWN, 1)
            raise BadOption(f"unknown option {name!r}" + (f"; did you mean {_SHOWN[near[0]]}?" if near else ""))
        clients[name.removeprefix(_CLIENT_PREFIX)] = value
    start = bound_of(options, "starting", LATEST if is_stream else EARLIEST, is_stream=is_stream)
    end = bound_of(options, "ending", LATEST, is_stream=is_stream)
    check_order(start, end)
    return SourceOptions(
        _addresses(options.get("kafka.bootstrap.servers", "")),
        client_settings(clients),
        subscription_of(options),
        _columns(options),
        start,
        end,
        _positive(options, "minpartitions"),
        _positive(options, "maxrecordsperpartition"),
        _positive(options, "maxoffsetspertrigger"),
        _trigger(options),
        _boolean(options, "failondataloss", default=True),
        _boolean(options, "failonunreadable", default=True),
        _is_committed(options),
    )


def check_batch_options(given: Mapping[str, str]) -> None:
    """Warn about options that only apply to streams, as Spark's own source does."""
    for name in given:
        if name.lower() in _OF_STREAMS:
            message = f"the option {_SHOWN[name.lower()]} applies only to streams, but this is a batch query"
            warnings.warn(message, stacklevel=2)


def check_stream_options(given: Mapping[str, str]) -> None:
    """Raise BadOption for an option that only applies to batch queries."""
    for name in given:
        if name.lower() in _OF_BATCHES:
            raise BadOption(
                f"{_SHOWN[name.lower()]} applies to batch queries only: omit it; a stream ends at the log's end with "
                "trigger(availableNow=True)"
            )


def _columns(options: Mapping[str, str]) -> tuple[Column, ...]:
    """Return the requested columns. `includeHeaders` applies if `columns` is not given."""
    columns = columns_named(options.get("columns"))
    if "includeheaders" not in options:
        return columns
    included = _boolean(options, "includeheaders", default=True)
    if "columns" not in options:
        return columns if included else tuple(each for each in columns if each.name != "headers")
    if included != any(each.name.startswith("headers") for each in columns):
        raise BadOption(f"includeHeaders={str(included).lower()} contradicts columns: omit it, and name the columns")
    return columns


def _addresses(text: str) -> tuple[Address, ...]:
    try:
        found = parse_addresses(text)
    except ValueError as error:
        raise BadOption(f"kafka.bootstrap.servers: {error}") from error
    if not found:
        raise BadOption("the option kafka.bootstrap.servers is required: host:port of one or more brokers")
    return found


def _trigger(options: Mapping[str, str]) -> Trigger | None:
    text = options.get("trigger")
    if text is None:
        return None
    try:
        return Trigger(text.lower())
    except ValueError:
        raise BadOption(f"trigger: expected processingTime, availableNow or once, found {text!r}") from None


def _is_committed(options: Mapping[str, str]) -> bool:
    """Return whether only committed records are read. Spark's own source also reads uncommitted records by default."""
    given = {options[name].lower() for name in (_ISOLATION, _KAFKA_ISOLATION) if name in options}
    if len(given) > 1:
        raise BadOption(f"{_ISOLATION} and {_KAFKA_ISOLATION} differ: set only one of them")
    isolation = given.pop() if given else "read_committed"
    if isolation not in ("read_committed", "read_uncommitted"):
        raise BadOption(f"{_ISOLATION}: expected read_committed or read_uncommitted, found {isolation!r}")
    return isolation == "read_committed"


def _positive(options: Mapping[str, str], name: str) -> int | None:
    text = options.get(name)
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or int(text[:19]) == 0 or len(text) > 19:
        raise BadOption(f"{_SHOWN[name]}: expected a number above 0, found {text!r}")
    return int(text)


def _boolean(options: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = options.get(name, str(default)).lower()
    if text not in ("true", "false"):
        raise BadOption(f"{_SHOWN[name]}: expected true or false, found {text!r}")
    return text == "true"
