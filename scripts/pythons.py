#!/usr/bin/env python3
"""Runs the tests that need no broker on each supported Python that this machine has, each in an environment in .pythons.

scripts/pythons.py [--short] [--write] [VERSION ...]

Without versions: each of 3.11 to 3.14 that is found, as python3.N, below ~/.pyenv, or by uv. `--short` runs the protocol, the
rules and both paths alone. `--write` writes the table of docs/compatibility.md.
"""

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

SUPPORTED = ("3.11", "3.12", "3.13", "3.14")
SHORT = ["tests/protocol", "tests/validation", "tests/two_paths"]
WHOLE = ["tests/structure", "tests/proxy", *SHORT, "tests/config", "tests/docs/test_policies.py"]
PAGE = Path("docs/compatibility.md")
MARKERS = re.compile(r"(<!-- pythons -->\n).*?(\n<!-- /pythons -->)", re.DOTALL)
UV = os.environ.get("UV", ".venv/bin/uv")
ABOUT = "import platform, sys; print(platform.python_version(), getattr(sys, '_is_gil_enabled', lambda: True)())"


def interpreter_of(version: str) -> str | None:
    """Return the path of a Python that starts, or None."""
    places = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python3"), reverse=True)
    uvs = subprocess.run([UV, "python", "find", "--no-project", version], capture_output=True, text=True, check=False)
    for place in (shutil.which(f"python{version}"), *map(str, places), uvs.stdout.strip()):
        if place and about(place).startswith(f"{version}."):
            return place
    return None


def about(python: str) -> str:
    """Return the full version and whether it has a global interpreter lock; nothing if it does not start."""
    return subprocess.run([python, "-c", ABOUT], capture_output=True, text=True, check=False).stdout.strip()


def run_tests(version: str, python: str, folders: list[str]) -> dict[str, object]:
    """Make the environment, compile the hot path, and run the tests. If there is no environment, no test has run."""
    environment = Path(".pythons", version)
    variables = {"UV_PROJECT_ENVIRONMENT": str(environment), "SLUICEGATE_COMPILED": "required"}
    extras = [word for extra in ("demo", "rules", "protovalidate", "otel", "aws") for word in ("--extra", extra)]
    made = subprocess.run(
        [UV, "sync", "--quiet", "--frozen", "--reinstall-package", "sluicegate", "--python", python, *extras],
        env=os.environ | variables,
        check=False,
    )
    if made.returncode:
        return {"python": about(python).split()[0], "counts": {}, "seconds": 0, "passed": False}
    started = time.monotonic()
    bin_path = f"{(environment / 'bin').absolute()}:{os.environ['PATH']}"
    processes = os.environ.get("TEST_PROCESSES", "2")
    done = subprocess.run(
        [environment / "bin/python", "-m", "pytest", "-q", "-n", processes, "--dist", "loadfile", *folders,
         "-m", "not long", *os.environ.get("PYTEST_ARGS", "").split()],
        env={**os.environ, "PATH": bin_path}, stdout=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    print(done.stdout, flush=True)
    counts = dict(
        (kind, int(number)) for number, kind in re.findall(r"(\d+) (passed|failed|skipped|error)", done.stdout)
    )
    full, has_lock = about(str(environment / "bin/python")).split()
    return {
        "python": full,
        "has_lock": has_lock == "True",
        "counts": counts,
        "seconds": round(time.monotonic() - started),
        "passed": done.returncode == 0,
    }


def table(results: list[dict[str, object]], folders: list[str]) -> str:
    """Return the table of the page."""
    rows = ["| Python | passed | failed | skipped | time |", "|---|---|---|---|---|"]
    for result in results:
        counts = result["counts"]
        assert isinstance(counts, dict)
        failed = counts.get("failed", 0) + counts.get("error", 0)
        if not counts:
            rows.append(f"| {result['python']} | could not be installed | | | |")
            continue
        rows.append(
            f"| {result['python']} | {counts.get('passed', 0)} | {failed} | {counts.get('skipped', 0)} | {result['seconds']} s |"
        )
    date = datetime.now(UTC).date().isoformat()
    names = " ".join(folders)
    return f"On {date} these tests ran on {platform.system()} {platform.machine()}: `{names}`.\n\n" + "\n".join(rows)


def main(arguments: list[str]) -> None:
    folders = SHORT if "--short" in arguments else WHOLE
    named = [argument for argument in arguments if not argument.startswith("--")]
    if "UV" not in os.environ and not Path(UV).exists():
        subprocess.run(["scripts/environment", "uv"], check=True)
    found = {version: interpreter_of(version) for version in named or SUPPORTED}
    results = []
    for version, python in found.items():
        if python is None:
            print(f"Python {version} is not on this machine", flush=True)
            continue
        print(f"Python {version}: {python}", flush=True)
        results.append(run_tests(version, python, folders))
    Path("build").mkdir(exist_ok=True)
    Path("build/pythons.json").write_text(json.dumps(results, indent=1))
    if "--write" in arguments and PAGE.exists():
        shown = table(results, folders)
        PAGE.write_text(MARKERS.sub(lambda old: old[1] + shown + old[2], PAGE.read_text()))
    failed = [str(result["python"]) for result in results if not result["passed"]]
    missing = [version for version in named if found[version] is None]
    if failed or missing or not results:
        sys.exit(f"failed: {', '.join(failed) or 'none'}; not on this machine: {', '.join(missing) or 'none'}")


main(sys.argv[1:])
