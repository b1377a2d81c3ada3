"""Every situation: what was held is given back, who is to be served is, and the small client hardly notices."""

import pytest

from tests.load.conftest import Stages
from tests.load.situations import SITUATIONS, Situation
from tests.load.table import MEASURED


@pytest.mark.timeout(600)
@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda situation: situation.name)
def test_a_situation(situation: Situation, stages: Stages) -> None:
    measured = stages.measure(situation)
    MEASURED.append(measured)
    print(measured.said(), flush=True)

    assert not measured.broken, measured.said()
