"""Reads and writes bench/baseline.json, with which `.ci/run` compares instructions and resident memory.

Each case consists of `count`, the instructions of one repetition, and `interpreter`, the share of these instructions
that scales with the build of Python: 1 if the interpreter executes all of them, 0 if compiled modules and libraries
execute all of them. The shares come from counts of the same modules with two builds of Python 3.11: pyenv's 3.11.7, and
Debian's 3.11.2, which takes 0.82 of the yardstick's instructions. For a different build, the expected count is computed
from the shares.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).with_name("baseline.json")
YARDSTICK = "yardstick"
INSTRUCTIONS_MARGIN = 0.05
MEMORY_MARGIN_MB = 5.0


@dataclass(frozen=True, slots=True)
class Case:
    """The instructions of one repetition, and the share of them that scales with the build of Python."""

    count: int
    interpreter: float


@dataclass(frozen=True, slots=True)
class Baseline:
    """The instructions by case, and the resident MB in excess of a bare Python process by state of the proxy."""

    instructions: Mapping[str, Case]
    resident_mb: Mapping[str, float]

    def expected_instructions(self, counted: Mapping[str, float]) -> dict[str, float]:
        """Return the expected instructions of each case for the build of Python that counted its own yardstick."""
        build = counted[YARDSTICK] / self.instructions[YARDSTICK].count
        return {name: each.count * (1 + each.interpreter * (build - 1)) for name, each in self.instructions.items()}

    def more_instructions(self, counted: Mapping[str, float]) -> list[str]:
        """Return a sentence for each case that exceeds its margin."""
        expected = self.expected_instructions(counted)
        return [
            f"{name}: {counted[name]:,.0f} instructions, {counted[name] / expected[name]:.2f} times the expected"
            f" {expected[name]:,.0f}; the margin is {INSTRUCTIONS_MARGIN:.0%}"
            for name in expected
            if counted[name] > expected[name] * (1 + INSTRUCTIONS_MARGIN)
        ]

    def more_memory(self, held_mb: Mapping[str, float]) -> list[str]:
        """Return a sentence for each state that exceeds its margin."""
        return [
            f"{state}: {held_mb[state]:.1f} MB above a bare Python instead of {allowed:.1f}; the margin is"
            f" {MEMORY_MARGIN_MB:.0f} MB"
            for state, allowed in self.resident_mb.items()
            if held_mb[state] > allowed + MEMORY_MARGIN_MB
        ]


def read() -> Baseline:
    """Return the baseline in the file."""
    text = json.loads(FILE.read_text())
    return Baseline({name: Case(**each) for name, each in text["instructions"].items()}, text["resident_mb"])


def write(counted: Mapping[str, float], held_mb: Mapping[str, float]) -> None:
    """Make these counts and sizes the baseline; the shares stay the same. A new case begins with the share 0."""
    before = read().instructions
    cases = {
        name: {"count": round(count), "interpreter": before[name].interpreter if name in before else 0.0}
        for name, count in counted.items()
    }
    sizes = {state: round(size, 1) for state, size in held_mb.items()}
    FILE.write_text(json.dumps({"instructions": cases, "resident_mb": sizes}, indent=1) + "\n")
