"""Reads files that the configuration names and that may change at run time: certificates, keys, passwords, tokens.

If such a file is missing or unreadable (an unmounted volume, a wrong owner, a hanging file system), its last content is
used until the file is readable again. The contents stay in memory until the process ends. A worker that starts later
receives them from its supervisor, so that it can start without the file, too.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from sluicegate.config.disk.regular_file import read_file

ReadContent = Callable[[Path, int], bytes]
"""Reads a file up to a number of bytes, plus one if it is larger. Raises OSError."""

_contents: dict[Path, bytes] = {}


def read_current(path: Path, most_bytes: int) -> bytes:
    """Return a file's current content. Raises OSError, like `read_file`."""
    content = _contents[path] = read_file(path, most_bytes)
    return content


def read_kept(path: Path, most_bytes: int) -> bytes:
    """Return a file's content, or its last content while the file is missing or unreadable.

    Raises OSError if there is no last content.
    """
    try:
        return read_current(path, most_bytes)
    except OSError:
        kept = _contents.get(path)
        if kept is None:
            raise
        return kept


def kept_contents() -> dict[Path, bytes]:
    """Return each file's last content."""
    return dict(_contents)


def adopt_contents(contents: Mapping[Path, bytes]) -> None:
    """Keep the contents that another process has read, except for files that this process has read itself."""
    for path, content in contents.items():
        _contents.setdefault(path, content)
