"""Record errors about times end with the time's probable meaning. The other texts are a broker's."""

import pytest

from sluicegate.protocol.records.codecs.decompression import Decompressor
from sluicegate.protocol.records.codecs.decompression_budget import DecompressionBudget
from sluicegate.validation.policy import TopicPolicy, ValidationLimits
from sluicegate.validation.validator import Submission, validate_partition
from sluicegate.validation.verdict import Finding
from tests.wire.batches import CODECS, GZIP, NONE, Rec, batch, message, wrapper

NOW = 1_800_000_000_000
BOUNDED = TopicPolicy(before_max_ms=1000, after_max_ms=2000, compacted=True)


def finding_of(data: bytes, budget: DecompressionBudget | None = None, version: int = 8) -> Finding:
    given = budget or DecompressionBudget(1 << 24, 1000, lambda: None)
    verdict = validate_partition(
        Submission("t", 0, memoryview(data), version), BOUNDED, ValidationLimits(), NOW, Decompressor(), given
    )
    assert isinstance(verdict, Finding)
    return verdict


@pytest.mark.parametrize("codec", list(CODECS.values()))
def test_record_error_messages_append_a_diagnosis_to_kafkas_text(codec: int) -> None:
    """The texts up to the semicolon are those that Kafka 3.9 and 4.3 write."""
    found = finding_of(batch([Rec(NOW * 1_000_000), Rec(NOW, None), Rec(0)], codec))

    texts = [bad.message for bad in found.bad_records]
    told = "is out of range. The timestamp should be within [1799999999000, 1800000002000]; "
    assert texts == [
        f"Timestamp {NOW * 1_000_000} of message with offset 0 {told}looks like nanoseconds: as milliseconds it is "
        "0.0 s ago",
        "Compacted topic cannot accept message without key in topic partition t-0",
        f"Timestamp 0 of message with offset 2 {told}is 0, probably never set",
    ]
    assert found.message == "One or more records have been rejected due to invalid timestamp"


@pytest.mark.parametrize("codec", [NONE, GZIP])
def test_record_errors_of_old_messages_include_a_diagnosis(codec: int) -> None:
    plain = message(1, b"v", timestamp=NOW // 1000)
    data = plain if codec == NONE else wrapper(1, [plain], codec, timestamp=NOW // 1000)

    assert (
        finding_of(data, version=2)
        .bad_records[0]
        .message.endswith("]; looks like seconds: as milliseconds it is 0.0 s ago")
    )


@pytest.mark.parametrize("codec", [NONE, GZIP])
def test_creating_record_error_messages_yields_regularly(codec: int) -> None:
    turns = 0

    def give_way() -> None:
        nonlocal turns
        turns += 1

    data = batch([Rec(1)] * 1000, codec)
    finding_of(data, DecompressionBudget(1 << 24, 3, give_way))
    few, turns = turns, 0
    finding_of(data, DecompressionBudget(1 << 24, 1000, give_way))

    assert turns - few > 50
