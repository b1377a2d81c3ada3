"""Parses the value of `sasl.jaas.config` as Kafka does (`JaasConfig`, with the tokens of `java.io.StreamTokenizer`)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_FLAGS = frozenset({"REQUIRED", "REQUISITE", "SUFFICIENT", "OPTIONAL"})
# Java's tokenizer treats all characters from 160 on as letters. A quoted string also ends at the end of its line. A
# slash begins a comment, which includes the next character even if that is a line feed.
_TOKEN = re.compile(
    r"""
      (?P<blank>    [\x00-\x20]+ )
    | (?P<number>   -?(?:[0-9]+\.?[0-9]*|\.[0-9]*) )
    | (?P<word>     [A-Za-z_$\xa0-\U0010ffff][A-Za-z_$\xa0-\U0010ffff0-9.-]* )
    | "(?P<double>  (?:[^"\\\r\n]|\\[\s\S])* )"?
    | '(?P<single>  (?:[^'\\\r\n]|\\[\s\S])* )'?
    | (?P<block>    /\*(?:[\s\S]*?\*/|[\s\S]*) )
    | (?P<comment>  /[\s\S]?[^\r\n]* )
    | (?P<sign>     [\s\S] )
    """,
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(?:([0-3][0-7]{0,2}|[4-7][0-7]?)|([\s\S]))")
_LETTERS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


@dataclass(frozen=True, slots=True)
class _Token:
    """One token. `text` is a word or a quoted string, and `sign` is any other character. A number sets neither."""

    text: str | None = None
    sign: str | None = None


class MalformedJaas(Exception):
    """Kafka's clients reject the value. The message gives the reason, but quotes no part of the value."""


def options_in(value: str) -> dict[str, str]:
    """Return the options of the value's only login module. Raises MalformedJaas."""
    tokens = _tokens(value)
    modules = [_options(tokens) for _ in tokens]
    if len(modules) != 1:
        raise MalformedJaas(f"has {len(modules)} login modules, but Kafka's clients accept only one")
    return modules[0]


def _options(tokens: Iterator[_Token]) -> dict[str, str]:
    """Parse the rest of an entry, after the login module's name."""
    flag = next(tokens, _Token())
    if flag.text is None or flag.text.upper() not in _FLAGS:
        raise MalformedJaas("has no control flag, such as `required`, after the login module")
    options: dict[str, str] = {}
    for count, token in enumerate(tokens, 1):
        if token.sign == ";":
            return options
        equals, value = next(tokens, _Token()), next(tokens, _Token())
        if equals.sign != "=" or value.text is None:
            raise MalformedJaas(
                f"has no value for option {count}: expected name=value; a value needs quotation marks if it begins "
                f"with a digit or a sign, or has other characters than letters, digits, . _ - and $"
            )
        if token.text is not None:
            options[token.text] = value.text
    raise MalformedJaas("does not end with a semicolon, or a quotation mark is not closed")


def _tokens(value: str) -> Iterator[_Token]:
    for found in _TOKEN.finditer(value):
        kind = found.lastgroup
        if kind in ("double", "single"):
            yield _Token(text=_ESCAPE.sub(_unescaped, found[kind]))
        elif kind == "word":
            yield _Token(text=found[0])
        elif kind == "number":
            yield _Token()
        elif kind == "sign":
            yield _Token(sign=found[0])


def _unescaped(escape: re.Match[str]) -> str:
    octal, character = escape.groups()
    return chr(int(octal, 8)) if octal is not None else _LETTERS.get(character, character)
