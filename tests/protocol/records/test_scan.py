"""The scan, compiled and interpreted: the same file has to say the same."""

import importlib.machinery
import importlib.util
import random
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from sluicegate.protocol.records import scan as installed
from sluicegate.protocol.records.codecs.decompression_budget import Allowance
from tests.wire.batches import Rec, record, varint

BASE = 1_800_000_000_000
U64 = 2**64


def interpreted() -> ModuleType:
    """scan.py itself, whatever was compiled from it."""
    path = Path(installed.__file__).with_name("scan.py")
    loader = importlib.machinery.SourceFileLoader("interpreted_scan", str(path))
    spec = importlib.util.spec_from_loader("interpreted_scan", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


PLAIN = interpreted()
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
        (2**63 + before) % U64, None, Allowance(0, 0, lambda: None), keep,
    )  # fmt: skip
    return outcome, read, latest, (bad.kept, bad.count, bad.first_time) if bad is not None else None


def payload(*records: Rec) -> bytes:
    return b"".join(record(r, i, BASE) for i, r in enumerate(records))


@both
def test_good_records(scan: Any) -> None:
    data = payload(Rec(BASE), Rec(BASE + 5), Rec(BASE - 3))

    outcome, read, latest, bad = run(scan, data, 3, look_for=scan.OUT_OF_WINDOW, before=10, after=10)

    assert (outcome, read, bad) == (scan.WHOLE, 3, None)
    assert latest - 10 == 5


@both
def test_the_window_is_inclusive(scan: Any) -> None:
    data = payload(Rec(BASE - 10), Rec(BASE - 11), Rec(BASE + 20), Rec(BASE + 21), Rec(-1))

    _, _, _, bad = run(scan, data, 5, look_for=scan.OUT_OF_WINDOW, before=10, after=20)

    assert [(index, reason) for index, reason, *_ in bad[0]] == [(1, scan.OUT_OF_WINDOW), (3, scan.OUT_OF_WINDOW)]


@both
def test_null_keys(scan: Any) -> None:
    data = payload(Rec(BASE, key=None), Rec(BASE, key=b""), Rec(BASE, key=b"k", value=None))

    _, _, _, bad = run(scan, data, 3, look_for=scan.NULL_KEY)

    assert bad == ([(0, scan.NULL_KEY, 0, 0, -1, 1)], 1, None)


@both
def test_every_record_can_be_asked_for(scan: Any) -> None:
    _, _, _, bad = run(scan, payload(Rec(BASE), Rec(BASE + 1, key=None, value=b"xyz")), 2, look_for=scan.EVERY_RECORD)

    found = [(0, scan.EVERY_RECORD, 0, 0, 1, 1), (1, scan.EVERY_RECORD, 1, 1, -1, 3)]
    assert bad == (found, 2, found[0])


@both
def test_outcomes(scan: Any) -> None:
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


def test_compiled_and_interpreted_agree_on_anything() -> None:
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
