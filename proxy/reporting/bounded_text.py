"""Makes values in log lines and events safe: truncates long strings and escapes control characters.

Names and reasons come from clients. They are shown with limited length, and never as terminal control sequences.
"""

from itertools import islice
from typing import Any

MAX_CHARACTERS = 1000
CLIENT_CHARACTERS = 256
_MAX_ITEMS = 20
_MAX_DEPTH = 4
_MAX_BITS = 128


class CutText(str):
    """A string that was truncated from `whole` characters, and may be truncated again."""

    __slots__ = ("kept", "whole")
    kept: str
    whole: int


def cut(text: str, characters: int = CLIENT_CHARACTERS) -> str:
    """Return `text`. If it is longer than `characters`, return its beginning followed by its full length."""
    if len(text) <= characters:
        return text
    kept, whole = (text.kept, text.whole) if isinstance(text, CutText) else (text, len(text))
    if len(kept) <= characters:
        return text
    shown = CutText(f"{kept[:characters]}… ({whole} characters)")
    shown.kept, shown.whole = kept[:characters], whole
    return shown


def bounded(value: Any, characters: int = MAX_CHARACTERS, depth: int = _MAX_DEPTH) -> Any:
    """Return a small copy of `value` for JSON, with strings truncated and at most 20 items in each collection."""
    if isinstance(value, str):
        return cut(value, characters)
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, int):
        bits = value.bit_length()
        return value if bits <= _MAX_BITS else f"a number of {bits} bits"
    if depth > 0 and isinstance(value, list | tuple | set | frozenset):
        kept = len(value) if len(value) <= _MAX_ITEMS + 1 else _MAX_ITEMS  # not truncated again
        items = [bounded(item, characters, depth - 1) for item in islice(value, kept)]
        return items if kept == len(value) else [*items, f"and {len(value) - kept} more"]
    if depth > 0 and isinstance(value, dict):
        return {
            str(bounded(key, characters, 0)): bounded(item, characters, depth - 1)
            for key, item in islice(value.items(), _MAX_ITEMS)
        }
    return cut(_text_of(value), characters)


def printable(text: str) -> str:
    """Return `text` with all invisible characters (control, bidi, line and paragraph separators) escaped."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def all_printable(value: Any) -> Any:
    """Apply `bounded`, and make every string in the result printable."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list):
        return [all_printable(item) for item in value]
    if isinstance(value, dict):
        return {printable(key): all_printable(item) for key, item in value.items()}
    return value


def _text_of(value: Any) -> str:
    if isinstance(value, bytes | bytearray | memoryview):
        return f"{bytes(value[:MAX_CHARACTERS])!r}" + (f" ({len(value)} bytes)" if len(value) > MAX_CHARACTERS else "")
    try:
        return str(value)
    except Exception as error:  # a failing __str__ must not lose the line
        return f"a {type(value).__name__} without a text ({type(error).__name__})"
