"""Native code checks its indices, except in files that explain at their top why no index can be out of range."""

import re
from pathlib import Path

import pytest

from tests.oracle.kafka_java import ROOT
from tests.structure.imports import PACKAGES

_UNCHECKED = re.compile(r"""\b(?:boundscheck|wraparound)["']?\s*[=:(]\s*False""")
_HEAD = re.compile(r"# cython: boundscheck=False, wraparound=False\n# Why that is safe: \S.{39,}\n")
_FILES = [
    path for package in PACKAGES for kind in ("*.py", "*.pyx", "*.pxd") for path in sorted((ROOT / package).rglob(kind))
]


def is_unchecked(text: str) -> bool:
    """Return whether the text disables index checks."""
    return _UNCHECKED.search(text) is not None


def explains_why(text: str) -> bool:
    """Return whether the first lines disable the checks and explain why that is safe."""
    return _HEAD.match(text) is not None


def test_a_file_without_index_checks_explains_why_in_its_first_lines() -> None:
    unchecked = [path for path in _FILES if is_unchecked(path.read_text())]

    assert ROOT / "protocol/records/scan.py" in unchecked, "no files were read"
    unexplained = [str(path.relative_to(ROOT)) for path in unchecked if not explains_why(path.read_text())]
    assert unexplained == [], "the first line is the directive, the next begins with `# Why that is safe: `"


def test_the_build_disables_no_index_checks() -> None:
    assert not is_unchecked(Path(ROOT, "setup.py").read_text())


@pytest.mark.parametrize(
    "text",
    [
        "# cython: boundscheck=False\n",
        "# cython: wraparound = False\n",
        "@cython.boundscheck(False)\n",
        "with cython.wraparound(False):\n",
        'DIRECTIVES = {"boundscheck": False}\n',
    ],
)
def test_each_way_to_disable_index_checks_is_found(text: str) -> None:
    assert is_unchecked(text)
    assert not explains_why(text)
