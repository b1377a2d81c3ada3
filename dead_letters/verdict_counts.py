"""Counts verdicts on letters, and the corrections and repairs that would help. Memory is bounded."""

from collections import Counter
from collections.abc import Iterator, Sequence

from sluicegate.dead_letters.groups import MOST_GROUPS, OTHERS
from sluicegate.dead_letters.letter import Letter
from sluicegate.dead_letters.repairs import LetterRepair, RepairFailed, repaired
from sluicegate.dead_letters.verdicts import LetterValidator, LetterVerdict

Kind = tuple[bool, str, tuple[str, ...]]
"""Whether letters are accepted, the code of the verdict, and the violated rules."""


class VerdictCounts:
    """Counts of verdicts.

    For each kind of letter, `fixes` counts the letters that each timestamp correction and each repair would make valid.
    """

    def __init__(self, validator: LetterValidator, repairs: Sequence[LetterRepair] = ()) -> None:
        self._validator = validator
        self._repairs = repairs
        self.counts: Counter[Kind] = Counter()
        self.fixes: dict[Kind, Counter[str]] = {}
        self.obstacles: Counter[str] = Counter()

    def add(self, letter: Letter) -> LetterVerdict | None:
        """Count a letter and return its verdict, or None if the letter does not contain the original record."""
        if letter.obstacle is not None:
            self.obstacles[letter.obstacle.value] += 1
            return None
        verdict = self._validator.verdict(letter)
        kind = (verdict.is_accepted, verdict.code, verdict.rules)
        if kind not in self.counts and len(self.counts) >= MOST_GROUPS:
            kind = (verdict.is_accepted, OTHERS, ())
        self.counts[kind] += 1
        fixes = [f"fix {fix.value}" for fix in self._validator.helpful_fixes(letter, verdict)]
        for name in (*fixes, *self._helpful_repairs(letter, verdict)):
            self.fixes.setdefault(kind, Counter())[name] += 1
        return verdict

    def _helpful_repairs(self, letter: Letter, verdict: LetterVerdict) -> Iterator[str]:
        """Yield the names of the repairs that would make an invalid letter valid."""
        if verdict.is_valid:
            return
        for repair in self._repairs:
            try:
                changed = repaired(letter, [repair])
            except RepairFailed:
                continue
            if changed is not None and self._validator.verdict(changed).is_valid:
                yield repair.name

    @property
    def accepted(self) -> int:
        """Return the number of letters that a proxy would accept."""
        return sum(count for (is_accepted, _, _), count in self.counts.items() if is_accepted)
