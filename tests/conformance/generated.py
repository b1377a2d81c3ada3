"""Generates random Produce requests in addition to the named cases, with any mix of records, headers, payloads,
partitions and topics.

Times are distances from now and at least seconds away from any bound, so that two sends are equivalent.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from tests.conformance.cases import ABSENT, AFTER_MAX, BEFORE_MAX, HOUR, LONG_MAX, LONG_MIN, TOPIC_KINDS, encode_records
from tests.conformance.pair import PARTITIONS, Request
from tests.wire.batches import CODECS, GZIP, LZ4, SNAPPY, XERIAL, ZSTD, Rec, batch, compress, message, wrapper

_MARGIN = 10_000
Times = Callable[[int], int]
Build = Callable[[int], bytes]


def _relative(offset: int) -> Times:
    return lambda now: now + offset


def _absolute(time_ms: int) -> Times:
    return lambda _now: time_ms


_GOOD = st.integers(-BEFORE_MAX + _MARGIN, AFTER_MAX - _MARGIN).map(_relative)
_TOO_OLD = st.integers(-BEFORE_MAX * 1000, -BEFORE_MAX - _MARGIN).map(_relative)
_TOO_NEW = st.integers(AFTER_MAX + _MARGIN, AFTER_MAX * 10_000).map(_relative)
_OTHER_UNITS: st.SearchStrategy[Times] = st.sampled_from(
    [lambda now: now // 1000, lambda now: now * 1000, lambda now: now * 1_000_000]
)
_ODD = st.sampled_from([-1, 0, 1, -2, LONG_MAX, LONG_MIN, LONG_MIN + HOUR]).map(_absolute)
_TIMES = st.one_of(*[_GOOD] * 8, _TOO_OLD, _TOO_NEW, _OTHER_UNITS, _ODD)
_SMALL = st.binary(max_size=12)


@dataclass(frozen=True)
class _Record:
    time: Times
    rest: Rec

    def record_at(self, now: int) -> Rec:
        return replace(self.rest, timestamp=self.time(now))


def _records(times: st.SearchStrategy[Times]) -> st.SearchStrategy[list[_Record]]:
    keys = st.one_of(*[st.just(b"k")] * 6, st.none(), _SMALL)
    headers = st.lists(st.tuples(_SMALL, st.none() | _SMALL), max_size=2).map(tuple)
    rest = st.builds(Rec, st.just(0), keys, st.none() | _SMALL | st.just(b"v" * 300), headers)
    return st.lists(st.builds(_Record, times, rest), min_size=1, max_size=6)


_CODECS = st.sampled_from(sorted(CODECS.values()))
_INT8, _INT16 = st.integers(-(2**7), 2**7 - 1), st.integers(-(2**15), 2**15 - 1)
_INT32, _INT64 = st.integers(-(2**31), 2**31 - 1), st.integers(LONG_MIN, LONG_MAX)
_LIES = st.one_of(
    st.fixed_dictionaries({"base_offset": st.sampled_from([1, -1, 7]) | _INT64}),
    st.fixed_dictionaries({"length": st.integers(-2, 120) | _INT32}),
    st.fixed_dictionaries({"leader_epoch": _INT32}),
    st.fixed_dictionaries({"magic": st.integers(-1, 4) | _INT8}),
    st.fixed_dictionaries({"crc": st.integers(0, 2**32 - 1)}),
    st.fixed_dictionaries({"attributes": st.integers(0, 0x1F) | st.integers(0, 0x7FFF)}).filter(
        lambda lie: not lie["attributes"] & 0x10
    ),
    st.fixed_dictionaries({"flags": st.sampled_from([0x08, 0x20, 0x28, 0x40])}),
    st.fixed_dictionaries({"last_offset_delta": st.integers(-2, 8) | _INT32}),
    st.fixed_dictionaries({"count": st.integers(-2, 8)}),
    st.fixed_dictionaries({"max_timestamp": st.sampled_from([-1, 0, LONG_MAX]) | _INT64}),
    st.fixed_dictionaries(
        {
            "producer_id": st.integers(-2, 3),
            "producer_epoch": st.integers(-1, 2),
            "base_sequence": st.integers(-2, 3),
        }
    ),
)


def _damaged(data: bytes, damage: tuple[str, int, int]) -> bytes:
    what, where, bits = damage
    at = where % max(1, len(data))
    match what:
        case "flip":
            return data[:at] + bytes(byte ^ bits for byte in data[at : at + 1]) + data[at + 1 :]
        case "cut":
            return data[:at]
        case "insert":
            return data[:at] + bytes([bits]) + data[at:]
        case _:
            return data + bytes([bits]) * (where % 20)


_DAMAGE = st.tuples(st.sampled_from(["flip", "cut", "insert", "append"]), st.integers(0, 2000), st.integers(1, 255))


@st.composite
def _batches(draw: st.DrawFn, codecs: st.SearchStrategy[int]) -> Build:
    records = draw(_records(_TIMES))
    codec = draw(codecs)
    lies: dict[str, Any] = draw(st.one_of(*[st.just({})] * 4, _LIES))
    damage = draw(st.one_of(*[st.none()] * 5, _DAMAGE))
    inside = draw(st.booleans())

    def build_records(now: int) -> bytes:
        made = [record.record_at(now) for record in records]
        if damage is None:
            return batch(made, codec, **lies)
        payload = encode_records(made, made[0].timestamp)
        if inside:  # invalid records, correctly compressed
            return batch(made, codec, payload=_damaged(payload, damage), **lies)
        return batch(made, codec, compressed=_damaged(compress(codec, payload), damage), **lies)

    return build_records


@st.composite
def _message_sets(draw: st.DrawFn) -> Build:
    magic = draw(st.sampled_from([0, 1]))
    times = draw(st.lists(_TIMES, min_size=1, max_size=4))
    key = draw(st.sampled_from([b"k", b"k", None]))
    codec = draw(st.sampled_from([0, 0, GZIP, SNAPPY, XERIAL, *([LZ4] if magic else [])]))
    crc = draw(st.sampled_from([None, None, None, 1]))

    def build_records(now: int) -> bytes:
        inner = [message(magic, b"v", key=key, timestamp=t(now), offset=i, crc=crc) for i, t in enumerate(times)]
        return b"".join(inner) if codec == 0 else wrapper(magic, inner, codec, timestamp=now)

    return build_records


@st.composite
def _contents(draw: st.DrawFn, version: int) -> Build:
    """Return a partition's records: mostly one batch, sometimes none, two, or a part."""
    if version < 3 and draw(st.integers(0, 2)):
        return draw(_message_sets())
    may_zstd = version >= 7 or draw(st.integers(0, 9)) == 0
    one = _batches(_CODECS if may_zstd else _CODECS.filter(lambda codec: codec != ZSTD))
    parts = draw(st.sampled_from([1] * 12 + [0, 2]))
    builds = [draw(one) for _ in range(parts)]
    cut = draw(st.one_of(*[st.none()] * 12, st.integers(0, 200)))
    return lambda now: b"".join(build(now) for build in builds)[:cut]


_INDEXES = st.one_of(*[st.integers(0, PARTITIONS - 1)] * 8, st.sampled_from([PARTITIONS, -1, 99]))
_KINDS = st.one_of(*[st.sampled_from(sorted(TOPIC_KINDS))] * 8, st.just(ABSENT))
_ACKS = st.sampled_from([-1] * 8 + [1] * 4 + [0, 7])


@st.composite
def random_requests(draw: st.DrawFn, versions: range) -> Request:
    """Return a random request of one of these versions for the current time."""
    now = time.time_ns() // 1_000_000
    version = draw(st.sampled_from(versions))
    partitions = st.lists(st.tuples(_INDEXES, _contents(version)), min_size=1, max_size=3)
    topics = draw(st.lists(st.tuples(_KINDS, partitions), min_size=1, max_size=3))
    built = [(kind, [(index, build(now)) for index, build in parts]) for kind, parts in topics]
    return Request(version, built, draw(_ACKS))
