"""The only module that calls the compiled code directly."""

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any

from sluicegate.config.loading import read_section
from sluicegate.config.topics import TopicKeys
from sluicegate.protocol.errors import SenderError
from sluicegate.protocol.frame_pool import FramePool
from sluicegate.protocol.framing import Disposition, FrameReader
from sluicegate.protocol.produce_request import walk_produce_request
from sluicegate.protocol.produce_response import walk_produce_response
from sluicegate.protocol.records.codecs.codec import Codec
from sluicegate.protocol.records.codecs.decompression import Decompressor
from sluicegate.proxy.fastpath.paths import make_ordinary_requests
from sluicegate.validation.from_keys import compile_policies
from sluicegate.validation.in_force import RulesInForce
from sluicegate.validation.policy import ValidationLimits
from sluicegate.validation.produce.request import validate_request
from sluicegate.validation.rulebook import Rulebook
from sluicegate.validation.rules.avro.schema import avro_content
from sluicegate.validation.rules.built_in import Utf8
from sluicegate.validation.rules.from_keys import InlineRules
from sluicegate.validation.rules.json.schema import json_schema_content
from sluicegate.validation.rules.json.syntax import JsonSyntax
from sluicegate.validation.rules.native.questions import ordinary_questions
from sluicegate.validation.rules.rule import Client, RecordRule, RuledRecord, Side
from sluicegate.validation.rules.schemas.schema_file import Envelope, FollowsSchema
from tests.wire.batches import Rec, record

try:
    from sluicegate.protocol.records.codecs.decompression_budget import DecompressionBudget
except ImportError:
    DecompressionBudget = None

_MAX_PARTITIONS = 10_000
_PLAIN_BYTES = 4 << 20
_LIMITS = ValidationLimits(_PLAIN_BYTES, 1000)
_SCHEMA_FILE = {"file": "any.json", "format": "json"}
_JSON_SCHEMA = json_schema_content(
    '{"properties": {"n": {"type": "number", "minimum": 0}, "s": {"enum": ["a", "text"]},'
    ' "l": {"items": {"maxLength": 5}}}, "required": ["n"], "additionalProperties": false}'
)
_AVRO = avro_content(
    '{"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"},'
    ' {"name": "s", "type": ["null", "string"]},'
    ' {"name": "l", "type": {"type": "array", "items": {"type": "map", "values": "R"}}}]}'
)


class _Maker(InlineRules):
    def of_schema(self, _schema: object, side: Side) -> RecordRule:
        return FollowsSchema(side, _JSON_SCHEMA)


_KEYS = {
    "bounded": read_section(
        TopicKeys, {"message.timestamp.before.max.ms": 86_400_000, "message.timestamp.after.max.ms": 3_600_000}
    ),
    "compacted": read_section(TopicKeys, {"cleanup.policy": "compact", "max.message.bytes": 1000}),
    "appended": read_section(TopicKeys, {"message.timestamp.type": "LogAppendTime"}),
    "unchecked": read_section(TopicKeys, {"checks": "none"}),
    "json": read_section(TopicKeys, {"rules": [{"name": "r", "key": {"utf8": True}, "value": {"json": {}}}]}),
    "schema": read_section(TopicKeys, {"rules": [{"name": "r", "value": {"schema": _SCHEMA_FILE}}]}),
}
_SHARES = {"bounded": 4, "compacted": 2, "appended": 2, "unchecked": 1, "json": 2, "schema": 1}
TOPICS = [name.encode() for name, share in _SHARES.items() for _ in range(share)]
_RULES = RulesInForce(Rulebook(compile_policies(TopicKeys(), list(_KEYS.items()), maker=_Maker())))
_NAMES = {name.ljust(16, b"\0"): name.decode() for name in set(TOPICS)}
_DECOMPRESSOR = Decompressor()
_MOMENT = [0]
_FAST = make_ordinary_requests(_LIMITS, _MAX_PARTITIONS, lambda: _MOMENT[0], _RULES)


def _takes(function: Callable[..., Any], count: int) -> bool:
    """Return whether a compiled function has that many arguments, by its documented signature."""
    try:
        return len(inspect.signature(function).parameters) >= count
    except ValueError:
        return True


_WALK_MORE = (_MAX_PARTITIONS,) if _takes(walk_produce_request, 4) else ()
_RESPONSE_MORE = (_MAX_PARTITIONS,) if _takes(walk_produce_response, 4) else ()
_VALIDATE_WITH_BUDGET = DecompressionBudget is not None and _takes(validate_request, 7)


def _go_on() -> None:
    return


def validate(frame: bytearray, version: int, body_at: int, now_ms: int) -> bool:
    """Walk and validate a Produce request. Return False if it is malformed."""
    try:
        request = walk_produce_request(frame, version, body_at, *_WALK_MORE)
    except SenderError:
        return False
    more = (DecompressionBudget(_PLAIN_BYTES, 1000, _go_on),) if _VALIDATE_WITH_BUDGET else ()
    validated = validate_request(
        request, _NAMES, _RULES.rulebook.policy_of, _LIMITS, lambda: now_ms, _DECOMPRESSOR, *more
    )
    if _is_good_on_the_fast_path(frame, version, body_at, now_ms):
        assert not validated.rejected and request.acks in (-1, 0, 1), f"fast path only: v{version}, {frame.hex()}"
    return True


def _is_good_on_the_fast_path(frame: bytearray, version: int, body_at: int, now_ms: int) -> bool:
    if _FAST is None:
        return False
    _MOMENT[0] = now_ms
    for name in _KEYS:
        policy = _RULES.rulebook.policy_of(name).ordinary
        assert policy is not None
        _FAST.add_topic(name.encode(), False, name, policy)
        _FAST.add_topic(name.encode().ljust(16, b"\0"), True, name, policy)
    return _FAST.validate(memoryview(frame), body_at, len(frame), version) != 0


_ASKED: list[tuple[RecordRule, Any]] = []
if _FAST is not None:
    ordinary_contents = import_module("sluicegate.validation.rules.native.contents")
    _rules: tuple[RecordRule, ...] = (
        JsonSyntax(Side.VALUE, max_depth=20),
        FollowsSchema(Side.VALUE, _JSON_SCHEMA),
        FollowsSchema(Side.VALUE, _AVRO, Envelope.CONFLUENT),
        Utf8(Side.VALUE),
    )
    for _rule in _rules:
        _ASKED.append((_rule, ordinary_contents.OrdinaryContents(ordinary_questions([_rule]), 1 << 20)))


def ask_natively(value: bytes) -> bool:
    """Apply value rules on both paths, and to bytes that are not records."""
    good = True
    records = record(Rec(0, b"key", value), 0, 0)
    for rule, natively in _ASKED:
        natively.accepts(value, 1000)
        is_good = natively.accepts(records, 1)
        words = rule.fault(RuledRecord("t", 0, 0, 0, b"key", value, (), Client("")))
        assert not is_good or words is None, f"accepted only by native code: {rule}: {words}: {value.hex()}"
        good = good and is_good
    return good


def decompress(codec: int, data: bytes, magic: int) -> None:
    _DECOMPRESSOR.decompress(Codec(codec), memoryview(data), _PLAIN_BYTES, magic)


def walk_response(frame: bytearray, version: int, body_at: int) -> bool:
    try:
        walk_produce_response(frame, version, body_at, *_RESPONSE_MORE)
    except SenderError:
        return False
    return True


class _Taker:
    """Buffers every second frame."""

    def on_head(self, size: int, head: bytes) -> Disposition:
        return Disposition.GATHER if size & 1 else Disposition.STREAM

    def on_pass(self, data: memoryview) -> None:
        return

    def on_room(self, more: int, size: int) -> None:
        return

    def on_frame(self, frame: bytearray) -> None:
        return


_POOL = FramePool()


def read_frames(stream: bytes, pieces: int) -> bool:
    """Split a stream that arrives in pieces into frames."""
    reader = FrameReader(_Taker(), 8, 1 << 20, _POOL)
    step = max(1, len(stream) // pieces)
    try:
        for at in range(0, len(stream), step):
            piece = memoryview(stream)[at : at + step]
            reader.receive(piece, len(piece))
    except SenderError:
        return False
    return True
