"""Validates one fixed request again and again, for `bench.instructions`."""

from collections.abc import Callable

from sluicegate.config.loading import read_section
from sluicegate.config.topics import TopicKeys
from sluicegate.protocol.produce_request import walk_produce_request
from sluicegate.protocol.records.codecs.decompression import Decompressor
from sluicegate.protocol.records.codecs.decompression_budget import DecompressionBudget
from sluicegate.proxy.fastpath.paths import GOOD, make_ordinary_requests
from sluicegate.validation.from_keys import compile_policies
from sluicegate.validation.in_force import PolicyMemo, RulesInForce
from sluicegate.validation.policy import ValidationLimits
from sluicegate.validation.produce.request import validate_request
from sluicegate.validation.rulebook import Rulebook
from tests.bounds.frames import request_header, sized_produce_request
from tests.wire.batches import CODECS, NONE, Rec, batch

_NOW_MS = 1_800_000_000_000
_RECORDS = 600
_VERSION = 13
_TOPIC_ID = b"sixteen bytes id"
_KEYS = {"message.timestamp.before.max.ms": 86_400_000, "message.timestamp.after.max.ms": 3_600_000}


def repeated_validation(what: str) -> Callable[[int], None]:
    """Return a function that repeats the validation of the request `what`.

    The function raises AssertionError unless the request is accepted. A codec stands for 600 records, `one` for one
    record, and `slow` for that record on the slow path.
    """
    records = [
        Rec(_NOW_MS + i % 50, b"key%d" % i, (b'{"order":%d,' % i + b"abcdefghij" * 10)[:100]) for i in range(_RECORDS)
    ]
    data = batch(records[:1] if what in ("one", "slow") else records, CODECS.get(what, NONE))
    frame = bytearray(sized_produce_request(_VERSION, {_TOPIC_ID: [(0, data)]})[4:])
    validate = _on_the_slow_path(frame) if what == "slow" else _on_the_fast_path(frame)

    def repeat(repetitions: int) -> None:
        for _ in range(repetitions):
            assert validate()

    return repeat


def _rules() -> RulesInForce:
    return RulesInForce(Rulebook(compile_policies(read_section(TopicKeys, _KEYS))))


def _on_the_fast_path(frame: bytearray) -> Callable[[], bool]:
    rules = _rules()
    ordinary = make_ordinary_requests(ValidationLimits(), 1000, lambda: _NOW_MS, rules)
    assert ordinary is not None, "there is no fast path: it was not compiled"
    ordinary.add_topic(_TOPIC_ID, True, "bench", rules.rulebook.policy_of("bench"))
    view, start, end = memoryview(frame), len(request_header(0, _VERSION)), len(frame)
    return lambda: ordinary.validate(view, start, end, _VERSION) == GOOD


def _on_the_slow_path(frame: bytearray) -> Callable[[], bool]:
    rules, memo, limits, decompressor = _rules(), PolicyMemo(), ValidationLimits(), Decompressor()
    start = len(request_header(0, _VERSION))

    def validate() -> bool:
        request = walk_produce_request(frame, _VERSION, start, 1000)
        budget = DecompressionBudget(128 << 20, 1000, _go_on)
        policy_of = memo.policies_by(rules.rulebook)
        validated = validate_request(
            request, {_TOPIC_ID: "bench"}, policy_of, limits, lambda: _NOW_MS, decompressor, budget
        )
        return len(validated.accepted) == 1

    return validate


def _go_on() -> None:
    """Do nothing, because no other client waits."""
