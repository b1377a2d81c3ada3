"""What exploring has found goes on holding: `make fuzz MINUTES=n` looks for more."""

import pytest

from tests.fuzz.explored.targets import CORPUS, TARGETS

_MOST_KEPT_BYTES = 1 << 20


@pytest.mark.parametrize("name", TARGETS)
def test_seeds_and_what_was_found_do_nothing_that_must_not_be(name: str) -> None:
    target = TARGETS[name]
    found = [file.read_bytes() for file in sorted((CORPUS / name).iterdir())]
    assert found

    for data in (*target.seeds(), *found):
        target.run(data)


def test_the_corpus_is_small() -> None:
    assert sum(file.stat().st_size for file in CORPUS.rglob("*")) < _MOST_KEPT_BYTES
