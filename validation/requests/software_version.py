"""Versions that client libraries give themselves, and which of two is the later."""

import re
from dataclasses import dataclass

from sluicegate.validation.requests.name_pattern import NamePattern

_NUMBERS = re.compile(r"[0-9]{1,9}")
_MOST_NUMBERS = 4
_LOOKED_AT = 64


def numbers_in(version: str) -> tuple[int, ...]:
    """The numbers that a version begins with, zeros at the end left out: 2.3.0 is 2.3."""
    text = version[:_LOOKED_AT].split("-", maxsplit=1)[0].split("+", maxsplit=1)[0]
    numbers = [int(found) for found in _NUMBERS.findall(text)[:_MOST_NUMBERS]]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


@dataclass(frozen=True, slots=True)
class LeastVersion:
    """Clients whose software's name matches have at least this version."""

    name: NamePattern
    version: str

    def refuses(self, name: str | None, version: str | None) -> bool:
        """Whether this software is older; who has given no name is not asked."""
        return self.name.matches(name) and numbers_in(version or "") < numbers_in(self.version)
