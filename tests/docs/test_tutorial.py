"""docs/tutorial.md, followed literally in a fresh clone with only its own commands."""

import subprocess
from pathlib import Path

import pytest

from tests.docs.blocks import blocks_of
from tests.docs.walk import Reader
from tests.oracle.kafka_java import ROOT

pytestmark = pytest.mark.long


def test_the_tutorial_works_in_a_fresh_clone(tmp_path: Path) -> None:
    clone = tmp_path / "sluicegate"
    files = subprocess.check_output(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"], cwd=ROOT
    ).split(b"\0")
    for name in map(bytes.decode, filter(None, files)):
        source, target = ROOT / name, clone / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_symlink():
            target.symlink_to(source.readlink())
        elif source.exists():
            target.write_bytes(source.read_bytes())
            target.chmod(source.stat().st_mode)
    reader = Reader(clone, "127.0.0.1:9092", clone=True)
    try:
        for block in blocks_of(ROOT / "docs" / "tutorial.md"):
            reader.follow(block)
    finally:
        reader.stop()
