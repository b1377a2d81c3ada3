"""Defines the fixed work that `bench.instructions` counts: batches, requests through a session, and a yardstick.

This program runs under callgrind. It writes the names of the cases in one line, separated by tabs. Then it reads lines
with a name and a number of repetitions, and writes `done` after each.
"""

import asyncio
import gc
import sys
from collections.abc import Callable

from bench import validate_batches
from bench.baseline import YARDSTICK
from bench.one_session import OneSession
from bench.python_yardstick import interpret

Repeat = Callable[[int], None]


def instruction_cases() -> dict[str, Repeat]:
    """Return a function for each case that repeats its work; bench/baseline.json contains the same names."""
    codecs = ("none", "gzip", "snappy", "lz4", "zstd")
    return {
        YARDSTICK: interpret,
        **{f"validate {codec}": validate_batches.repeated_validation(codec) for codec in codecs},
        "validate one record": validate_batches.repeated_validation("one"),
        "validate one record, slow path": validate_batches.repeated_validation("slow"),
        "request and answer": OneSession().run,
        "request and answer, JSON rule": OneSession({"RULES": "[{name: body, value: {json: {}}}]"}).run,
        "rejected request and answer": OneSession().run_rejected,
        "observed request and answer": OneSession({"MODE": "observe"}).run_observed,
    }


async def _serve() -> None:
    known = instruction_cases()
    for name in known:
        known[name](2)  # one-time work is not counted
    gc.collect()
    gc.disable()  # one garbage collection takes 400,000 instructions
    print("cases:", *known, sep="\t", flush=True)
    for line in sys.stdin:
        name, _, repetitions = line.rstrip("\n").partition("\t")
        known[name](int(repetitions))
        print("done", flush=True)


if __name__ == "__main__":
    asyncio.run(_serve())
