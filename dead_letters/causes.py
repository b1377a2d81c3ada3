"""Finds the cause of a letter: its error, without the parts of the message that vary from record to record."""

import re
from collections.abc import Collection
from functools import lru_cache
from itertools import count
from typing import NamedTuple

from sluicegate.dead_letters.letter import Letter

_MOST_CHARACTERS = 300
_CACHED = 10_000

# Each pattern has a single quantifier over a character class, so matching takes linear time.
_VARIABLE = re.compile(
    r"""
    (?P<uuid>\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b)
    | (?P<hex>\b0x[0-9a-fA-F]+ | @[0-9a-f]{4,16}\b | \b(?=[0-9a-f]{0,40}[0-9])[0-9a-f]{12,64}\b)
    | (?P<number>(?:(?<![\w.)\]-])-)?(?:(?<![A-Za-z_])[0-9][0-9.,:TZ+-]*[0-9Z] | [0-9]+))
    | (?P<braces>\{[^{}]{1,200}\})
    """,
    re.VERBOSE,
)
# An apostrophe after a letter is part of a word ("field's").
_QUOTED = re.compile(r"""(?<!\w)'[^']{1,200}'|"[^"]{1,200}"|`[^`]{1,200}`|\[[^\[\]]{1,200}\]""")
_PART = "<…>"
_NAMES = {"uuid": "<id>", "hex": "<hex>", "number": "<n>", "braces": _PART}
MOST_QUOTES = 4
"""The number of quoted strings in a message that are distinguished. Any further ones count as one."""


class Cause(NamedTuple):
    """The cause of a letter: error class or code, violated rules, failed step, and message without variable parts.

    `exact` keeps the quoted strings. In some messages they are names ("missing field 'tenant'"), in others record
    contents.
    """

    error: str
    rules: tuple[str, ...]
    stage: str
    text: str
    exact: str


def cause_of(letter: Letter) -> Cause:
    """Return the cause of a letter."""
    return _cause(letter.error, letter.rules, letter.stage or "", letter.text)


@lru_cache(maxsize=_CACHED)
def _cause(error: str, rules: tuple[str, ...], stage: str, text: str) -> Cause:
    return Cause(error, rules, stage, *_without_variables(text))


def _without_variables(text: str) -> tuple[str, str]:
    first = text.lstrip().partition("\n")[0].strip()[:_MOST_CHARACTERS]
    exact = _VARIABLE.sub(lambda found: _NAMES[found.lastgroup or "number"], first)
    return _QUOTED.sub(_PART, exact), exact


def quotes_in(cause: Cause) -> tuple[str, ...]:
    """Return the quoted strings in order: the first `MOST_QUOTES` separately, and all others joined into one."""
    found = _QUOTED.findall(cause.exact)
    return (*found[:MOST_QUOTES], "".join(found[MOST_QUOTES:])) if len(found) > MOST_QUOTES else tuple(found)


def without_quotes(cause: Cause, positions: Collection[int]) -> Cause:
    """Return the cause with the quoted strings at the given positions replaced by a placeholder."""
    if not positions:
        return cause
    counted = count()
    return cause._replace(
        exact=_QUOTED.sub(
            lambda found: _PART if min(next(counted), MOST_QUOTES) in positions else found[0], cause.exact
        )
    )
