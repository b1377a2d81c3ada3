"""`make bench-instructions`: how many instructions validation takes, which do not depend on the machine's load.

Counted by callgrind for a fixed set of batches and for one request through a session, and held against
bench/baseline.json. Run: python -m bench.instructions [--write]. A new baseline is written on purpose, with a reason.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

_BASELINE = Path(__file__).with_name("baseline.json")
_ALLOWED = 1.10
_TOTAL = re.compile(r"Collected : (\d+)")
# Two counts of repetitions each: the difference is free of imports and warm-up.
_CASES: dict[str, tuple[str, str, int, int]] = {
    **{
        f"validate {codec}": ("bench.validate_batches", codec, 20, 60)
        for codec in ("none", "gzip", "snappy", "lz4", "zstd")
    },
    "validate one record": ("bench.validate_batches", "one", 2000, 6000),
    "validate one record, slow path": ("bench.validate_batches", "slow", 2000, 6000),
    "request and answer": ("bench.one_session", "good", 2000, 6000),
    "rejected request and answer": ("bench.one_session", "rejected", 500, 1500),
}


def instructions_of(module: str, argument: str, repetitions: int) -> int:
    """Instructions of a whole run of a module. Raises RuntimeError when it fails."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", sys.executable, "-m", module]
        command += [argument, str(repetitions)]
        environment = os.environ | {"PYTHONHASHSEED": "0", "PYTHONMALLOC": "pymalloc"}
        completed = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    found = _TOTAL.search(completed.stderr)
    if completed.returncode != 0 or found is None:
        raise RuntimeError(f"{module} failed under callgrind:\n{completed.stderr[-2000:]}")
    return int(found[1])


def count() -> dict[str, int]:
    """Instructions for one repetition of each case."""
    counted = {}
    for name, (module, argument, few, many) in _CASES.items():
        difference = instructions_of(module, argument, many) - instructions_of(module, argument, few)
        counted[name] = round(difference / (many - few))
        print(f"{name}: {counted[name]:,} instructions", file=sys.stderr)
    return counted


def main() -> None:
    """Compare with the baseline, or write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="make these counts the baseline")
    arguments = parser.parse_args()
    counted = count()
    if arguments.write:
        _BASELINE.write_text(json.dumps(counted, indent=1) + "\n")
        return
    baseline = json.loads(_BASELINE.read_text())
    worse = {name: counted[name] / baseline[name] for name in counted if counted[name] > _ALLOWED * baseline[name]}
    for name, ratio in worse.items():
        print(f"{name}: {ratio:.2f} times the baseline of {baseline[name]:,} instructions")
    if worse:
        raise SystemExit("More instructions than bench/baseline.json allows (10 %). If that is meant: --write.")
    print("within 10 % of bench/baseline.json")


if __name__ == "__main__":
    main()
