"""Judges one fixed batch again and again; run under callgrind by `bench.instructions`.

Run: python -m bench.judge_batches CODEC|one REPETITIONS.
"""

import sys

from protocol.records.allowance import Allowance
from protocol.records.compression import Decompressor
from tests.wire.batches import CODECS, NONE, Rec, batch
from validation.judge import Submission, judge_partition
from validation.policy import JudgementLimits, TopicPolicy
from validation.verdict import Accepted

_NOW_MS = 1_800_000_000_000
_RECORDS = 600


def main(what: str, repetitions: int) -> None:
    """Raises AssertionError unless the batch is good."""
    records = [
        Rec(_NOW_MS + i % 50, b"key%d" % i, (b'{"order":%d,' % i + b"abcdefghij" * 10)[:100]) for i in range(_RECORDS)
    ]
    data = batch(records[:1] if what == "one" else records, CODECS.get(what, NONE))
    submission = Submission("bench", 0, memoryview(bytearray(data)), 13)
    policy = TopicPolicy(before_max_ms=86_400_000, after_max_ms=3_600_000)
    limits, decompressor = JudgementLimits(), Decompressor()
    for _ in range(repetitions):
        allowance = Allowance(128 << 20, 1000, _go_on)
        verdict = judge_partition(submission, policy, limits, _NOW_MS, decompressor, allowance)
        assert isinstance(verdict, Accepted)


def _go_on() -> None:
    """Nobody else waits."""


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
