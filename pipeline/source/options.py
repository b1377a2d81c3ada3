"""Options of the data source; names are those of Spark's own Kafka source where it has the same option."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from sluicegate.pipeline.errors import PipelineError
from sluicegate.pipeline.kafka.cluster import TopicPartition
from sluicegate.pipeline.kafka.connection import Address
from sluicegate.pipeline.kafka.settings import ClientSettings, client_settings
from sluicegate.pipeline.source.arrow import Column, columns_named

_CLIENT_PREFIX = "kafka."
_NAMES = (
    "kafka.bootstrap.servers",
    "subscribe",
    "columns",
    "startingoffsets",
    "endingoffsets",
    "startingtimestamp",
    "endingtimestamp",
    "minpartitions",
    "maxoffsetspertrigger",
    "failondataloss",
    "failonunreadable",
    "isolation.level",
)
_SHOWN = {
    "startingoffsets": "startingOffsets",
    "endingoffsets": "endingOffsets",
    "startingtimestamp": "startingTimestamp",
    "endingtimestamp": "endingTimestamp",
    "minpartitions": "minPartitions",
    "maxoffsetspertrigger": "maxOffsetsPerTrigger",
    "failondataloss": "failOnDataLoss",
    "failonunreadable": "failOnUnreadable",
}
_EARLIEST, _LATEST = -2, -1


class BadOption(PipelineError, ValueError):
    """An option is unknown or invalid; the text names it."""


@dataclass(frozen=True, slots=True)
class Bound:
    """Where reading starts or ends: `offset` (-2 earliest, -1 latest) for every partition, an offset for each partition
    in `of`, or the first record at or after `timestamp` (ms).
    """

    offset: int
    of: tuple[tuple[TopicPartition, int], ...] = ()
    timestamp: int | None = None


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """All options, checked."""

    bootstrap: tuple[Address, ...]
    settings: ClientSettings
    topics: tuple[str, ...]
    columns: tuple[Column, ...]
    start: Bound
    end: Bound
    min_partitions: int | None
    max_offsets: int | None
    fail_on_data_loss: bool
    fail_on_unreadable: bool
    committed: bool


def source_options(given: Mapping[str, str], starts_at: int = _EARLIEST) -> SourceOptions:
    """Parse Spark's options; names are case-insensitive. Raises BadOption, BadSetting and UnknownColumn."""
    options = {name.lower(): value for name, value in given.items()}
    clients = {}
    for name, value in options.items():
        if name in _NAMES or name == "path":
            continue
        if not name.startswith(_CLIENT_PREFIX):
            near = get_close_matches(name, _NAMES, 1)
            advice = f"; did you mean {_SHOWN.get(near[0], near[0])}?" if near else ""
            raise BadOption(f"unknown option {name!r}{advice}")
        clients[name.removeprefix(_CLIENT_PREFIX)] = value
    topics = tuple(dict.fromkeys(t.strip() for t in options.get("subscribe", "").split(",") if t.strip()))
    if not topics:
        raise BadOption("the option subscribe is required: one or several topics, separated by commas")
    isolation = options.get("isolation.level", "read_committed")
    if isolation not in ("read_committed", "read_uncommitted"):
        raise BadOption(f"isolation.level: expected read_committed or read_uncommitted, found {isolation!r}")
    return SourceOptions(
        _addresses(options.get("kafka.bootstrap.servers", "")),
        client_settings(clients),
        topics,
        columns_named(options.get("columns")),
        _bound(options, "starting", starts_at),
        _bound(options, "ending", _LATEST),
        _positive(options, "minpartitions"),
        _positive(options, "maxoffsetspertrigger"),
        _boolean(options, "failondataloss", default=True),
        _boolean(options, "failonunreadable", default=True),
        isolation == "read_committed",
    )


def _addresses(text: str) -> tuple[Address, ...]:
    found = []
    for part in (chunk.strip() for chunk in text.split(",") if chunk.strip()):
        host, colon, port = part.rpartition(":")
        if not colon or not port.isdigit():
            raise BadOption(f"kafka.bootstrap.servers: expected host:port, found {part!r}")
        found.append((host.strip("[]"), int(port)))
    if not found:
        raise BadOption("the option kafka.bootstrap.servers is required: host:port of one or several brokers")
    return tuple(found)


def _bound(options: Mapping[str, str], which: str, default: int) -> Bound:
    name = f"{which}offsets"
    stamp = options.get(f"{which}timestamp")
    if stamp is not None:
        if not stamp.lstrip("-").isdigit():
            raise BadOption(f"{which}Timestamp: expected a time in ms, found {stamp!r}")
        return Bound(default, timestamp=int(stamp))
    text = options.get(name)
    if text is None:
        return Bound(default)
    words = {"earliest": _EARLIEST, "latest": _LATEST}
    if text.lower() in words:
        return Bound(words[text.lower()])
    try:
        value = json.loads(text)
        pairs = [
            (TopicPartition(topic, int(partition)), int(offset))
            for topic, offsets in value.items()
            for partition, offset in offsets.items()
        ]
    except (ValueError, AttributeError, TypeError) as error:
        raise BadOption(
            f'{_SHOWN[name]}: expected earliest, latest or {{"topic": {{"0": 17, "1": -2}}}}, found {text!r}'
        ) from error
    return Bound(default, tuple(pairs))


def _positive(options: Mapping[str, str], name: str) -> int | None:
    text = options.get(name)
    if text is None:
        return None
    if not text.isdigit() or int(text) == 0:
        raise BadOption(f"{_SHOWN[name]}: expected a number above 0, found {text!r}")
    return int(text)


def _boolean(options: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = options.get(name, str(default)).lower()
    if text not in ("true", "false"):
        raise BadOption(f"{_SHOWN[name]}: expected true or false, found {text!r}")
    return text == "true"
