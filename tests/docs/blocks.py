"""The fenced blocks of the pages: commands, files, and expected output."""

import re
from dataclasses import dataclass
from pathlib import Path

from tests.oracle.kafka_java import ROOT

PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
EXTENSIONS = ROOT / "docs" / "extending.md"
"""The page whose blocks change the tree, so tests/docs/test_extensions.py applies them to a copy."""
_FENCED = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NAMED = re.compile(r"(?:#|//) ([\w./-]+\.(?:yaml|py|java|go|js|c|json|properties))$")
_OUTPUT = re.compile(r"\s*```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block. `shown`: the text block directly after it, which is the expected output."""

    page: str
    line: int
    language: str
    text: str
    shown: str | None

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def file(self) -> str | None:
        """Return the file name that the block's first line states, or None."""
        named = _NAMED.match(self.text.splitlines()[0])
        return named[1] if named else None

    @property
    def first_line(self) -> str:
        return self.text.splitlines()[0]


def blocks_of(page: Path) -> list[Block]:
    """Return the blocks in the page's order."""
    text, found = page.read_text(), []
    for fence in _FENCED.finditer(text):
        output = _OUTPUT.match(text, fence.end())
        line = text.count("\n", 0, fence.start()) + 1
        name = str(page.relative_to(ROOT))
        found.append(Block(name, line, fence[1].strip(), fence[2], output[1] if output else None))
    return found


BLOCKS = [block for page in PAGES if page != EXTENSIONS for block in blocks_of(page)]
