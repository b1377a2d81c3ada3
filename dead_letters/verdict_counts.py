"""Counts the verdicts on letters, with the corrections that would help. The memory is bounded."""

from collections import Counter

from sluicegate.dead_letters.groups import MOST_GROUPS, OTHERS
from sluicegate.dead_letters.letter import Letter
from sluicegate.dead_letters.verdicts import LetterValidator, LetterVerdict

Kind = tuple[bool, str, tuple[str, ...]]
"""Whether letters are accepted, the code of the verdict, and the violated rules."""


class VerdictCounts:
    """Counts verdicts. `fixes` has the number of letters of each kind that each correction makes valid."""

    def __init__(self, validator: LetterValidator) -> None:
        self._validator = validator
        self.counts: Counter[Kind] = Counter()
        self.fixes: dict[Kind, Counter[str]] = {}
        self.obstacles: Counter[str] = Counter()

    def add(self, letter: Letter) -> LetterVerdict | None:
        """Count a letter and return its verdict; None if it does not have the original record."""
        if letter.obstacle is not None:
            self.obstacles[letter.obstacle.value] += 1
            return None
        verdict = self._validator.verdict(letter)
        kind = (verdict.is_accepted, verdict.code, verdict.rules)
        if kind not in self.counts and len(self.counts) >= MOST_GROUPS:
            kind = (verdict.is_accepted, OTHERS, ())
        self.counts[kind] += 1
        for fix in self._validator.helpful_fixes(letter, verdict):
            self.fixes.setdefault(kind, Counter())[fix.value] += 1
        return verdict

    @property
    def accepted(self) -> int:
        """Return the number of letters that a proxy accepts."""
        return sum(count for (is_accepted, _, _), count in self.counts.items() if is_accepted)
