"""The in-process fuzzer on a copy of the tree compiled with AddressSanitizer and UndefinedBehaviorSanitizer.

`python -m tests.fuzz.sanitized --batches 10000000 --processes 2` updates build/asan (recompiling changed sources) and
exits with 1 as soon as one of the processes does.
"""

import argparse
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.oracle.kafka_java import ROOT

COPY = ROOT / "build" / "asan"
_FOLDERS = ("protocol", "validation", "config", "dead_letters", "proxy", "pipeline")
_MADE = (".c", ".so", ".pyc")
"""Build outputs beside the sources, which are not copied."""
_SANITIZERS = "-fsanitize=address,undefined"
# Undefined behaviour ends the process, as findings of AddressSanitizer do.
_FLAGS = f"{_SANITIZERS} -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g -O1"


def sanitizer_library() -> str | None:
    """Return gcc's AddressSanitizer library, or None."""
    if shutil.which("gcc") is None:
        return None
    found = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    file = Path(found.stdout.strip())
    return str(file) if file.is_absolute() and file.exists() else None


def build_with_sanitizers() -> None:
    """Update the copy and compile changed modules."""
    COPY.mkdir(parents=True, exist_ok=True)
    for folder in _FOLDERS:
        _mirror(ROOT / folder, COPY / "sluicegate" / folder)
    _mirror(ROOT / "tests", COPY / "tests")
    for name in ("sluicegate/__init__.py", "setup.py", "pyproject.toml", "README.md"):
        _copy_if_newer(ROOT / name, COPY / name)
    flags = {"CFLAGS": _FLAGS, "LDFLAGS": _SANITIZERS, "PYTHONPATH": str(COPY)}
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    subprocess.run(command, cwd=COPY, env=os.environ | flags, check=True)


def _mirror(source: Path, copy: Path) -> None:
    for file in sources_in(source):
        _copy_if_newer(file, copy / file.relative_to(source))


def sources_in(folder: Path) -> Iterator[Path]:
    """Return the files to copy: code and the data that it reads."""
    return (file for file in folder.rglob("*") if file.is_file() and file.suffix not in _MADE)


def _copy_if_newer(file: Path, copy: Path) -> None:
    if not copy.exists() or copy.read_bytes() != file.read_bytes():
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)


def run(batches: int, processes: int, seed: int) -> int:
    """Return the highest exit code of all processes; each prints its count and seed."""
    library = sanitizer_library()
    assert library is not None
    environment = os.environ | {
        "LD_PRELOAD": library,
        "PYTHONMALLOC": "malloc",
        "ASAN_OPTIONS": "detect_leaks=0:exitcode=99:quarantine_size_mb=32",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONPATH": str(COPY),
    }
    running = [
        subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tests.fuzz.in_process",
                "--batches",
                str(batches // processes),
                "--seed",
                str(seed + i),
            ],
            cwd=COPY,
            env=environment,
        )
        for i in range(processes)
    ]
    return max(abs(process.wait()) for process in running)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--batches", type=int, default=100_000)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    given = parser.parse_args()
    if sanitizer_library() is None:
        sys.exit("AddressSanitizer requires gcc and its libasan")
    build_with_sanitizers()
    sys.exit(min(run(given.batches, given.processes, given.seed), 255))


if __name__ == "__main__":
    main()
