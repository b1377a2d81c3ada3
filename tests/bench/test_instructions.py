"""Validation takes no more instructions than bench/baseline.json allows. The margins themselves are tested too."""

from shutil import which

import pytest

from bench import baseline, instructions
from bench.baseline import YARDSTICK, Baseline, Case

_CASES = {YARDSTICK: Case(1000, 1.0), "compiled": Case(200, 0.0), "mixed": Case(400, 0.5)}
_BEFORE = Baseline(_CASES, {"idle": 60.0, "loaded": 70.0})


def _counted(**others: float) -> dict[str, float]:
    return {YARDSTICK: 1000.0, "compiled": 200.0, "mixed": 400.0, **others}


def test_six_percent_more_instructions_are_reported_and_four_are_not() -> None:
    assert _BEFORE.more_instructions(_counted(compiled=208.0, mixed=416.0)) == []
    (line,) = _BEFORE.more_instructions(_counted(compiled=212.0, mixed=416.0))
    assert line == "compiled: 212 instructions, 1.06 times the expected 200; the margin is 5%"


def test_another_python_build_changes_only_the_expected_interpreted_instructions() -> None:
    counted = _counted(mixed=360.0) | {YARDSTICK: 800.0}

    assert _BEFORE.expected_instructions(counted) == {YARDSTICK: 800.0, "compiled": 200.0, "mixed": 360.0}
    assert _BEFORE.more_instructions(counted) == []
    assert len(_BEFORE.more_instructions(counted | {"mixed": 380.0})) == 1


def test_memory_growth_of_more_than_five_megabytes_is_reported() -> None:
    assert _BEFORE.more_memory({"idle": 64.9, "loaded": 74.9}) == []
    assert _BEFORE.more_memory({"idle": 65.1, "loaded": 70.0}) == [
        "idle: 65.1 MB above a bare Python instead of 60.0; the margin is 5 MB"
    ]


@pytest.mark.long
@pytest.mark.skipif(which("callgrind_control") is None, reason="there is no valgrind")
def test_instruction_counts_of_all_cases_equal_the_baseline() -> None:
    counted, before = instructions.count(), baseline.read()

    assert counted.keys() == before.instructions.keys()
    assert before.more_instructions(counted) == []
