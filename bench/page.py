"""Puts measured tables into docs/performance.md, between the marks that name them; the words around stay."""

import re
from pathlib import Path

PAGE = Path(__file__).parent.parent / "docs" / "performance.md"


def fill_in(page: Path, name: str, text: str) -> None:
    """Replace what stands between `<!-- name -->` and `<!-- /name -->`. Raises ValueError when they are not there."""
    before = page.read_text()
    after, found = re.subn(
        rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)",
        lambda marks: f"{marks[1]}\n{text.strip()}\n\n{marks[2]}",
        before,
        flags=re.DOTALL,
    )
    if found != 1:
        raise ValueError(f"{page} has no place for {name}")
    page.write_text(after)
