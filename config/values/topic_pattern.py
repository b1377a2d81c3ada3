"""Parses patterns of topic names: globs, and regular expressions between slashes, for RE2.

For every pattern, RE2 takes time linear in the length of the name (https://github.com/google/re2/wiki/Syntax). It
rejects look-around and back-references. Only legal topic names are ever matched.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sluicegate.protocol.topic_name import LEGAL_CHARACTERS

if TYPE_CHECKING:
    import re2  # imported only when a pattern needs it, because the C++ library uses 3 MB

_MAX_CHARACTERS = 10_000
# The maximum size of a compiled pattern. Larger patterns take milliseconds for each new name.
_MAX_COMPILED_BYTES = 1 << 20
INSTRUCTION_NANOSECONDS = 4
"""The time that RE2's slowest engine takes per byte and per instruction of the pattern (`programsize`)."""
_NEVER = r"[^\x00-\x{10FFFF}]"
# Patterns that match every principal.
_EVERY_PRINCIPAL = frozenset({"*", "User:*", "/.*/", "/User:.*/"})
_FIRST_MATCH_DECIDES = "the first entry that matches decides, so topics to be left out can be given in an entry before"
_INSTEAD = (
    (("(?=", "(?!", "(?<=", "(?<!", "(?<"), f"look-around has no linear time; {_FIRST_MATCH_DECIDES}"),
    (("(?P=", "(?(", "\\1", "\\2", "\\3", "\\4", "\\5", "\\6", "\\7", "\\8", "\\9"), "write out what may be repeated"),
    (
        ("(?>", "*+", "++", "?+"),
        "plain repetitions take linear time already: use plain ones",
    ),
    (("\\Z",), "leave it out: a pattern always matches the whole name"),
    (("invalid repetition size",), "repeat at most 1000 times in all; no topic's name is longer than 249"),
    (("too large",), "write a shorter pattern, or several entries"),
)


def regular_expression_of(match: str) -> str:
    """Return `match` as an RE2 expression for whole names. Raises ValueError with the reason."""
    if not match:
        raise ValueError("an empty pattern matches no topic")
    if len(match) > _MAX_CHARACTERS:
        raise ValueError(f"a pattern of {len(match)} characters; write one of at most {_MAX_CHARACTERS}")
    if len(match) > 1 and match.startswith("/") and match.endswith("/"):
        return _taken(match[1:-1], "a regular expression")
    return _taken(_of_glob(match), "a glob")


def exact_name_of(match: str) -> str | None:
    """Return the name if the pattern is a plain name, or None for any other pattern."""
    has_wildcards = any(char in match for char in "*?[")
    return None if has_wildcards or (len(match) > 1 and match[0] == match[-1] == "/") else match


def is_for_every_principal(match: str) -> bool:
    """Return whether `match` matches every principal."""
    return match in _EVERY_PRINCIPAL


def begins_with(expression: str, text: str) -> bool:
    """Return whether every match of a valid expression provably begins with `text` (ASCII), by RE2's own analysis."""
    import re2  # noqa: PLC0415  # 3 MB only for expressions

    try:
        first, last = re2.compile(rf"\A(?:{expression})\z", re2_options()).possiblematchrange(len(text) + 1)
    except re2.error:  # RE2 knows no range
        return False
    # The strings that begin with `text` are those from `text` up to its successor.
    return bool(text) and first >= text.encode() and last < (text[:-1] + chr(ord(text[-1]) + 1)).encode()


def compile_expression(expression: str) -> "re2._Regexp":
    """Return the compiled form of an expression from `regular_expression_of`."""
    import re2  # noqa: PLC0415  # 3 MB only for expressions

    return re2.compile(expression, re2_options())


def re2_options(max_bytes: int = _MAX_COMPILED_BYTES) -> "re2.Options":
    """Return RE2 options: no logging (errors are raised), and at most `max_bytes` of memory."""
    import re2  # noqa: PLC0415  # 3 MB only for expressions

    chosen = re2.Options()
    chosen.log_errors = False
    chosen.max_mem = max_bytes
    return chosen


def _taken(expression: str, kind: str) -> str:
    """Return the expression if RE2 can compile it. Raises ValueError."""
    import re2  # noqa: PLC0415  # 3 MB only for expressions

    try:
        re2.compile(expression, re2_options())
    except UnicodeEncodeError as error:
        raise ValueError(f"not {kind}: it contains a lone surrogate (half of a character)") from error
    except re2.error as error:
        reason = _words(error)
        raise ValueError(f"not {kind} that RE2 accepts: {reason[:200]}{_advice(reason)}") from error
    return expression


def check_expression(expression: str) -> None:
    """Raise ValueError if RE2 cannot compile an expression."""
    _taken(expression, "a regular expression")


def _words(error: Exception) -> str:
    reason = error.args[0] if error.args else error
    return reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)


def _advice(reason: str) -> str:
    """Return what to write instead of syntax that RE2 rejects, or an empty string for other errors."""
    if reason.startswith("missing"):
        return ""
    return next((f"; {advice}" for signs, advice in _INSTEAD if any(sign in reason for sign in signs)), "")


def parts_of(glob: str) -> Iterator[str | frozenset[str]]:
    """Yield the parts of a glob: a character (`*` and `?` are wildcards), or the legal characters of a class.

    `*`, `?`, `[...]` and `[!...]` have the same meaning as in fnmatch. All other characters are literal.
    """
    position = 0
    while position < len(glob):
        char = glob[position]
        end = _class_end(glob, position) if char == "[" else -1
        if end >= 0:
            yield _class_of(glob[position + 1 : end])
            position = end
        else:
            yield char
        position += 1


def _of_glob(glob: str) -> str:
    parts = ["(?s)"]
    for part in parts_of(glob):
        if isinstance(part, frozenset):
            held = "".join(char for char in LEGAL_CHARACTERS if char in part)
            parts.append(f"[{held.replace('-', chr(92) + '-')}]" if held else _NEVER)
        elif part == "*":
            parts.append(".*" if parts[-1] != ".*" else "")
        elif part == "?":
            parts.append(".")
        else:
            parts.append(part if part.isascii() and part.isalnum() else f"\\x{{{ord(part):x}}}")
    return "".join(parts)


def _class_end(glob: str, start: int) -> int:
    """Return the index at which the class that opens at `start` closes, or -1 if the bracket is literal."""
    first = start + 2 if glob[start + 1 : start + 2] == "!" else start + 1
    return glob.find("]", first + 1)  # a closing bracket at the beginning is a member of the class


def _class_of(inside: str) -> frozenset[str]:
    """Return the legal characters of a class. Listing them avoids RE2's own rules for classes."""
    negated = inside.startswith("!")
    chosen = inside[1:] if negated else inside
    ranges: list[tuple[str, str]] = []
    position = 0
    while position < len(chosen):
        is_range = position + 2 < len(chosen) and chosen[position + 1] == "-"
        last = chosen[position + 2] if is_range else chosen[position]
        ranges.append((chosen[position], last))
        position += 3 if is_range else 1
    return frozenset(
        char for char in LEGAL_CHARACTERS if any(first <= char <= last for first, last in ranges) is not negated
    )
