"""The slow path accepts every request that the fast path accepts at the same time, and the fast path accepts ordinary
requests.

`make lanes` runs the long form and prints how often each family fell back.
"""

import os
import random
from collections.abc import Iterable, Iterator

import pytest

from sluicegate.proxy.fastpath.paths import HAS_FAST_PATH
from sluicegate.validation.policy import Framing, TimestampType, TopicPolicy, ValidationLimits
from sluicegate.validation.requests.request_rule import RequestCheck
from sluicegate.validation.rules.avro.schema import avro_content
from sluicegate.validation.rules.built_in import MostRecords, Required, Size, Utf8
from sluicegate.validation.rules.headers import HeaderBounds
from sluicegate.validation.rules.json.schema import json_schema_content
from sluicegate.validation.rules.json.syntax import JsonSyntax
from sluicegate.validation.rules.rule import Mode, NamedRule, RecordRule, Side
from sluicegate.validation.rules.rule_set import RuleSet
from sluicegate.validation.rules.schemas.schema_file import Envelope, FollowsSchema
from tests.bounds.frames import good_batch, request_header, sized_produce_request
from tests.fuzz.mutations import mutate
from tests.fuzz.seeds import seed_batches
from tests.oracle.validator_cases import (
    NOW,
    Cases,
    damage_in_one_of_several_steps,
    damaged_compression,
    damaged_payloads,
    good_structures,
)
from tests.two_paths.both import FALLS_BACK, GOOD, RIGHTLY, BothPaths
from tests.wire.batches import CODECS, Rec, batch

pytestmark = pytest.mark.skipif(not HAS_FAST_PATH, reason="there is no fast path: it was not compiled")

_IS_LONG = bool(os.environ.get("SLUICEGATE_THOROUGH"))
_MUTATED = 1_000_000 if _IS_LONG else 200_000
_HOUR, _DAY = 3_600_000, 86_400_000
_JSON_SCHEMA = '{"properties": {"n": {"type": "integer", "maximum": 9}, "s": {"type": "string"}}, "required": ["n"]}'
_AVRO = '{"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}, {"name": "s", "type": "string"}]}'


def policy_with_rules(*rules: RecordRule) -> TopicPolicy:
    """Return the policy of a topic with these settings."""
    return TopicPolicy(rules=RuleSet(NamedRule("a rule", rule) for rule in rules))


_POLICIES = {
    "bounded": TopicPolicy(before_max_ms=_DAY, after_max_ms=_HOUR),
    "open": TopicPolicy(),
    "strict": TopicPolicy(framing=Framing.STRICT),
    "as a broker": TopicPolicy(framing=Framing.BROKER),
    "compacted": TopicPolicy(compacted=True, max_message_bytes=5000),
    "appended": TopicPolicy(timestamp_type=TimestampType.LOG_APPEND_TIME),
    "unchecked": TopicPolicy(checked=False),
    "keyed": policy_with_rules(Required(Side.KEY), Size(Side.KEY, 2, 4), MostRecords(30)),
    "text": policy_with_rules(Utf8(Side.VALUE), Utf8(Side.KEY)),
    "seen": TopicPolicy(rules=RuleSet([NamedRule("empty", Size(Side.VALUE, 0, 0), Mode.OBSERVE)])),
    "json": policy_with_rules(JsonSyntax(Side.VALUE, max_depth=5)),
    "schema": policy_with_rules(FollowsSchema(Side.VALUE, json_schema_content(_JSON_SCHEMA))),
    "avro": policy_with_rules(FollowsSchema(Side.VALUE, avro_content(_AVRO), Envelope.CONFLUENT)),
    "headed": policy_with_rules(HeaderBounds(3, None)),
    "once": policy_with_rules(JsonSyntax(Side.VALUE, "reject")),
    "asked": TopicPolicy(requests=(RequestCheck("acks", acks=frozenset({-1})),)),
}
_ASKED_NATIVELY = ("keyed", "text", "seen", "json", "schema", "avro")
_IDS = {name.encode().ljust(16, b"\0"): name for name in _POLICIES}
_VERSIONS = range(14)
_DIFFERENT = (2, 3, 7, 9, 13)
"""A version that the fast path does not read, and the versions that introduced batches, zstd, tagged fields and topic
ids."""


@pytest.fixture
def both_paths() -> BothPaths:
    return BothPaths(_POLICIES, _IDS, ValidationLimits(8 << 20))


def _told(family: str, both_paths: BothPaths) -> None:
    counts = both_paths.counts
    print(f"{family}: {counts.total():,} requests: good {counts[GOOD]:,}, {FALLS_BACK} {counts[FALLS_BACK]:,},"
          f" {RIGHTLY} {counts[RIGHTLY]:,}")  # fmt: skip


def _request(version: int, topics: dict[str, list[bytes | None]], acks: int = -1) -> tuple[bytearray, int]:
    """Return a frame and the position of its body."""
    named = {
        name.encode().ljust(16, b"\0") if version >= 13 else name.encode(): list(enumerate(records))
        for name, records in topics.items()
    }
    frame = bytearray(sized_produce_request(version, named, acks=acks)[4:])
    return frame, len(request_header(0, version))


def _ordinary_batches(chance: random.Random) -> Iterator[bytes]:
    for codec in CODECS.values():
        for count in (1, 2, 30, 700):
            yield batch([Rec(NOW - i, b"k%d" % i, chance.randbytes(20) * (i % 9)) for i in range(count)], codec)
            with_headers = [Rec(NOW + i, b"", b"value", [(b"name", b"v"), (b"n", None)]) for i in range(count)]
            yield batch(with_headers, codec, producer_id=5, producer_epoch=0, base_sequence=sequence_value(count))
    yield good_batch(NOW)
    yield batch([Rec(-1), Rec(NOW)])
    yield batch([Rec(NOW, b"k", bytes(100_000))])


def _values() -> list[bytes]:
    """Return values for rules; each is valid, or almost valid, for some topic."""
    return [
        b'{"n": 7, "s": "text"}',
        b'{"n": 10}',
        '{"s": "\\u00e9\u00e9", "n": 1, "more": [[[[1.5e3]]]]}'.encode(),
        b"[[[[[[]]]]]]",
        b'{"n": 1, "n": 2}',
        b'"\\ud800"',
        b"",
        b"{} {}",
        b"\xff\xfe",
        b"\0\0\0\0\x09\x0e\x08text",
        b"\0\0\0\0\x09\x0e\x08tex",
        b'["' + b"x" * 70_000 + b'"]',
    ]


def _batches_for_rules(chance: random.Random) -> Iterator[bytes]:
    values: list[bytes | None] = [None, *_values()]
    for codec in CODECS.values():
        for value in values:
            yield batch([Rec(NOW, b"key", value)], codec)
            yield batch([Rec(NOW, b"key", value, [(b"h", b"v")])] * 31, codec)
        for _ in range(20):
            keys: list[bytes | None] = [None, b"", b"k", b"key", b"\xff\xff", b"\xc3\xa9"]
            yield batch([Rec(NOW, chance.choice(keys), chance.choice(values)) for _ in range(3)], codec)


def sequence_value(count: int) -> int:
    """Some sequence."""
    return count % 7


@pytest.mark.parametrize("acks", [-1, 0, 1])
@pytest.mark.parametrize("version", range(3, 14))
def test_ordinary_requests_stay_on_the_fast_path(version: int, acks: int, both_paths: BothPaths) -> None:
    made = [one for one in _ordinary_batches(random.Random(1)) if version >= 7 or one[22] & 7 != 4]
    for one in made:
        for name in ("bounded", "open", "appended", "unchecked"):
            assert both_paths.validate(*_at(version, {name: [one]}, acks)), f"{name}: {one[:61].hex()}"
    several: dict[str, list[bytes | None]] = {"bounded": [made[0], made[1], made[-1]], "open": [made[2]]}
    assert both_paths.validate(*_at(version, several, acks))

    _told(f"ordinary, v{version}, acks={acks}", both_paths)
    assert both_paths.counts[GOOD] == 4 * len(made) + 1


def _at(
    version: int, topics: dict[str, list[bytes | None]], acks: int = -1, now: int = NOW
) -> tuple[bytearray, int, int, int]:
    frame, body_at = _request(version, topics, acks)
    return frame, version, body_at, now


@pytest.mark.parametrize(
    ("cases", "count"),
    [
        (good_structures, 6000),
        (damaged_payloads, 4000),
        (damaged_compression, 1500),
        (damage_in_one_of_several_steps, 60),
    ],
)
def test_the_fast_path_agrees_on_batches_of_the_kafka_comparison(cases: Cases, count: int) -> None:
    good = total = 0
    for number, case in enumerate(cases(random.Random(1), count)):
        both_paths = BothPaths({"t": case.policy}, {bytes(16): "t"}, ValidationLimits())
        frame = bytearray(sized_produce_request(13, {bytes(16): [(0, case.data)]})[4:])
        good += both_paths.validate(frame, 13, len(request_header(0, 13)), NOW)
        total += 1
        assert number < count
    print(f"{cases.__name__}: {total:,}, good on the fast path {good:,}")
    assert 0 < good < total


@pytest.mark.parametrize(
    "version", [v if v in _DIFFERENT else pytest.param(v, marks=pytest.mark.long) for v in _VERSIONS]
)
def test_the_fast_path_agrees_on_the_conformance_cases(version: int, both_paths: BothPaths) -> None:
    for one in seed_batches(NOW):
        for name in _POLICIES:
            both_paths.validate(*_at(version, {name: [one]}))
        both_paths.validate(*_at(version, {"bounded": [good_batch(NOW), one], "nobody taught": [one]}))
    _told(f"conformance, v{version}", both_paths)
    assert both_paths.counts[GOOD] > 0 if version >= 3 else both_paths.counts[GOOD] == 0


@pytest.mark.long
def test_the_fast_path_agrees_on_mutated_requests(both_paths: BothPaths) -> None:
    chance = random.Random(os.environ.get("SLUICEGATE_FUZZ_SEED", "20261122"))
    seeds = [
        (frame, version, body_at)
        for version in range(3, 14)
        for one in _small((*_ordinary_batches(chance), *_batches_for_rules(chance)))
        for name in _POLICIES
        for frame, body_at in [_request(version, {name: [one], "open": [good_batch(NOW)]}, chance.choice((-1, 0, 1)))]
    ]
    others = [bytes(frame) for frame, _, _ in seeds[::50]]
    for _ in range(_MUTATED):
        frame, version, body_at = chance.choice(seeds)
        both_paths.validate(mutate(frame, chance, others), version, body_at, NOW)
    _told("mutated", both_paths)
    assert both_paths.counts[GOOD] > _MUTATED / 100 and both_paths.counts[RIGHTLY] > _MUTATED / 100


def _small(made: Iterable[bytes]) -> list[bytes]:
    return [one for one in made if len(one) < 3000]


def test_the_fast_path_agrees_on_timestamps_at_every_bound(both_paths: BothPaths) -> None:
    edges = [NOW - _DAY, NOW + _HOUR, NOW, NOW + _HOUR + 1, NOW - _DAY - 1, 0, -1, -2, 2**63 - 1, -(2**63), NOW - 2**63]
    for time in edges:
        for name in _POLICIES:
            for codec in CODECS.values():
                both_paths.validate(*_at(13, {name: [batch([Rec(time), Rec(NOW)], codec)]}))
                both_paths.validate(*_at(13, {name: [batch([Rec(NOW), Rec(time)], codec)]}))
    _told("edges", both_paths)
    assert both_paths.counts[GOOD] > 0 and both_paths.counts[RIGHTLY] > 0


def test_the_fast_path_agrees_on_native_rules(both_paths: BothPaths) -> None:
    for one in _batches_for_rules(random.Random(1)):
        for name in _ASKED_NATIVELY:
            for version in (9, 13):
                both_paths.validate(*_at(version, {name: [one, good_batch(NOW)]}))
    _told("rules", both_paths)
    assert both_paths.counts[GOOD] > 100 and both_paths.counts[RIGHTLY] > 100
    assert both_paths.counts[FALLS_BACK] < both_paths.counts[GOOD] / 4


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("keyed", b"\xff"),
        ("text", "é".encode()),
        ("seen", b""),
        ("json", _values()[0]),
        ("schema", _values()[0]),
        ("avro", _values()[9]),
    ],
)
def test_records_that_follow_ordinary_rules_stay_on_the_fast_path(
    name: str, value: bytes, codec: str, both_paths: BothPaths
) -> None:
    records = [Rec(NOW - i, b"k%d" % i, value) for i in range(30)]
    with_headers = [Rec(NOW - i, b"k%d" % i, value, [(b"name", b"v"), (b"n", None)]) for i in range(30)]

    for one in (batch(records, CODECS[codec]), batch(with_headers, CODECS[codec])):
        assert both_paths.validate(*_at(9, {name: [one]}))
        assert both_paths.validate(*_at(13, {name: [one, one], "open": [one]}))


@pytest.mark.parametrize("name", ["headed", "once", "asked"])
def test_topics_with_non_native_rules_always_fall_back(name: str, both_paths: BothPaths) -> None:
    good = good_batch(NOW)
    for version in range(3, 14):
        assert not both_paths.validate(*_at(version, {"open": [good], name: [good]}))
        assert both_paths.validate(*_at(version, {"open": [good, good]}))


def test_a_transactional_id_that_is_not_utf_8_falls_back(both_paths: BothPaths) -> None:
    """Regression: found by the long form of this test."""
    frame, body_at = _request(9, {"open": [good_batch(NOW)]})
    frame[body_at : body_at + 1] = b"\x04ab\xff"

    assert not both_paths.validate(frame, 9, body_at, NOW)

    frame[body_at + 3] = ord("c")
    assert both_paths.validate(frame, 9, body_at, NOW)


def test_stricter_bounds_of_the_file_apply_on_both_paths() -> None:
    few = BothPaths(_POLICIES, _IDS, ValidationLimits(), max_partitions=4)
    assert few.validate(*_at(9, {"open": [good_batch(NOW)] * 3}))
    assert not few.validate(*_at(9, {"open": [good_batch(NOW)] * 4}))

    little = BothPaths(_POLICIES, _IDS, ValidationLimits(max_decompressed_bytes=10_000))
    zeros = [batch([Rec(NOW, b"k", bytes(size))], CODECS["lz4"]) for size in (5_000, 20_000)]
    assert little.validate(*_at(9, {"open": [zeros[0]]}))
    assert not little.validate(*_at(9, {"open": [zeros[1]]}))


def test_records_and_headers_are_counted_over_all_of_a_request_in_both_paths() -> None:
    limited = BothPaths(_POLICIES, _IDS, ValidationLimits(max_request_records=6, max_request_headers=8))
    headers = [(b"h", b"v")] * 2
    two_with_four = [batch([Rec(NOW, b"k", b"v", headers)] * 2, CODECS[codec]) for codec in ("none", "gzip", "lz4")]
    without = batch([Rec(NOW, b"k")] * 2, CODECS["lz4"])

    assert limited.validate(*_at(9, {"open": two_with_four[:2]}))
    assert limited.validate(*_at(9, {"open": [two_with_four[0], two_with_four[2]]}))
    assert limited.validate(*_at(9, {"open": [*two_with_four[1:], without]}))
    assert not limited.validate(*_at(9, {"open": two_with_four}))
    assert not limited.validate(*_at(9, {"open": [*two_with_four[1:], without, batch([Rec(NOW, b"k")])]}))


def test_a_topic_name_equal_to_a_topic_id_is_not_confused_with_it() -> None:
    strict = TopicPolicy(before_max_ms=0, after_max_ms=0)
    an_id = b"sixteen-bytes-id"
    both_paths = BothPaths({"strict": strict, an_id.decode(): TopicPolicy()}, {an_id: "strict"}, ValidationLimits())
    late = batch([Rec(NOW - 5)])

    by_name = bytearray(sized_produce_request(9, {an_id: [(0, late)]})[4:])
    assert both_paths.validate(by_name, 9, len(request_header(0, 9)), NOW)
    by_id = bytearray(sized_produce_request(13, {an_id: [(0, late)]})[4:])
    assert not both_paths.validate(by_id, 13, len(request_header(0, 13)), NOW)
