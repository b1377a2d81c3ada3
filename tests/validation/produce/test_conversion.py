"""Old messages are converted within limits. tests/conformance/test_legacy_producers.py compares the batches with those
that a broker stores.
"""

import pytest

from sluicegate.protocol.errors import ErrorCode
from sluicegate.protocol.headers import build_request_header
from sluicegate.protocol.produce_request import walk_produce_request
from sluicegate.protocol.records.codecs.decompression import Decompressor
from sluicegate.protocol.records.codecs.decompression_budget import Abandoned, DecompressionBudget
from sluicegate.validation.policy import TopicPolicy, ValidationLimits
from sluicegate.validation.produce.conversion import ConvertedRequest, convert_request
from sluicegate.validation.rules.rule import Mode
from sluicegate.validation.verdict import Accepted, Finding, Reason
from tests.wire.batches import CODECS, GZIP, Rec, batch, message, wrapper
from tests.wire.raw_client import produce_body, topic_data

NOW = 1_800_000_000_000
LIMITS = ValidationLimits()


def converted(
    *records: bytes | None, policy: TopicPolicy | None = None, limits: ValidationLimits = LIMITS, version: int = 2
) -> ConvertedRequest:
    header = build_request_header(0, version, 1, "old", 1)
    body = produce_body(version, [topic_data("orders", *enumerate(records))])
    request = walk_produce_request(bytearray(header + body), version, len(header), 1000)
    budget = DecompressionBudget(limits.max_decompressed_bytes, limits.max_record_errors, lambda: None)
    topic = policy if policy is not None else TopicPolicy()
    return convert_request(request, lambda _: topic, limits, lambda: NOW, Decompressor(), budget)


def finding_in(found: ConvertedRequest) -> Finding:
    verdict = found.settled[0, 0]
    assert isinstance(verdict, Finding)
    return verdict


def test_old_messages_are_converted_to_a_magic_2_batch() -> None:
    old = b"".join(message(1, b"v", key=b"k", timestamp=NOW + i) for i in range(3))

    found = converted(old)

    assert found.settled == {}
    expected = batch([Rec(NOW + i) for i in range(3)])
    assert bytes(found.request.records(0, 0) or b"") == expected


def test_magic_2_batch_in_an_old_request_is_not_converted() -> None:
    current = batch([Rec(NOW)], GZIP)

    assert bytes(converted(current).request.records(0, 0) or b"") == current


@pytest.mark.parametrize("codec", [CODECS[name] for name in CODECS if name not in ("none", "zstd")])
@pytest.mark.parametrize(
    ("limits", "limit"),
    [
        (ValidationLimits(max_decompressed_bytes=50_000), "limits.max_decompressed_bytes"),
        (ValidationLimits(ratio_free_bytes=1000, max_decompression_ratio=2), "limits.max_decompression_ratio"),
    ],
)
def test_conversion_rejects_payload_over_a_limit(codec: int, limits: ValidationLimits, limit: str) -> None:
    bomb = wrapper(1, [message(1, bytes(300_000), timestamp=NOW)], codec, timestamp=NOW)

    found = finding_in(converted(bomb, limits=limits))

    assert (found.code, found.reason, found.limit) == (
        ErrorCode.INVALID_RECORD,
        Reason.DECOMPRESSION_LIMIT,
        limit,
    )


def test_conversion_can_be_abandoned_within_a_message_set() -> None:
    calls = []

    def give_way() -> None:
        calls.append(1)
        if len(calls) > 3:
            raise Abandoned

    header = build_request_header(0, 1, 1, "old", 1)
    records = message(0, b"v") * 100_000
    frame = bytearray(header + produce_body(1, [topic_data("orders", (0, records))]))
    budget = DecompressionBudget(1 << 30, 0, give_way)

    with pytest.raises(Abandoned):
        convert_request(
            walk_produce_request(frame, 1, len(header), 10),
            lambda _: TopicPolicy(),
            LIMITS,
            lambda: NOW,
            Decompressor(),
            budget,
        )


@pytest.mark.parametrize("policy", [TopicPolicy(mode=Mode.OBSERVE), TopicPolicy(checked=False)])
def test_rejects_unconvertible_messages_in_every_mode(policy: TopicPolicy) -> None:
    found = converted(message(1, b"v", timestamp=NOW, crc=5), message(0, b"v"), policy=policy)

    assert finding_in(found).code == ErrorCode.CORRUPT_MESSAGE
    assert (0, 1) not in found.settled


def test_conversion_accepts_empty_message_set_and_rejects_null() -> None:
    found = converted(b"", None, message(1, b"v", timestamp=NOW)[:-1])

    empty, null, cut = (found.settled[0, p] for p in range(3))
    assert isinstance(empty, Accepted)
    assert isinstance(null, Finding)
    assert isinstance(cut, Accepted)
