"""Finds the messages that a Protobuf source declares at its top level, without compiling it."""

import re
from collections.abc import Iterator
from typing import Final

_TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|(?P<word>[A-Za-z_][A-Za-z0-9_.]*)|(?P<sign>[{};])""",
    re.DOTALL,
)
_PACKAGE: Final = "package"
_MESSAGE: Final = "message"


def messages_in(text: str) -> list[str]:
    """Return the full names of a Protobuf source's top-level messages, in order."""
    package = ""
    depth = 0
    names = []
    before = ""
    for word in _words(text):
        if word in "{}":
            depth += 1 if word == "{" else -1
        elif depth == 0 and before == _PACKAGE:
            package = f"{word}."
        elif depth == 0 and before == _MESSAGE:
            names.append(word)
        before = word
    return [f"{package}{name}" for name in names]


def _words(text: str) -> Iterator[str]:
    """Yield words, braces and semicolons, without comments and strings."""
    found = (each.group("word") or each.group("sign") for each in _TOKEN.finditer(text))
    yield from (word for word in found if word is not None)
