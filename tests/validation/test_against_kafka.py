"""The validation agrees with Kafka's own LogValidator at a fixed time, to the millisecond and to the byte."""

import random

import pytest

from sluicegate.protocol.records.codecs.decompression import Decompressor
from sluicegate.protocol.records.codecs.decompression_budget import DecompressionBudget
from sluicegate.validation.policy import ValidationLimits
from sluicegate.validation.units import diagnose
from sluicegate.validation.validator import Submission, validate_partition
from sluicegate.validation.verdict import TIMED, Accepted, BadRecord
from tests.oracle.kafka_validator import ACCEPTED, LEFT_TO_THE_BROKER, validators_responses
from tests.oracle.validator_cases import (
    NOW,
    Case,
    Cases,
    damage_in_one_of_several_steps,
    damaged_compression,
    damaged_payloads,
    further_streams,
    good_structures,
    mutated_compression,
)

pytestmark = pytest.mark.long


def proxy_verdict(case: Case, most_piece_bytes: int = 1 << 20) -> str:
    submission = Submission("t", 0, memoryview(case.data), version=13)
    budget = DecompressionBudget(128 << 20, 1000, lambda: None)
    verdict = validate_partition(
        submission, case.policy, ValidationLimits(), NOW, Decompressor(most_piece_bytes), budget
    )
    if isinstance(verdict, Accepted):
        return ACCEPTED
    errors = "".join(f"\t{bad.index}={_as_a_broker_says(bad)}" for bad in verdict.bad_records)
    return f"{int(verdict.code)}\t{verdict.message or ''}{errors}"


def _as_a_broker_says(bad: BadRecord) -> str:
    """Return the message of a record error without the diagnosis, which brokers do not send."""
    if bad.reason not in TIMED:
        return bad.message
    said, _, diagnosis = bad.message.rpartition("; ")
    assert diagnosis == diagnose(bad.timestamp, NOW)
    return said


@pytest.mark.parametrize(
    ("cases", "count"),
    [
        (good_structures, 6000),
        (damaged_payloads, 4000),
        (damaged_compression, 1500),
        (damage_in_one_of_several_steps, 400),
        (mutated_compression, 3000),
        (further_streams, 1000),
    ],
)
@pytest.mark.parametrize("seed", [1])
def test_proxy_verdicts_equal_those_of_kafkas_validator(cases: Cases, count: int, seed: int) -> None:
    made = list(cases(random.Random(seed), count))

    answers = [answer.replace(LEFT_TO_THE_BROKER, ACCEPTED) for answer in validators_responses(made)]

    differences = [
        f"{case.case_line()[:2000]}  Kafka {answer[:300]!r}\n  ours  {mine[:300]!r}"
        for case, answer in zip(made, answers, strict=True)
        if (mine := proxy_verdict(case)) != answer
    ]
    assert len({answer.split("\t")[0] for answer in answers}) > 2, "the cases cover too little"
    assert not differences, f"{len(differences)} of {len(made)} differ:\n" + "\n".join(differences[:5])
