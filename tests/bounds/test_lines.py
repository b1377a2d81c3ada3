"""Every line against the law. What fails is run once more on a proxy of its own; the second run has to hold."""

import pytest

from tests.bounds.conftest import THOROUGH
from tests.bounds.line import Line
from tests.bounds.lines import ALL
from tests.bounds.measurement import Stages
from tests.bounds.table import MEASURED

_LINES = [line for line in ALL if THOROUGH or not line.only_thorough]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("line", _LINES, ids=lambda line: line.name)
def test_a_line(line: Line, stages: Stages) -> None:
    measured, repeated = stages.measure(line)
    MEASURED.append(measured)
    print(measured.said())

    before = f"\nthe run before it: {repeated.said()}" if repeated is not None else ""
    assert not measured.broken, measured.said() + before
