"""The fenced blocks of the pages: what a reader would type, write into a file, or see."""

import re
from dataclasses import dataclass
from pathlib import Path

from tests.oracle.kafka_java import ROOT

PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
_FENCED = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NAMED = re.compile(r"# ([\w./-]+\.(?:yaml|py|json|properties))$")
_BEHIND = re.compile(r"\s*```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    """One of them. `shown`: the text block right behind it, which is what the reader sees then."""

    page: str
    line: int
    language: str
    text: str
    shown: str | None

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def file(self) -> str | None:
        """The name of the file that it is, if its first line says so."""
        named = _NAMED.match(self.text.splitlines()[0])
        return named[1] if named else None

    @property
    def first_line(self) -> str:
        return self.text.splitlines()[0]


def blocks_of(page: Path) -> list[Block]:
    """In the page's order."""
    text, found = page.read_text(), []
    for fence in _FENCED.finditer(text):
        behind = _BEHIND.match(text, fence.end())
        line = text.count("\n", 0, fence.start()) + 1
        name = str(page.relative_to(ROOT))
        found.append(Block(name, line, fence[1].strip(), fence[2], behind[1] if behind else None))
    return found


BLOCKS = [block for page in PAGES for block in blocks_of(page)]
