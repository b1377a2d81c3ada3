"""Each disposition of a batch yields to other work often, and needs little memory. One without a case fails here."""

import os
import time
import tracemalloc
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from sluicegate.config.files.yaml_source import read_yaml
from sluicegate.config.loading import load
from sluicegate.protocol.produce_request import walk_produce_request
from sluicegate.protocol.records.codecs.decompression import Decompressor
from sluicegate.protocol.records.codecs.decompression_budget import DecompressionBudget
from sluicegate.proxy.scheduling.extraction import QuarantineMemory, extract_bad_records
from sluicegate.validation import dispositions
from sluicegate.validation.from_keys import limits_of, rulebook_of
from sluicegate.validation.policy import TimeFix, ValidationLimits
from sluicegate.validation.produce.request import validate_request
from sluicegate.validation.rulebook import Rulebook
from sluicegate.validation.rules.rule import Client, Mode
from tests.wire.batches import CODECS, Rec, batch, identical_records
from tests.wire.raw_client import produce_body, topic_data

NOW = 1_800_000_000_000
MIB = 1 << 20
LONGEST_STRETCH_SECONDS = 0.1
QUARANTINED_BYTES = 8 * MIB
FILE = f"""
upstream: {{bootstrap: ["127.0.0.1:9"]}}
listen: {{bootstrap: "127.0.0.1:9"}}
limits: {{max_quarantined_bytes: {QUARANTINED_BYTES}, max_decompression_ratio: 100000}}
defaults: {{message.timestamp.before.max.ms: 1h, message.timestamp.after.max.ms: 1h}}
topics:
  - {{match: reject}}
  - {{match: observe, mode: observe}}
  - {{match: quarantine, mode: reject, quarantine: dead}}
  - {{match: copy, mode: observe, quarantine: dead}}
  - {{match: mark, mode: mark, rules: [{{name: keyed, key: {{required: true}}}}]}}
  - {{match: fix-now, fix: {{timestamp: now}}}}
  - {{match: fix-clamp, fix: {{timestamp: clamp}}}}
  - {{match: fix-previous, fix: {{timestamp: previous}}}}
  - {{match: fix-unit, fix: {{timestamp: unit}}}}
  - {{match: mask, sensitive: [{{name: mail, action: mask, fields: [mail]}}]}}
  - {{match: headers, rules: [{{name: h, headers: {{required: [x], patterns: {{h: a}}, max_size: 1MB}}}}]}}
  - {{match: expression, rules: [{{name: e, cel: "'x' in headers"}}]}}
"""
TOPIC_OF_MODE = {
    Mode.REJECT: "reject",
    Mode.OBSERVE: "observe",
    Mode.FIX: "fix-now",
    Mode.QUARANTINE: "quarantine",
    Mode.MARK: "mark",
    Mode.COPY: "copy",
}
TOPIC_OF_FIX = {
    TimeFix.NOW: "fix-now",
    TimeFix.CLAMP: "fix-clamp",
    TimeFix.PREVIOUS: "fix-previous",
    TimeFix.UNIT: "fix-unit",
}
TOPIC_OF_MODULE = {
    "bad_records": "mark",
    "fixes": "fix-now",
    "marks": "mark",
    "masking": "mask",
    "quarantine": "quarantine",
    "rewritten": "mask",
}
OTHERS = ("mask", "headers", "expression")
TOPICS = sorted({*TOPIC_OF_MODE.values(), *TOPIC_OF_FIX.values(), *TOPIC_OF_MODULE.values(), *OTHERS})


def _many(rec: Rec, count: int) -> tuple[bytes, int]:
    return identical_records(rec, count, NOW), count


INPUTS: dict[str, Callable[[], tuple[bytes, int]]] = {
    "late records": lambda: _many(Rec(NOW * 1000, None, None), 20_000),
    "good records": lambda: _many(Rec(NOW, b"k", b"{}"), 20_000),
    "records without a key": lambda: _many(Rec(NOW, None, b'{"mail":"a@b"}'), 5_000),
    "secrets": lambda: _many(Rec(NOW, b"k", b'{"mail":"a@b"}'), 5_000),
    "headers like marks": lambda: _many(Rec(NOW, b"k", None, [(b"sluicegate.reason", b"")] * 5_000), 20),
    "headers": lambda: _many(Rec(NOW * 1000, b"k", None, [(b"h", None)] * 9_900), 40),
    "a large value": lambda: _many(Rec(NOW * 1000, b"k", b'"' + b"v" * 4_000_000 + b'"'), 1),
}


@cache
def _sent(name: str, codec: int) -> bytes:
    payload, count = INPUTS[name]()
    return batch([], codec, payload=payload, count=count, base_timestamp=NOW, max_timestamp=NOW)


@cache
def _configured() -> tuple[Rulebook, ValidationLimits]:
    config = load(read_yaml(FILE, "f"), {}).config
    return rulebook_of(config), limits_of(config)


class MeasuredValidation:
    """The validation of one batch. Measures the longest processor time between two calls of `give_way`."""

    def __init__(self, topic: str, data: bytes) -> None:
        rulebook, limits = _configured()
        policy, client = rulebook.policy_of(topic), Client("a:1", "a")
        request = walk_produce_request(bytearray(produce_body(9, [topic_data(topic, (0, data))])), 9, 0, 100)
        budget = DecompressionBudget(limits.max_decompressed_bytes, 1000, self._give_way)
        decompressor = Decompressor()
        self.longest = 0.0
        self._since = time.thread_time()
        found = validate_request(
            request, {}, lambda _: policy, limits, lambda: NOW, decompressor, budget, client=client
        )
        if found.to_quarantine:
            memory = QuarantineMemory(QUARANTINED_BYTES)
            extract_bad_records(request, found, {}, limits, decompressor, self._give_way, memory)
        self._give_way()

    def _give_way(self) -> None:
        now = time.thread_time()
        self.longest = max(self.longest, now - self._since)
        self._since = time.thread_time()


def test_every_disposition_module_is_covered_by_the_work_tests() -> None:
    folder = Path(os.fspath(dispositions.__path__[0]))

    assert set(TOPIC_OF_MODE) == set(Mode)
    assert set(TOPIC_OF_FIX) == set(TimeFix)
    assert set(TOPIC_OF_MODULE) == {file.stem for file in folder.glob("*.py")} - {"__init__"}


@pytest.mark.parametrize("codec", list(CODECS))
@pytest.mark.parametrize("name", list(INPUTS))
@pytest.mark.parametrize("topic", TOPICS)
def test_validation_in_each_mode_yields_regularly(topic: str, name: str, codec: str) -> None:
    data = _sent(name, CODECS[codec])

    longest = MeasuredValidation(topic, data).longest
    if longest > LONGEST_STRETCH_SECONDS:  # a busy machine also increases CPU time
        longest = min(longest, MeasuredValidation(topic, data).longest)

    assert longest < LONGEST_STRETCH_SECONDS


@pytest.mark.parametrize("codec", ["none", "zstd"])
@pytest.mark.parametrize("name", list(INPUTS))
@pytest.mark.parametrize("topic", TOPICS)
def test_each_disposition_uses_bounded_memory(topic: str, name: str, codec: str) -> None:
    data = _sent(name, CODECS[codec])
    MeasuredValidation(topic, _sent("secrets", CODECS[codec]))  # imports and compiled rules stay in memory

    tracemalloc.start()
    try:
        MeasuredValidation(topic, data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 4 * max(len(data), 4_000_000) + QUARANTINED_BYTES + 4 * MIB
