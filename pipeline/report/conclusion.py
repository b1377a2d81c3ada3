"""What a report says before it lists anything."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Conclusion:
    """`found` is one sentence, `to_do` what follows from it; commands print both above their table."""

    found: str
    to_do: str

    def __str__(self) -> str:
        return f"{self.found}\n{self.to_do}"


def share(count: int, of: int) -> str:
    """As `50 (5 %)`."""
    return f"{count:,} ({100 * count / of:.4g} %)" if of else f"{count:,}"


def counted(count: int, what: str) -> str:
    """As `1 topic` or `2 topics`."""
    return f"{count:,} {what}" + ("" if count == 1 else "s")


def in_words(counts: dict[str, int]) -> str:
    """As `nanoseconds 40, zero 10`: the largest first."""
    return ", ".join(f"{name} {n:,}" for name, n in sorted(counts.items(), key=lambda item: (-item[1], item[0])) if n)
