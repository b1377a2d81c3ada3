"""Values of log lines and events made harmless: cut, with their true size, and without control characters.

Clients name themselves, their topics and their reasons; whatever they say is shown, but never more of it than a person
reads, and never as something that a terminal acts upon.
"""

from itertools import islice
from typing import Any

MAX_CHARACTERS = 1000
CLIENT_CHARACTERS = 256
_MAX_ITEMS = 20
_MAX_DEPTH = 4
_MAX_BITS = 128


class CutText(str):
    """A text that was cut; `whole` is how many characters it had. It may be cut again."""

    __slots__ = ("kept", "whole")
    kept: str
    whole: int


def cut(text: str, characters: int = CLIENT_CHARACTERS) -> str:
    """`text`, or its first `characters` and how many it really has."""
    if len(text) <= characters:
        return text
    kept, whole = (text.kept, text.whole) if isinstance(text, CutText) else (text, len(text))
    if len(kept) <= characters:
        return text
    shown = CutText(f"{kept[:characters]}… ({whole} characters)")
    shown.kept, shown.whole = kept[:characters], whole
    return shown


def bounded(value: Any, characters: int = MAX_CHARACTERS, depth: int = _MAX_DEPTH) -> Any:
    """A copy of `value` that JSON can hold and that is small: texts cut, at most 20 items of a collection."""
    if isinstance(value, str):
        return cut(value, characters)
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, int):
        bits = value.bit_length()
        return value if bits <= _MAX_BITS else f"a number of {bits} bits"
    if depth > 0 and isinstance(value, list | tuple | set | frozenset):
        kept = len(value) if len(value) <= _MAX_ITEMS + 1 else _MAX_ITEMS  # a list that was cut stays as it is
        items = [bounded(item, characters, depth - 1) for item in islice(value, kept)]
        return items if kept == len(value) else [*items, f"and {len(value) - kept} more"]
    if depth > 0 and isinstance(value, dict):
        return {
            str(bounded(key, characters, 0)): bounded(item, characters, depth - 1)
            for key, item in islice(value.items(), _MAX_ITEMS)
        }
    return cut(_words_for(value), characters)


def printable(text: str) -> str:
    """`text` with all that is no visible character (control, bidi, line and paragraph separators) as an escape."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def all_printable(value: Any) -> Any:
    """`bounded` values with every text in them printable."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list):
        return [all_printable(item) for item in value]
    if isinstance(value, dict):
        return {printable(key): all_printable(item) for key, item in value.items()}
    return value


def _words_for(value: Any) -> str:
    if isinstance(value, bytes | bytearray | memoryview):
        return f"{bytes(value[:MAX_CHARACTERS])!r}" + (f" ({len(value)} bytes)" if len(value) > MAX_CHARACTERS else "")
    try:
        return str(value)
    except Exception as error:  # whatever a value's own text raises, the line is written
        return f"a {type(value).__name__} without a text ({type(error).__name__})"
