"""Write measured tables into docs/performance.md and its appendix, between markers; the text around them stays."""

import re
from pathlib import Path

PAGE = Path(__file__).parent.parent / "docs" / "performance.md"
APPENDIX = PAGE.with_name("performance-history.md")


def fill_in(page: Path, name: str, text: str) -> None:
    """Replace the text between `<!-- name -->` and `<!-- /name -->`. Raises ValueError if the markers are missing."""
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
