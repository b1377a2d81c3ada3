"""The fast path's CRC32C is correct for any length: in one stream, in three, and with the library."""

import random

import pytest
from crc32c import crc32c

from sluicegate.config.topics import TopicKeys
from sluicegate.proxy.fastpath.paths import make_ordinary_requests
from sluicegate.validation.from_keys import compile_policies
from sluicegate.validation.in_force import RulesInForce
from sluicegate.validation.policy import ValidationLimits
from sluicegate.validation.rulebook import Rulebook

_LONGEST = 300_000


def test_crc32c_equals_that_of_another_implementation() -> None:
    validate = make_ordinary_requests(
        ValidationLimits(), 1, lambda: 0, RulesInForce(Rulebook(compile_policies(TopicKeys())))
    )
    if validate is None:
        pytest.skip("there is no fast path: it was not compiled")
    chance = random.Random(32)
    data = memoryview(chance.randbytes(_LONGEST))
    lengths = [
        *range(1, 100),
        *range(740, 840),
        *range(20_400, 20_520),
        *(chance.randrange(_LONGEST) for _ in range(50)),
    ]

    for length in lengths:
        start = chance.randrange(min(8, _LONGEST - length))
        some = data[start : start + length]
        assert validate.checksum(some) == crc32c(some), length
