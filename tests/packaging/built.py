"""Builds an sdist and a wheel of this tree, in a separate folder and without a C compiler."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.oracle.kafka_java import ROOT

ROOMS = ("config", "dead_letters", "pipeline", "protocol", "proxy", "validation")
PARTS = ("Makefile", "scripts", "pyproject.toml", "setup.py", "README.md", "LICENSE", "sluicegate", *ROOMS)


def build_wheel(folder: Path, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Build an sdist and from it a wheel in `folder`/dist, with a compiler that always fails."""
    return subprocess.run(
        [sys.executable, "-m", "uv", "build", "--quiet", "--python", sys.executable, *options],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": "", "CC": "false", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def copy_and_build_source(folder: Path) -> Path:
    """Copy the tree and build it there. Existing output of Cython is copied, because Cython would write the same again
    in most of a minute.
    """
    for part in PARTS:
        if (ROOT / part).is_dir():
            ignored = shutil.ignore_patterns("*.so", "__pycache__")
            shutil.copytree(ROOT / part, folder / part, symlinks=True, ignore=ignored)
        else:
            shutil.copy2(ROOT / part, folder)
    done = build_wheel(folder)
    assert done.returncode == 0, done.stderr
    return folder


def wheel_of(source: Path) -> Path:
    """Return the wheel that was built in the folder."""
    (found,) = (source / "dist").glob("*.whl")
    return found
