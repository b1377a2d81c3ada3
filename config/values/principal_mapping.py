"""Applies the rules that turn a client certificate's subject into a principal (`ssl.principal.mapping.rules`).

KIP-371: rules are `RULE:pattern/replacement/[LU]` or `DEFAULT`, separated by commas. The first rule that matches the
whole subject applies. Kafka uses Java's regular expressions. The proxy uses RE2, which takes time linear in the length
of the subject. Syntax that Java and RE2 read differently is an error.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from sluicegate.config.values.topic_pattern import check_expression, compile_expression

if TYPE_CHECKING:
    import re2

_MAX_CHARACTERS = 10_000
_MAX_SUBJECT = 8192
_RULE = re.compile(r"\s*(DEFAULT|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?)|)\s*(?:,\s*|$)", re.ASCII)
_REFERENCE = re.compile(r"\$(\d+)", re.ASCII)
_SYNTAX = re.compile(r"\\(?:.|$)|\(\?[a-zA-Z-]*|\[\^?\]?|&&|.", re.DOTALL)
# Java and RE2 read these escapes differently: as back-references or octal characters, vertical white space or a tab, a
# byte.
_OTHER_ESCAPES = frozenset("0123456789vC")
_EXPECTED = "expected rules as RULE:^CN=([^,]+),.*$/$1/L and DEFAULT, separated by commas"


class _Rule(NamedTuple):
    """A rule. The `parts` of the replacement are strings, or group numbers. A `pattern` of None means DEFAULT."""

    pattern: "re2._Regexp | None"
    parts: tuple[str | int, ...] = ()
    case: str = ""

    def applied_to(self, subject: str) -> str | None:
        """Return the name, or None if the pattern does not match the whole subject."""
        if self.pattern is None:
            return subject
        if self.pattern.fullmatch(subject) is None:
            return None
        name = "".join(self._replaced(subject, self.pattern))
        return name.lower() if self.case == "L" else name.upper() if self.case == "U" else name

    def _replaced(self, subject: str, pattern: "re2._Regexp") -> Iterator[str]:
        """Yield the subject with every match replaced.

        This follows the rules of Java's replaceAll: `.*` also matches the empty end.
        """
        end = 0
        for match in pattern.finditer(subject):
            yield subject[end : match.start()]
            yield from ((match.group(part) or "") if isinstance(part, int) else part for part in self.parts)
            end = match.end()
        yield subject[end:]


class PrincipalMapping:
    """The rules of one listener."""

    def __init__(self, rules: str) -> None:
        """Parse the rules. Raises ValueError for rules that brokers reject or that need more than linear time."""
        self._rules = tuple(_read(rules))

    def name_of(self, subject: str) -> str | None:
        """Return the user name for a certificate's distinguished name, or None if no rule matches."""
        if len(subject) > _MAX_SUBJECT:
            return None
        return next((name for name in (rule.applied_to(subject) for rule in self._rules) if name is not None), None)


def _read(rules: str) -> Iterator[_Rule]:
    text = rules.strip()
    if len(text) > _MAX_CHARACTERS:
        raise ValueError(f"rules of {len(text)} characters; write at most {_MAX_CHARACTERS}")
    position = 0
    while position < len(text):
        found = _RULE.match(text, position)
        if found is None:
            raise ValueError(f"{_EXPECTED}; found {text[position : position + 80]}")
        position = found.end()
        word, pattern, replacement, case = found.group(1, 2, 3, 4)
        if pattern is not None:
            yield _rule(pattern, replacement, case)
        elif word:
            yield _Rule(None)


def _rule(pattern: str, replacement: str, case: str) -> _Rule:
    _check_dialect(pattern)
    check_expression(pattern)
    expression = compile_expression(pattern)
    try:
        parts = tuple(_parts(_escaped(replacement, expression.groups), expression))
    except ValueError as error:
        raise ValueError(f"RULE:{pattern}/{replacement}/: {error}") from error
    return _Rule(expression, parts, case)


def _check_dialect(pattern: str) -> None:
    """Raise ValueError for syntax that Java and RE2 read differently, such as nested sets and `&&`."""
    is_in_set = False
    for each in _SYNTAX.findall(pattern):
        is_of_one = each[0] == "\\" and each[1:] in _OTHER_ESCAPES
        is_set_operation = is_in_set and (each[0] == "[" or each == "&&")
        if is_of_one or is_set_operation or (each[:2] == "(?" and "U" in each):
            raise ValueError(f"{pattern}: {each} means something else to a broker than to RE2; write it another way")
        is_in_set = each[0] == "[" or (is_in_set and each != "]")


def _escaped(replacement: str, groups: int) -> str:
    """Escape references to groups that the pattern lacks, with the same bug as in Kafka's implementation.

    Kafka computes each position without counting the characters that it has inserted before, so only the first position
    is correct.
    """
    value = replacement
    for reference in _REFERENCE.finditer(replacement) if groups else ():
        number = int(reference[1][:9])
        while number > groups and number >= 10:
            number //= 10
        if number > groups and not reference[1].startswith("0"):
            value = f"{value[: reference.start()]}\\{value[reference.start() :]}"
    return value


def _parts(replacement: str, expression: "re2._Regexp") -> Iterator[str | int]:
    """Yield the parts of a replacement, by the rules of Java's Matcher.appendReplacement. Raises ValueError."""
    position = 0
    while position < len(replacement):
        char = replacement[position]
        position += 1
        if char not in "\\$":
            yield char
            continue
        after = replacement[position : position + 1]
        if not after:
            raise ValueError(f"the replacement ends with {char}")
        if char == "\\":
            yield after
            position += 1
        elif after == "{":
            name, closes, _ = replacement[position + 1 :].partition("}")
            if not closes or name not in expression.groupindex:
                raise ValueError(f"the pattern has no group named {name}")
            yield expression.groupindex[name]
            position += len(name) + 2
        else:
            digits = re.match(r"\d+", replacement[position:], re.ASCII)
            number, used = _group(digits[0] if digits else "", expression.groups)
            yield number
            position += used


def _group(digits: str, groups: int) -> tuple[int, int]:
    """Return the group number, and how many digits name it: as many as possible. Raises ValueError."""
    if not digits or int(digits[0]) > groups:
        raise ValueError(f"${digits} names no group of the pattern")
    number, used = int(digits[0]), 1
    while used < len(digits) and number * 10 + int(digits[used]) <= groups:
        number, used = number * 10 + int(digits[used]), used + 1
    return number, used
