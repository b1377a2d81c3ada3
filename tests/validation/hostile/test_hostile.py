"""Each mechanism that reads or rewrites contents yields to other work often, and needs little memory.

There are at least fifty inputs for each mechanism. With SLUICEGATE_THOROUGH=1, inputs have 2 MiB, and -s prints the
figures for each.
"""

import gc
import os
import time
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from sluicegate.config.files.yaml_source import read_yaml
from sluicegate.config.loading import load
from sluicegate.protocol.produce_request import walk_produce_request
from sluicegate.protocol.records.codecs.decompression import Decompressor
from sluicegate.protocol.records.codecs.decompression_budget import DecompressionBudget
from sluicegate.proxy.registry.schema_rules import SchemaRules
from sluicegate.proxy.rules_process.rule_limits import RuleLimits
from sluicegate.proxy.rules_process.rules_process import RulesProcess
from sluicegate.proxy.scheduling.extraction import QuarantineMemory, extract_bad_records
from sluicegate.proxy.scheduling.wait_budget import WaitBudget
from sluicegate.validation.from_keys import limits_of, rulebook_of
from sluicegate.validation.policy import ValidationLimits
from sluicegate.validation.previous_times import PreviousTimes
from sluicegate.validation.produce.request import validate_request
from sluicegate.validation.rulebook import Rulebook
from sluicegate.validation.rules.rule import Client
from tests.bounds.hostile_values import FIELDS, SCHEMAS, Format
from tests.bounds.machine import slowness
from tests.validation.hostile.batches import BATCHES, NOW
from tests.validation.hostile.values import VALUES
from tests.wire.batches import ZSTD, Rec, batch
from tests.wire.raw_client import produce_body, topic_data

THOROUGH = "SLUICEGATE_THOROUGH" in os.environ
MIB = 1 << 20
SIZE = 2 * MIB if THOROUGH else 25_000
LONGEST_STRETCH_SECONDS = 0.1
QUARANTINED_BYTES = 8 * MIB
# The limit is 64 MiB. A lower bound reveals the cost of short inputs sooner.
CONSTANT_BYTES = 64 * MIB if THOROUGH else QUARANTINED_BYTES + 4 * MIB
LONG_BYTES = 5_000
_SCHEMA_OF = {
    Format.JSON: "",
    Format.AVRO: f"{{file: {SCHEMAS / 'sensitive.avsc'}, format: avro}}",
    Format.PROTOBUF: f"{{file: {SCHEMAS / 'sensitive.proto'}, format: protobuf, message: Person}}",
}


def _sensitive(format: Format) -> str:
    schema = f", schema: {_SCHEMA_OF[format]}" if _SCHEMA_OF[format] else ""
    key = {"hash": f", key_file: {SCHEMAS / 'required.proto'}"}
    return ", ".join(
        f"{{name: {action}, action: {action}, fields: {list(paths)}{schema}{key.get(action, '')}}}"
        for action, paths in FIELDS.items()
    )


FILE = f"""
upstream: {{bootstrap: ["127.0.0.1:9"]}}
listen: {{bootstrap: "127.0.0.1:9"}}
limits: {{max_quarantined_bytes: {QUARANTINED_BYTES}, max_decompression_ratio: 1000000}}
defaults: {{message.timestamp.before.max.ms: 1h, message.timestamp.after.max.ms: 1h}}
topics:
  - {{match: mark, mode: mark, rules: [{{name: keyed, key: {{required: true}}}}]}}
  - {{match: fix, fix: {{timestamp: previous}}}}
  - {{match: fix-unit, fix: {{timestamp: unit}}}}
  - {{match: copy, mode: observe, quarantine: dead, rules: [{{name: keyed, key: {{required: true}}}}]}}
  - match: headers
    message.timestamp.after.max.ms: 9223372036854775807
    message.timestamp.before.max.ms: 9223372036854775807
    rules:
    - {{name: listed, headers: {{required: [x], forbidden: [name1], patterns: {{h: "/[0-9]*/"}}, max_size: 1MB}}}}
    - {{name: any, cel: "headers.all(name, name != 'x')"}}
  - {{match: mask-json, sensitive: [{_sensitive(Format.JSON)}]}}
  - {{match: mask-avro, sensitive: [{_sensitive(Format.AVRO)}]}}
  - {{match: mask-protobuf, sensitive: [{_sensitive(Format.PROTOBUF)}]}}
  - match: rules-json
    rules:
    - {{name: once, value: {{utf8: true, json: {{duplicate_keys: reject}}}}}}
    - {{name: lists, value: {{schema: {{file: {SCHEMAS / "lists.json"}, format: json}}}}}}
    - {{name: expression, cel: "!has(value.a) || value.a != 'x'"}}
  - match: rules-avro
    rules: [{{name: schema, value: {{schema: {_SCHEMA_OF[Format.AVRO]}}}, cel: "size(value.mails) < 10"}}]
  - match: rules-protobuf
    rules: [{{name: schema, value: {{schema: {_SCHEMA_OF[Format.PROTOBUF]}}}, cel: "size(value.mails) < 10"}}]
"""
_OF_BATCHES = {"mark": ("mark",), "fix": ("fix", "fix-unit"), "copy": ("copy",), "headers": ("headers",)}


def _made_of(value: Callable[[int], bytes], size: int) -> bytes:
    return batch([Rec(NOW, b"k", value(size))], ZSTD)


CASES = [
    *(
        pytest.param(topic, each.make, id=f"{kind}: {each.name}" + (" (unit)" if topic == "fix-unit" else ""))
        for kind, topics in _OF_BATCHES.items()
        for i, each in enumerate(BATCHES)
        for topic in [topics[i % len(topics)]]
    ),
    *(
        pytest.param(f"{kind}-{each.format.name.lower()}", partial(_made_of, each.make), id=f"{kind}: {each.name}")
        for kind in ("mask", "rules")
        for each in VALUES
    ),
]


@pytest.fixture(scope="module")
def configured_rules() -> Iterator[tuple[Rulebook, ValidationLimits]]:
    config = load(read_yaml(FILE, "f"), {}).config
    process = RulesProcess(RuleLimits(2.0, 256 * MIB), WaitBudget())
    yield rulebook_of(config, SchemaRules({}, process)), limits_of(config)
    process.close()


class MeasuredValidation:
    """The validation of one batch. Measures the longest processor time between two calls of `give_way`."""

    def __init__(self, configured: tuple[Rulebook, ValidationLimits], topic: str, data: bytes) -> None:
        rulebook, limits = configured
        policy, client = rulebook.policy_of(topic), Client("a:1", "a")
        request = walk_produce_request(bytearray(produce_body(9, [topic_data(topic, (0, data))])), 9, 0, 100)
        budget = DecompressionBudget(limits.max_decompressed_bytes, 1000, self._give_way)
        decompressor = Decompressor()
        self.longest = 0.0
        self._since = time.thread_time()
        previous = PreviousTimes()
        previous.note_stored(topic, 0, NOW)
        found = validate_request(
            request, {}, lambda _: policy, limits, lambda: NOW, decompressor, budget, previous, client
        )
        if found.to_quarantine:
            memory = QuarantineMemory(QUARANTINED_BYTES)
            extract_bad_records(request, found, {}, limits, decompressor, self._give_way, memory)
        self._give_way()
        self.outcome = "rejected" if found.rejected else "changed" if found.replacements() else "accepted"

    def _give_way(self) -> None:
        now = time.thread_time()
        self.longest = max(self.longest, now - self._since)
        self._since = time.thread_time()


@pytest.fixture(scope="module", autouse=True)
def _frozen() -> Iterator[None]:
    """Exclude existing objects from each search for cycles, because a process that has run thousands of tests has a
    large heap."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def bytes_held_by_cycles() -> int:
    """Return the bytes of long contents that wait for the garbage collector; many requests may come before it runs."""
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        gc.collect()
        found = {id(each): each for each in gc.get_referents(*gc.garbage) if isinstance(each, bytes | bytearray | str)}
        return sum(len(each) for each in found.values() if len(each) >= LONG_BYTES)
    finally:
        gc.garbage.clear()
        gc.set_debug(0)


@pytest.mark.parametrize(("topic", "make"), CASES)
def test_hostile_input_yields_often_and_uses_bounded_memory(
    topic: str, make: Callable[[int], bytes], configured_rules: tuple[Rulebook, ValidationLimits]
) -> None:
    data = make(SIZE)
    gc.collect()
    gc.disable()
    try:
        work = MeasuredValidation(configured_rules, topic, data)
        held = bytes_held_by_cycles()
        longest = work.longest
        if longest > LONGEST_STRETCH_SECONDS:  # a busy machine also increases CPU time
            longest = min(longest, MeasuredValidation(configured_rules, topic, data).longest)
        tracemalloc.start()
        MeasuredValidation(configured_rules, topic, data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        gc.enable()
    print(f"{work.outcome}, {len(data)} bytes, {longest * 1000:.1f} ms at once, {peak / MIB:.1f} MiB")

    assert longest < LONGEST_STRETCH_SECONDS * slowness()
    assert held == 0, "a reference cycle keeps the read data, perhaps an error and a frame that names it"
    assert peak < CONSTANT_BYTES + 4 * max(len(data), SIZE)
