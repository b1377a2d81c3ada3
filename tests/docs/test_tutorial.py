"""docs/tutorial.md, followed literally in an empty folder: all that there is of the project is its wheel."""

import os
from pathlib import Path

import pytest

from tests.docs.blocks import blocks_of
from tests.docs.walk import Reader
from tests.oracle.kafka_java import ROOT
from tests.packaging.built import source_in, wheel_of

pytestmark = pytest.mark.long


def test_the_tutorial_works_in_an_empty_folder_without_a_compiler(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wheel is SLUICEGATE_WHEEL, as of a release, or one without compiled modules."""
    given = os.environ.get("SLUICEGATE_WHEEL")
    wheel = Path(given).resolve() if given else wheel_of(source_in(tmp_path_factory.mktemp("source")))
    places = [str(wheel.parent), *os.environ.get("PIP_FIND_LINKS", "").split()]
    monkeypatch.setenv("PIP_FIND_LINKS", " ".join(places))
    monkeypatch.setenv("CC", "false")
    reader = Reader(tmp_path, "127.0.0.1:9092", furnished=False)
    try:
        for block in blocks_of(ROOT / "docs" / "tutorial.md"):
            reader.follow(block)
    finally:
        reader.stop()
