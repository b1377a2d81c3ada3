"""Parses a .properties file as `java.util.Properties.load` does.

It supports the same escapes, continuation lines, comments and separators. There is one difference: characters outside
ASCII are kept as decoded, whereas Kafka's tools read the file as ISO 8859-1.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_LINE_END = re.compile(r"\r\n|\r|\n")
_BLANKS = " \t\f"
_KEY = re.compile(r"(?:[^\\=: \t\f]|\\.)*", re.DOTALL)
_SEPARATOR = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.|$)", re.DOTALL)
_LETTERS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


@dataclass(frozen=True, slots=True)
class Property:
    """One setting. `line` is the number of its first line. `is_ascii` is true if the setting is
    pure ASCII in the file.
    """

    name: str
    value: str
    line: int
    is_ascii: bool


class MalformedProperty(Exception):
    """A line cannot be parsed. The message gives the line number, but quotes no part of the line."""


def properties_in(text: str) -> Iterator[Property]:
    """Yield the settings in order.

    If a key is repeated, its last setting applies. Raises MalformedProperty.
    """
    for line, logical in _logical_lines(text):
        key = _KEY.match(logical)
        assert key is not None  # the expression also matches an empty string
        value = _SEPARATOR.sub("", logical[key.end() :], count=1)
        yield Property(_unescaped(key[0], line), _unescaped(value, line), line, logical.isascii())


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield each line joined with its continuation lines. Skip comments and blank lines."""
    lines = enumerate(_LINE_END.split(text), 1)
    for number, line in lines:
        parts = [line.lstrip(_BLANKS)]
        if not parts[0] or parts[0][0] in "#!":
            continue
        while _is_continued(parts[-1]):
            parts[-1] = parts[-1][:-1]
            parts.append(next(lines, (0, ""))[1].lstrip(_BLANKS))
        yield number, "".join(parts)


def _is_continued(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _unescaped(text: str, line: int) -> str:
    """Return the text without escapes. A backslash that begins none of Java's escapes is dropped."""

    def character(escape: re.Match[str]) -> str:
        escaped = escape[1]
        if escaped == "u":
            raise MalformedProperty(f"line {line}: expected four hexadecimal digits after \\u")
        return chr(int(escaped[1:], 16)) if len(escaped) > 1 else _LETTERS.get(escaped, escaped)

    return _joined_surrogates(_ESCAPE.sub(character, text), line)


def _joined_surrogates(text: str, line: int) -> str:
    """Return the text with each surrogate pair replaced by its character."""
    try:
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise MalformedProperty(f"line {line}: a \\u escape is a lone surrogate (half of a character)") from None
