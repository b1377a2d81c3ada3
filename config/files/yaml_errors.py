"""Rewrites PyYAML's errors as advice on what to write. No message quotes the file's content."""

import re

import yaml
from yaml.reader import ReaderError

_QUOTE = "put a value that begins with {} in quotes, also a pattern or a password"
_INSTEAD = (
    ("cannot start any token", "put a value that begins with %, @ or ` in quotes"),
    ("undefined alias", _QUOTE.format("*")),
    ("duplicate anchor", "two anchors (&) with this name; " + _QUOTE.format("&")),
    ("undefined tag handle", _QUOTE.format("!")),
    ("duplicate tag handle", "%TAG twice"),
    (
        "mapping values are not allowed here",
        "a value that contains a colon and a space needs quotes; otherwise check the indentation",
    ),
    ("could not find expected ':'", "a line that is neither `key: value` nor `- item`"),
    ("expected a single document", "the file has more than one document: remove the second ---"),
    ("but found another document", "the file has more than one document: remove the second ---"),
)
_TAB = re.compile(r" *(?:- *)*\t")
_LINES_NEAR = 2  # the parser may report the error a line later
_CONTEXTS = (
    ("alias", _QUOTE.format("*")),
    ("anchor", _QUOTE.format("&")),
    ("tag", _QUOTE.format("!")),
    ("block scalar", _QUOTE.format("| or >")),
    ("directive", _QUOTE.format("%")),
)


def words_of(error: yaml.YAMLError) -> str:
    """Return what to write instead, or the parser's own message for an unknown error."""
    if isinstance(error, ReaderError):
        return f"YAML does not allow the character  {_named(error.character)}"
    problem = str(getattr(error, "problem", None) or "the file is not valid YAML")
    context = str(getattr(error, "context", None) or "")
    for sign, words in _INSTEAD:
        if sign in problem or sign in context:
            return words
    if context.startswith("while scanning"):
        for sign, words in _CONTEXTS:
            if sign in context:
                return words
    return problem


def tab_before(error: yaml.YAMLError, text: str) -> int | None:
    """Return the line (from 1) whose indentation with a tab explains the error, or None."""
    at = line_of(error, text)
    if at is None:
        return None
    lines = text.split("\n")[:at]
    near = range(at, max(0, at - _LINES_NEAR), -1)
    return next((number for number in near if number <= len(lines) and _TAB.match(lines[number - 1])), None)


def line_of(error: yaml.YAMLError, text: str) -> int | None:
    """Return the error's line (from 1), or None if the error has no line."""
    if isinstance(error, ReaderError):
        return text.count("\n", 0, error.position) + 1
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    return mark.line + 1 if mark is not None else None


def _named(character: object) -> str:
    number = character if isinstance(character, int) else ord(str(character)[:1] or "\0")
    return f"#x{number:04x}"
