"""Every case stays within the limits. A case that fails runs again on a new proxy, and the second run decides."""

import pytest

from tests.bounds.case import Case
from tests.bounds.cases import ALL_CASES
from tests.bounds.conftest import THOROUGH
from tests.bounds.measurement import SharedStages
from tests.bounds.table import MEASURED

_CASES = [
    pytest.param(case, marks=pytest.mark.long if case.long else (), id=case.name)
    for case in ALL_CASES
    if THOROUGH or not case.only_thorough
]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("case", _CASES)
def test_memory_and_delays_stay_within_bounds(case: Case, stages: SharedStages) -> None:
    measured, repeated = stages.measure(case)
    MEASURED.append(measured)
    print(measured.summary())

    before = f"\nthe run before: {repeated.summary()}" if repeated is not None else ""
    assert not measured.violations, measured.summary() + before
