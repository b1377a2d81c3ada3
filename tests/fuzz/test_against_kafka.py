"""Kafka's own validator accepts the mutated batches that the fast path accepts.

SLUICEGATE_FUZZ_SEED and _VALIDATED set the seed and the number of accepted batches; `make fuzz` uses a million.
"""

import os
import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

import pytest

from sluicegate.proxy.fastpath.paths import HAS_FAST_PATH
from sluicegate.validation.policy import Framing, TimestampType, TopicPolicy, ValidationLimits
from tests.bounds.frames import request_header, sized_produce_request
from tests.fuzz.in_process import with_valid_header
from tests.fuzz.mutations import mutate
from tests.fuzz.seeds import seed_batches
from tests.oracle.kafka_validator import ACCEPTED, LEFT_TO_THE_BROKER, validators_responses
from tests.oracle.validator_cases import DAY, HOUR, NOW, Case
from tests.two_paths.both import BothPaths
from tests.wire.batches import CODECS, Rec, batch

THOROUGH = "SLUICEGATE_THOROUGH" in os.environ
SEED = int(os.environ.get("SLUICEGATE_FUZZ_SEED") or random.SystemRandom().randrange(1 << 31))
VALIDATED = int(os.environ.get("SLUICEGATE_FUZZ_VALIDATED") or (1_000_000 if THOROUGH else 5_000))
_AT_ONCE = 20_000
_AS_A_BROKER = TopicPolicy(framing=Framing.BROKER)
_POLICIES = {
    "bounded": replace(_AS_A_BROKER, before_max_ms=DAY, after_max_ms=HOUR),
    "open": _AS_A_BROKER,
    "compacted": replace(_AS_A_BROKER, compacted=True),
    "appended": replace(_AS_A_BROKER, timestamp_type=TimestampType.LOG_APPEND_TIME),
}
_VERSIONS = range(7, 13)  # with topic names and every codec

pytestmark = pytest.mark.skipif(not HAS_FAST_PATH, reason="there is no fast path: it was not compiled")


class DrawnBatches:
    """Mutated batches, each for one of the topics. `drawn`: all; `good`: accepted by the fast path."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._paths = BothPaths(_POLICIES, {}, ValidationLimits())
        self._seeds = [one for one in seed_batches(NOW) if len(one) > 61 and one[16] == 2] + _at_the_bounds()
        self.drawn = self.good = 0

    def generate_valid_batches(self) -> Iterator[Case]:
        """Generate endlessly batches that differ from all seeds."""
        chance = self._chance
        while True:
            seed = chance.choice(self._seeds)
            one = bytes(with_valid_header(mutate(seed, chance, self._seeds), seed))
            name, version = chance.choice(list(_POLICIES)), chance.choice(_VERSIONS)
            frame = bytearray(sized_produce_request(version, {name.encode(): [(0, one)]})[4:])
            self.drawn += 1
            if one != seed and self._paths.validate(frame, version, len(request_header(0, version)), NOW):
                self.good += 1
                yield Case(_POLICIES[name], one)


def _at_the_bounds() -> list[bytes]:
    """Return timestamps from which one flipped bit crosses a bound."""
    times = (NOW - DAY, NOW + HOUR, 0, -1)
    return [batch([Rec(NOW), Rec(time, b"k")], codec) for time in times for codec in CODECS.values()]


@pytest.mark.timeout(7200)
def test_kafkas_validator_accepts_batches_that_the_fast_path_accepts() -> None:
    drawn, left = DrawnBatches(SEED), VALIDATED
    good = drawn.generate_valid_batches()

    while left > 0:
        cases = list(islice(good, min(left, _AT_ONCE)))
        answers = validators_responses(cases)
        rejected = [
            f"{case.case_line()[:2000]}  Kafka {answer[:300]!r}"
            for case, answer in zip(cases, answers, strict=True)
            if answer not in (ACCEPTED, LEFT_TO_THE_BROKER)
        ]
        assert not rejected, f"seed {SEED}: {len(rejected)} of {len(cases)} are not:\n" + "\n".join(rejected[:5])
        left -= len(cases)

    print(
        f"{drawn.drawn:,} mutated batches, {drawn.good:,} good on the fast path and for Kafka's validator, seed {SEED}"
    )
    assert drawn.good < drawn.drawn
