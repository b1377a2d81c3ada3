"""Lines for a person, whatever is in them and whatever the stream can show."""

import sys
from collections.abc import Iterable

from sluicegate.config.source import printable


def say_all(lines: Iterable[str]) -> None:
    """One line after the other."""
    for line in lines:
        say(line)


def say(text: str, err: bool = False) -> None:
    """A line."""
    stream = sys.stderr if err else sys.stdout
    encoding = getattr(stream, "encoding", None) or "utf-8"
    print(printable(text).encode(encoding, "backslashreplace").decode(encoding), file=stream, flush=True)
