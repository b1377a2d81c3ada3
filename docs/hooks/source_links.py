"""Links from a page to a file of the source, which the site does not hold, become the file's name."""

import re
from posixpath import dirname, join, normpath
from typing import Any

_LINK_UPWARDS = re.compile(r"\[`?([^\]`]+)`?\]\(((?:\.\./)+[^)#]*)[^)]*\)")


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Return the text of a page with links to sources. MkDocs calls this for each page before it makes HTML of it."""
    folder = dirname(page.file.src_uri)

    def shown(link: re.Match[str]) -> str:
        is_of_source = normpath(join(folder, link[2])).startswith("..")
        return f"`{link[1]}`" if is_of_source else link[0]

    return _LINK_UPWARDS.sub(shown, markdown)
