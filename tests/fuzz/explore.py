"""Looks for bytes that do what must not be, led by coverage: `python -m tests.fuzz.explore TARGET --minutes 10`.

Needs atheris (`make fuzz MINUTES=n` installs it), which sees only Python: so it is run over the tree without its
compiled parts. What a run finds is kept in build/explored/TARGET; with --keep DIR the smallest inputs that reach all
that was reached are put into DIR/TARGET, as into tests/fuzz/explored/corpus.
"""

import argparse
import logging
import shutil
import sys
from pathlib import Path

import atheris
import structlog

with atheris.instrument_imports(include=["sluicegate"]):
    from tests.fuzz.explored.targets import CORPUS, TARGETS
from tests.oracle.kafka_java import ROOT

structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
_LONGEST_SECONDS = 20
_MOST_MEGABYTES = 2048
_MOST_BYTES = 4096


def main() -> None:
    """Ends with another code than 0 where a target raised, hung or took too much memory; libFuzzer says which bytes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--found", type=Path, default=ROOT / "build" / "explored", help="where is kept what is found")
    parser.add_argument("--keep", type=Path, help="make this corpus anew of what was found, and end")
    arguments = parser.parse_args()
    target = TARGETS[arguments.target]
    found = arguments.found / arguments.target
    found.mkdir(parents=True, exist_ok=True)
    for place, seed in enumerate(target.seeds()):
        (found / f"seed-{place}").write_bytes(seed)
    bounds = [f"-timeout={_LONGEST_SECONDS}", f"-rss_limit_mb={_MOST_MEGABYTES}", f"-artifact_prefix={found}/"]
    corpus = (arguments.keep or CORPUS) / arguments.target
    if arguments.keep:
        shutil.rmtree(corpus, ignore_errors=True)
    corpus.mkdir(parents=True, exist_ok=True)
    if arguments.keep:
        flags = ["-merge=1", f"-max_len={_MOST_BYTES}", *bounds, str(corpus), str(found)]
    else:
        flags = [
            f"-max_total_time={int(arguments.minutes * 60)}",
            "-print_final_stats=1",
            *bounds,
            str(found),
            str(corpus),
        ]
    atheris.Setup([sys.argv[0], *flags], target.run)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
