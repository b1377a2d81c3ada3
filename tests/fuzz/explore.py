"""Coverage-guided fuzzing: `python -m tests.fuzz.explore TARGET --minutes 10`.

Requires atheris (`make fuzz MINUTES=n` installs it), which instruments only Python, so it runs on the tree without
compiled modules. Inputs that reach new code are stored in build/explored/TARGET; --keep DIR packs the smallest of them
into DIR/TARGET.zip, as in tests/fuzz/explored/corpus.
"""

import argparse
import logging
import sys
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import atheris
import structlog

with atheris.instrument_imports(include=["sluicegate"]):
    from tests.fuzz.explored.targets import TARGETS, stored_corpus
from tests.oracle.kafka_java import ROOT

structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
_LONGEST_SECONDS = 20
_MOST_MEGABYTES = 2048
_MOST_KEPT_BYTES = 64 * 1024
_SEED = "seed-"


def main() -> None:
    """Exit with a code other than 0 if a target raised, hung or used too much memory; libFuzzer prints the input."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--found", type=Path, default=ROOT / "build" / "explored", help="folder of the inputs found")
    parser.add_argument("--keep", type=Path, help="rebuild this corpus from the inputs found, and exit")
    arguments = parser.parse_args()
    target = TARGETS[arguments.target]
    found = arguments.found / arguments.target
    found.mkdir(parents=True, exist_ok=True)
    if arguments.keep is not None:
        pack_smallest_inputs(found, arguments.keep / f"{arguments.target}.zip")
        return
    for place, seed in enumerate(target.seeds()):
        (found / f"{_SEED}{place}").write_bytes(seed)
    for name, data in stored_corpus(arguments.target).items():
        (found / name).write_bytes(data)
    bounds = [f"-timeout={_LONGEST_SECONDS}", f"-rss_limit_mb={_MOST_MEGABYTES}", f"-artifact_prefix={found}/"]
    time = [f"-max_total_time={int(arguments.minutes * 60)}", "-print_final_stats=1"]
    atheris.Setup([sys.argv[0], *time, *bounds, str(found)], target.run)
    atheris.Fuzz()


def pack_smallest_inputs(found: Path, packed: Path) -> None:
    """Pack the smallest inputs that reached new code; the same inputs give the same file."""
    left = _MOST_KEPT_BYTES
    with ZipFile(packed, "w", ZIP_DEFLATED) as archive:
        for file in sorted(found.iterdir(), key=lambda file: (file.stat().st_size, file.name)):
            left -= file.stat().st_size
            if left >= 0 and not file.name.startswith(_SEED):
                archive.writestr(ZipInfo(file.name), file.read_bytes(), ZIP_DEFLATED)


if __name__ == "__main__":
    main()
