"""The types of values, each with its bounds and its error message."""

import os
from dataclasses import dataclass, replace
from ipaddress import ip_network
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator

from sluicegate.config.values import json_schema_kinds as schema
from sluicegate.config.values.address import (
    AdvertisedHost,
    BrokerAddress,
    ListenAddress,
    parse_addresses,
    require_address,
)
from sluicegate.config.values.password import SecretText
from sluicegate.config.values.quantity import MILLISECONDS, SECONDS, Quantity, byte_size, format_quantity, whole_number
from sluicegate.config.values.topic_pattern import regular_expression_of
from sluicegate.protocol.integers import LONG_MAX
from sluicegate.protocol.topic_name import is_legal_topic_name

MAX_WORKERS = 64
FILE_VERSION = 1
"""The version of the configuration's format. It increases if an older sluicegate cannot apply a newer file."""
_NODE_ID = whole_number(0, 2**31 - 1, "a broker's id")
_PORT = whole_number(1, 65535, "a port")
_NONE_OR_MORE, _ONE_OR_MORE = whole_number(0), whole_number(1)
_WORKERS = whole_number(1, MAX_WORKERS)
_FILE_VERSION = whole_number(1, FILE_VERSION, "a version of the format")
_PERCENT = whole_number(0, 100, "a percentage")
_BYTES = byte_size(1)
_TIME_BOUND, _SIZE_BOUND = replace(MILLISECONDS, none=LONG_MAX), replace(byte_size(1), none=LONG_MAX)
_SOME_BYTES = byte_size(0)
_FRAME_BYTES = byte_size(1024)  # with less, no client could send a request
_RULE_MEMORY = byte_size(16 << 20)  # with less, no rule could run


@dataclass(frozen=True, slots=True)
class NamesFile:
    """Marks a type as the name of a file to read. The name is relative to the folder of the file with the key."""


def _text(value: str) -> str:
    if not value:
        raise ValueError("the text is empty; omit the key instead")
    if "\0" in value:
        raise ValueError("the text contains a NUL character")
    return _encodable(value)


def _encodable(value: str) -> str:
    """Return a string that UTF-8 can encode, for records, headers, responses and log lines. Raises ValueError."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError("the text contains a lone surrogate (half of a character)") from None
    return value


def _file_name(value: str) -> str:
    """Return a file name. Names that are not UTF-8 are valid file names."""
    try:
        _text(os.fsencode(value).decode(errors="replace"))
    except UnicodeEncodeError:
        raise ValueError("not a valid file name") from None
    return value


def _topic_name(value: str) -> str:
    if value.lower() in _FLAGS:
        raise ValueError(f"expected a topic's name; found {value}")
    if not is_legal_topic_name(value):
        raise ValueError(f"not a valid topic name (at most 249 letters, digits, . _ -): {format_quantity(value)}")
    return value


def _written_file_name(value: str) -> str:
    if value.lower() in _FLAGS:
        raise ValueError(f"expected a file's name; found {value}")
    return _file_name(value)


def topic_pattern(value: str) -> str:
    """Return a pattern of topic names, in which slashes may only enclose a regular expression. Raises ValueError."""
    if "/" in value and not (len(value) > 1 and value[0] == value[-1] == "/"):
        expression = format_quantity(f"/{value.strip('/')}/")
        raise ValueError(f"no topic has a slash in its name; a regular expression has one at both ends: {expression}")
    return _pattern(value)


def _secret(value: Any) -> SecretText:
    if isinstance(value, SecretText):
        return value
    if not isinstance(value, str):
        raise ValueError("expected a text")
    return SecretText(_text(value))


def _flag(value: Any) -> Any:
    """Convert YAML's words for yes and no to a boolean."""
    return _FLAGS.get(value.strip().lower(), value) if isinstance(value, str) else value


def _network(value: str) -> str:
    """Return a network such as 10.0.0.0/8. A single address is a network of one. Raises ValueError."""
    try:
        return str(ip_network(value.strip()))
    except ValueError:
        raise ValueError(
            f'expected a network such as "10.0.0.0/8", or an address; found {format_quantity(value)}'
        ) from None


def _pattern(value: str) -> str:
    """Return a glob, or a regular expression between slashes. Raises ValueError."""
    regular_expression_of(value)
    return value


def _unlike(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


ON, OFF = ("true", "yes", "on"), ("false", "no", "off")
"""Words for a flag that people try for other keys."""
LEAVE_OUT = "omit the key"
"""A correction: the key is not needed."""
MODES = {
    **dict.fromkeys(("log", "warn", "report", "dry-run", "dry_run", "shadow", "audit"), "observe"),
    **dict.fromkeys(("block", "deny", "drop", "enforce", "strict", "refuse"), "reject"),
}
"""Words that people try for `mode`."""
_FLAGS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}

Text = Annotated[str, AfterValidator(_text), schema.schema_note(schema.TEXT)]
AnyText = Annotated[str, AfterValidator(_encodable)]
"""A string that may be empty."""
TopicName = Annotated[str, AfterValidator(_topic_name), schema.schema_note(schema.TEXT)]
FileName = Annotated[str, AfterValidator(_file_name), schema.schema_note(schema.TEXT), NamesFile()]
WrittenFileName = Annotated[str, AfterValidator(_written_file_name), schema.schema_note(schema.TEXT)]
Secret = Annotated[SecretText, BeforeValidator(_secret), schema.schema_note({**schema.TEXT, "writeOnly": True})]
Flag = Annotated[bool, BeforeValidator(_flag), schema.schema_note(schema.FLAG)]
Milliseconds = Annotated[int, BeforeValidator(MILLISECONDS.read), MILLISECONDS]
TimeBound = Annotated[int, BeforeValidator(_TIME_BOUND.read), _TIME_BOUND]
SizeBound = Annotated[int, BeforeValidator(_SIZE_BOUND.read), _SIZE_BOUND]
Seconds = Annotated[float, BeforeValidator(SECONDS.read), SECONDS]
Bytes = Annotated[int, BeforeValidator(_BYTES.read), _BYTES]
FrameBytes = Annotated[int, BeforeValidator(_FRAME_BYTES.read), _FRAME_BYTES]
RuleMemory = Annotated[int, BeforeValidator(_RULE_MEMORY.read), _RULE_MEMORY]
NodeId = Annotated[int, BeforeValidator(_NODE_ID.read), _NODE_ID]
Port = Annotated[int, BeforeValidator(_PORT.read), _PORT]
NoneOrMore = Annotated[int, BeforeValidator(_NONE_OR_MORE.read), _NONE_OR_MORE]
OneOrMore = Annotated[int, BeforeValidator(_ONE_OR_MORE.read), _ONE_OR_MORE]
FileVersion = Annotated[int, BeforeValidator(_FILE_VERSION.read), _FILE_VERSION]
Workers = Annotated[int, BeforeValidator(_WORKERS.read), _WORKERS]
Addresses = Annotated[
    tuple[BrokerAddress, ...],
    BeforeValidator(parse_addresses),
    AfterValidator(require_address),
    schema.schema_note(schema.one_or_more(schema.ADDRESS)),
]

_MOST_CANDIDATES = 8


def _candidates(value: Any) -> Any:
    """Convert a single bound to a list of one."""
    return parse_addresses(value) if isinstance(value, str) else [value] if isinstance(value, int) else value


def _few(bounds: tuple[int, ...]) -> tuple[int, ...]:
    if len(bounds) > _MOST_CANDIDATES:
        raise ValueError(f"expected at most {_MOST_CANDIDATES} bounds, found {len(bounds)}")
    return tuple(sorted(set(bounds)))


def _one_or_more(value: Any) -> Any:
    """Convert a single name to a list of one."""
    return [value] if isinstance(value, str) else value


Candidates = Annotated[
    tuple[Milliseconds, ...],
    BeforeValidator(_candidates),
    AfterValidator(_few),
    schema.schema_note(MILLISECONDS.json_schema_of_several(_MOST_CANDIDATES)),
]
Networks = Annotated[
    tuple[Annotated[str, AfterValidator(_network)], ...],
    BeforeValidator(parse_addresses),
    schema.schema_note(schema.one_or_more({"type": "string"}, fewest=0)),
]
Pattern = Annotated[str, AfterValidator(_text), AfterValidator(_pattern), schema.schema_note(schema.TEXT)]
TopicPattern = Annotated[str, AfterValidator(_text), AfterValidator(topic_pattern), schema.schema_note(schema.TEXT)]
TopicPatternList = Annotated[
    tuple[TopicPattern, ...],
    BeforeValidator(_one_or_more),
    AfterValidator(require_address),
    schema.schema_note(schema.one_or_more(schema.TEXT)),
    schema.Takes("a name, a glob, a regular expression between slashes, or a list of them"),
]
Names = Annotated[
    tuple[Text, ...], AfterValidator(_unlike), schema.schema_note({"type": "array", "items": schema.TEXT})
]
Patterns = Annotated[
    tuple[Pattern, ...],
    BeforeValidator(_one_or_more),
    schema.schema_note(schema.one_or_more(schema.TEXT, fewest=0)),
    schema.Takes("a glob, a regular expression between slashes, or a list of them"),
]
Percent = Annotated[int, BeforeValidator(_PERCENT.read), _PERCENT]
SomeBytes = Annotated[int, BeforeValidator(_SOME_BYTES.read), _SOME_BYTES]

__all__ = [
    "FILE_VERSION",
    "LEAVE_OUT",
    "MAX_WORKERS",
    "MODES",
    "OFF",
    "ON",
    "Addresses",
    "AdvertisedHost",
    "AnyText",
    "BrokerAddress",
    "Bytes",
    "Candidates",
    "FileName",
    "FileVersion",
    "Flag",
    "FrameBytes",
    "ListenAddress",
    "Milliseconds",
    "Names",
    "Networks",
    "NodeId",
    "NoneOrMore",
    "OneOrMore",
    "Pattern",
    "Patterns",
    "Percent",
    "Port",
    "Quantity",
    "RuleMemory",
    "Seconds",
    "Secret",
    "SizeBound",
    "SomeBytes",
    "Text",
    "TimeBound",
    "TopicName",
    "TopicPattern",
    "TopicPatternList",
    "Workers",
    "WrittenFileName",
    "topic_pattern",
]
