"""`make bench-instructions`: instructions of validation and resident memory, which do not depend on the machine's load.

Compares both with bench/baseline.json, as tests/bench does in `.ci/run`. Callgrind counts a fixed set of batches and
requests (bench/instruction_cases.py) in one process. Run: python -m bench.instructions [--write]. A new baseline is a
commit of its own, with its reason.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import IO

from bench import baseline, memory
from bench.counters import Callgrind
from bench.ending import end_on_sigterm

_REPETITIONS, _REPETITIONS_OF_CHEAP = 20, 200
_CHEAP = ("validate one record", "request and answer", "request and answer, JSON rule")


def count() -> dict[str, float]:
    """Return the instructions for one repetition of each case. Raises RuntimeError if a case fails."""
    with tempfile.TemporaryDirectory() as folder:
        callgrind = Callgrind(Path(folder))
        # Hashes and small allocations are the same in each run.
        environment = os.environ | callgrind.environment | {"PYTHONHASHSEED": "0", "PYTHONMALLOC": "pymalloc"}
        command = [*callgrind.prefix, sys.executable, "-m", "bench.instruction_cases"]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, env=environment, text=True, stdin=pipe, stdout=pipe) as process:
            assert process.stdin is not None and process.stdout is not None
            try:
                return _count(callgrind, process.pid, process.stdin, process.stdout)
            finally:
                process.kill()


def _count(callgrind: Callgrind, pid: int, requests: IO[str], answers: IO[str]) -> dict[str, float]:
    def repeat(name: str, repetitions: int) -> None:
        requests.write(f"{name}\t{repetitions}\n")
        requests.flush()
        _wait_for("done", answers)

    counted = {}
    for name in _wait_for("cases:", answers).split("\t")[1:]:
        repetitions = _REPETITIONS_OF_CHEAP if name in _CHEAP else _REPETITIONS
        few = callgrind.count(pid, partial(repeat, name, repetitions))
        many = callgrind.count(pid, partial(repeat, name, 3 * repetitions))
        counted[name] = (many - few) / (2 * repetitions)  # without the preparation of the case
        print(f"{name}: {counted[name]:,.0f} instructions", file=sys.stderr)
    return counted


def _wait_for(start: str, answers: IO[str]) -> str:
    """Return the next line with this start; others are the proxy's log."""
    for line in answers:
        if line.startswith(start):
            return line.rstrip("\n")
    raise RuntimeError("bench.instruction_cases ended before its work was done")


def main() -> None:
    """Compare with the baseline, or write it."""
    end_on_sigterm()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="make these counts and sizes the baseline")
    arguments = parser.parse_args()
    counted, held = count(), memory.measure()
    if arguments.write:
        baseline.write(counted, held.above_python_mb)
        return
    before = baseline.read()
    if more := [*before.more_instructions(counted), *before.more_memory(held.above_python_mb)]:
        raise SystemExit("\n".join([*more, "More than bench/baseline.json allows. If that is meant: --write."]))
    print("within the margins of bench/baseline.json")


if __name__ == "__main__":
    main()
