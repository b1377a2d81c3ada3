"""The inputs that earlier fuzzing found still pass. `make fuzz MINUTES=n` searches for more."""

import pytest

from tests.fuzz.explored.targets import TARGETS, stored_corpus

_MOST_KEPT_BYTES = 1 << 20


@pytest.mark.parametrize("name", TARGETS)
def test_seeds_and_corpus_cause_no_fault(name: str) -> None:
    target = TARGETS[name]
    found = stored_corpus(name).values()
    assert found

    for data in (*target.seeds(), *found):
        target.run(data)


def test_the_stored_corpus_stays_within_its_size_limit() -> None:
    assert sum(len(data) for name in TARGETS for data in stored_corpus(name).values()) < _MOST_KEPT_BYTES
