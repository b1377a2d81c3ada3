"""Links from a page to a file of the source, which the site does not hold, become the file's name."""

import re
from typing import Any

_TO_SOURCE = re.compile(r"\[`?([^\]`]+)`?\]\((?:\.\./)+(?!docs/)[^)]*\)")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """What mkdocs calls for each page before it makes HTML of it."""
    return _TO_SOURCE.sub(r"`\1`", markdown)
