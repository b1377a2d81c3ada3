"""The compiled and the interpreted scan give equal results."""

import importlib.machinery
import importlib.util
import random
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluicegate.protocol.records import scan as installed
from sluicegate.protocol.records.codecs.decompression_budget import DecompressionBudget
from sluicegate.protocol.records.scan import RehearsalCounter
from tests.wire.batches import Rec, record, varint

BASE = 1_800_000_000_000
U64 = 2**64


def interpreted_scan() -> ModuleType:
    """Return scan.py as interpreted code."""
    path = Path(installed.__file__).with_name("scan.py")
    loader = importlib.machinery.SourceFileLoader("interpreted_scan", str(path))
    spec = importlib.util.spec_from_loader("interpreted_scan", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


PLAIN = interpreted_scan()
both = pytest.mark.parametrize("scan", [installed, PLAIN], ids=["installed", "interpreted"])


def run(
    scan: Any,
    data: bytes,
    count: int,
    framed: bool = True,
    look_for: int = 0,
    before: int = 0,
    after: int = 0,
    keep: int = 1000,
) -> Any:
    earliest = -before % U64
    outcome, read, latest, bad = scan.scan_records(
        data, 0, len(data), count, framed, look_for, earliest, before + after, (-1 - BASE) % U64,
        (2**63 + before) % U64, None, DecompressionBudget(0, 0, lambda: None), keep,
    )  # fmt: skip
    return outcome, read, latest, (bad.kept, bad.count, bad.first_time) if bad is not None else None


def payload(*records: Rec) -> bytes:
    return b"".join(record(r, i, BASE) for i, r in enumerate(records))


@both
def test_scan_of_valid_records_reports_no_bad_record(scan: Any) -> None:
    data = payload(Rec(BASE), Rec(BASE + 5), Rec(BASE - 3))

    outcome, read, latest, bad = run(scan, data, 3, look_for=scan.OUT_OF_WINDOW, before=10, after=10)

    assert (outcome, read, bad) == (scan.WHOLE, 3, None)
    assert latest - 10 == 5


@both
def test_timestamps_at_the_bounds_of_the_window_are_accepted(scan: Any) -> None:
    data = payload(Rec(BASE - 10), Rec(BASE - 11), Rec(BASE + 20), Rec(BASE + 21), Rec(-1))

    _, _, _, bad = run(scan, data, 5, look_for=scan.OUT_OF_WINDOW, before=10, after=20)

    assert [(index, reason) for index, reason, *_ in bad[0]] == [(1, scan.OUT_OF_WINDOW), (3, scan.OUT_OF_WINDOW)]


@both
def test_scan_reports_null_keys_but_not_empty_keys(scan: Any) -> None:
    data = payload(Rec(BASE, key=None), Rec(BASE, key=b""), Rec(BASE, key=b"k", value=None))

    _, _, _, bad = run(scan, data, 3, look_for=scan.NULL_KEY)

    assert bad == ([(0, scan.NULL_KEY, 0, 0, -1, 1)], 1, None)


@both
def test_scan_reports_every_record_if_requested(scan: Any) -> None:
    _, _, _, bad = run(scan, payload(Rec(BASE), Rec(BASE + 1, key=None, value=b"xyz")), 2, look_for=scan.EVERY_RECORD)

    found = [(0, scan.EVERY_RECORD, 0, 0, 1, 1), (1, scan.EVERY_RECORD, 1, 1, -1, 3)]
    assert bad == (found, 2, found[0])


@both
def test_scan_distinguishes_surplus_missing_and_malformed_bytes(scan: Any) -> None:
    good = payload(Rec(BASE))
    assert run(scan, good + b"x", 1)[0] == scan.LEFT_OVER
    assert run(scan, good, 2)[0] == scan.RAN_OUT
    assert run(scan, good[:-1], 1)[0] == scan.BROKEN
    assert run(scan, good[:-1], 1, framed=False)[0] == scan.RAN_OUT
    assert run(scan, b"\xff" * 9, 1)[0] == scan.BAD_LENGTH
    assert run(scan, b"\xff" * 9, 1, framed=False)[0] == scan.BROKEN
    longer = varint(50) + good[1:]
    assert run(scan, longer, 1)[0] == scan.BROKEN
    assert run(scan, longer, 1, framed=False)[0] == scan.WHOLE


def test_compiled_and_interpreted_scan_agree() -> None:
    chance = random.Random(5)
    for _ in range(3000):
        records = [
            Rec(chance.choice((BASE, -1, 0, 2**63 - 1, -(2**63), BASE * 1000)), chance.choice((b"k", None)), b"v")
            for _ in range(chance.randrange(1, 4))
        ]
        data = bytearray(payload(*records))
        for _ in range(chance.choice((0, 1, 2))):
            data[chance.randrange(len(data))] = chance.choice((0, 1, 0x7F, 0x80, 0xFF))
        count = len(records) + chance.choice((0, 0, 1))
        arguments = (
            bytes(data),
            count,
            chance.random() < 0.5,
            chance.randrange(8),
            chance.choice((0, 10, 2**63 - 1)),
            5,
        )
        assert run(installed, *arguments) == run(PLAIN, *arguments), arguments


NOW = 1_800_000_000_000
MIN, MAX = -(2**63), 2**63 - 1
TIMES = st.one_of(
    st.integers(MIN, MAX),
    st.integers(NOW - 200, NOW + 200),
    st.sampled_from([MIN, MAX, 0, -1, NOW - 2**63, NOW + 2**63 - 1 - 2**64 + 2**63]),
).filter(lambda time: MIN <= time <= MAX)
BOUNDS = st.one_of(st.integers(0, 150), st.sampled_from([MAX, MAX - 1]))


def wrap_int64(value: int) -> int:
    """Return the value as an int64 that wraps around."""
    return (value + 2**63) % 2**64 - 2**63


def is_rejected_by_kafka(time: int, before: int, after: int) -> bool:
    """Return whether LogValidator.validateTimestamp of Kafka 4 rejects a time: `now - time > before || time - now >
    after`, in longs that wrap."""
    return wrap_int64(NOW - time) > before or wrap_int64(time - NOW) > after


@settings(max_examples=300)
@given(
    times=st.lists(TIMES, min_size=1, max_size=20),
    base=TIMES,
    before=BOUNDS,
    after=BOUNDS,
    befores=st.lists(BOUNDS, max_size=3),
    afters=st.lists(BOUNDS, max_size=3),
)
def test_each_rehearsed_bound_counts_its_rejections(
    times: list[int], base: int, before: int, after: int, befores: list[int], afters: list[int]
) -> None:
    rehearsal = RehearsalCounter(before, after, befores, afters)
    rehearsal.begin(NOW, base)

    found = [rehearsal.rejects((time - base) % 2**64) for time in times]

    assert found == [is_rejected_by_kafka(time, before, after) for time in times]
    assert rehearsal.counts == tuple(
        [
            sum(is_rejected_by_kafka(time, bound, MAX) and wrap_int64(NOW - time) > bound for time in times)
            for bound in befores
        ]
        + [sum(wrap_int64(time - NOW) > bound for time in times) for bound in afters]
    )


def test_rehearsal_reports_largest_future_distance_of_accepted_records() -> None:
    rehearsal = RehearsalCounter(100, 100, [], [10])
    rehearsal.begin(NOW, NOW)

    for ahead in (20, 90, 150, -90):
        rehearsal.rejects(ahead % 2**64)

    assert rehearsal.ahead_ms == 90
    assert rehearsal.counts == (3,)
