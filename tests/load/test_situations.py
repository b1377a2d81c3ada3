"""In every situation, memory is freed, the expected clients are served, and the small client's waits stay short."""

import pytest

from tests.load.conftest import LoadStages
from tests.load.situations import SITUATIONS, Situation
from tests.load.table import MEASURED


@pytest.mark.timeout(600)
@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda situation: situation.name)
def test_load_keeps_throughput_and_latency_within_limits(situation: Situation, stages: LoadStages) -> None:
    measured = stages.measure(situation)
    MEASURED.append(measured)
    print(measured.summary(), flush=True)

    assert not measured.broken, measured.summary()
