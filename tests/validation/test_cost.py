"""Counted work, kept objects and texts bound the cost of validating a request, whatever its bytes contain."""

import gzip
import tracemalloc
from collections.abc import Callable

import pytest
import zstandard

from sluicegate.protocol.errors import ErrorCode
from sluicegate.protocol.produce_request import walk_produce_request
from sluicegate.protocol.records.codecs.decompression import Decompressor
from sluicegate.protocol.records.codecs.decompression_budget import Abandoned, DecompressionBudget
from sluicegate.validation.policy import TopicPolicy, ValidationLimits
from sluicegate.validation.produce.request import validate_request
from sluicegate.validation.validated_request import ValidatedRequest
from sluicegate.validation.validator import Submission, validate_partition
from sluicegate.validation.verdict import Accepted, Finding, Reason, Verdict
from tests.wire.batches import CODECS, GZIP, NONE, SNAPPY, ZSTD, Rec, batch, identical_records, message, record, wrapper
from tests.wire.raw_client import produce_body, topic_data

NOW = 1_800_000_000_000
MIB = 1 << 20
BOUNDED = TopicPolicy(before_max_ms=1000)
COMPACTED = TopicPolicy(before_max_ms=1000, compacted=True)
LIMITS = ValidationLimits()
ANY_RATIO = ValidationLimits(max_decompression_ratio=1_000_000)


def never_yield() -> None: ...


def budget_of(plain_bytes: int = 128 * MIB, record_errors: int = 1000) -> DecompressionBudget:
    return DecompressionBudget(plain_bytes, record_errors, never_yield)


def validate_partitions(
    version: int, *partitions: bytes | None, budget: DecompressionBudget | None = None, policy: TopicPolicy = BOUNDED
) -> ValidatedRequest:
    body = bytearray(produce_body(version, [topic_data("t", *enumerate(partitions))]))
    request = walk_produce_request(body, version, 0, 20_000)
    given = budget if budget is not None else budget_of()
    return validate_request(request, {}, lambda _: policy, LIMITS, lambda: NOW, Decompressor(), given)


def validate(
    data: bytes,
    policy: TopicPolicy = BOUNDED,
    version: int = 8,
    budget: DecompressionBudget | None = None,
    decompressor: Decompressor | None = None,
    limits: ValidationLimits = LIMITS,
) -> Verdict:
    submission = Submission("t", 0, memoryview(data), version)
    given = budget if budget is not None else budget_of()
    return validate_partition(submission, policy, limits, NOW, decompressor or Decompressor(), given)


def equal_records(rec: Rec, count: int, codec: int) -> bytes:
    """A batch of `count` records that are all the same."""
    return batch(
        [], codec, payload=identical_records(rec, count, NOW), count=count, base_timestamp=NOW, max_timestamp=NOW
    )


def peak_of(run: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("codec", [NONE, ZSTD])
def test_all_bad_records_are_counted_but_only_the_first_are_listed(codec: int) -> None:
    bad = equal_records(Rec(1), 50_000, codec)

    found = validate_partitions(8, *[bad] * 4)

    assert [rejected.bad_count for rejected in found.rejected.values()] == [50_000] * 4
    assert [len(rejected.bad_records) for rejected in found.rejected.values()] == [1000, 0, 0, 0]
    assert {(rejected.code, rejected.reason) for rejected in found.rejected.values()} == {
        (ErrorCode.INVALID_TIMESTAMP, Reason.TIMESTAMP_TOO_OLD)
    }


def test_creates_no_error_message_for_unlisted_records() -> None:
    """Regression: a message for every bad record took 3.5 GB for 14 kB."""
    bad = equal_records(Rec(1), 20_000, ZSTD)

    assert peak_of(lambda: validate_partitions(8, *[bad] * 5)) < 8 * MIB


def test_batch_error_message_equals_kafkas_if_no_records_are_listed() -> None:
    keyless = equal_records(Rec(NOW, None), 5000, ZSTD)

    found = validate(keyless, COMPACTED, budget=budget_of(record_errors=0))

    assert isinstance(found, Finding)
    assert (found.code, found.bad_records, found.bad_count) == (ErrorCode.INVALID_RECORD, (), 5000)
    assert found.message is not None
    assert "due to 5000 record errors in total" in found.message
    assert found.message.count("RecordError(batchIndex=") == 3


@pytest.mark.parametrize("codec", [NONE, GZIP])
def test_unlisted_bad_timestamp_determines_the_error_code(codec: int) -> None:
    payload = identical_records(Rec(NOW, None), 5000, NOW) + record(Rec(1), 5000, NOW)
    data = batch([], codec, payload=payload, count=5001, base_timestamp=NOW, max_timestamp=NOW)

    found = validate(data, COMPACTED)

    assert isinstance(found, Finding)
    assert (found.code, found.reason) == (ErrorCode.INVALID_TIMESTAMP, Reason.TIMESTAMP_TOO_OLD)
    assert (len(found.bad_records), found.bad_count) == (1000, 5001)
    assert {bad.reason for bad in found.bad_records} == {Reason.NULL_KEY}


def test_decompressed_bytes_are_bounded_for_all_batches_of_a_request() -> None:
    """Regression: each batch was bounded, but not a request of a thousand batches."""
    mebibyte = equal_records(Rec(NOW, b"", b"v" * 1000), 1030, ZSTD)
    small = budget_of(plain_bytes=4_000_000)

    found = validate_partitions(8, *[mebibyte] * 10, budget=small)

    assert small.exhausted
    assert (len(found.accepted), len(found.rejected)) == (3, 7)
    text = found.rejected[0, 9].message
    assert text is not None
    assert "limits.max_decompressed_bytes" in text
    assert "t-9" in text


@pytest.mark.parametrize(
    ("data", "key"),
    [
        (equal_records(Rec(NOW, b"", bytes(100_000)), 30, ZSTD), "limits.max_decompression_ratio"),
        (batch([Rec(NOW, b"", bytes(17 * MIB))], SNAPPY), "limits.max_decompression_window_bytes"),
    ],
)
def test_decompression_rejection_names_the_exceeded_limit(data: bytes, key: str) -> None:
    budget = budget_of()

    found = validate(data, budget=budget)

    assert isinstance(found, Finding)
    assert (found.code, found.reason) == (ErrorCode.INVALID_RECORD, Reason.DECOMPRESSION_LIMIT)
    assert found.message is not None
    assert key in found.message
    assert not budget.exhausted


@pytest.mark.parametrize("name", ["none", "gzip", "lz4", "zstd"])
def test_validating_a_large_batch_uses_the_memory_of_one_piece(name: str) -> None:
    data = equal_records(Rec(NOW, b"k", bytes(range(200))), 80_000, CODECS[name])
    verdicts: list[Verdict] = []

    peak = peak_of(lambda: verdicts.append(validate(data, limits=ANY_RATIO)))

    assert isinstance(verdicts[0], Accepted)
    assert verdicts[0].records == 80_000
    assert peak < 9 * MIB


@pytest.mark.parametrize("codec", [NONE, GZIP])
def test_validating_many_old_messages_uses_constant_memory(codec: int) -> None:
    """Regression: 1.76 million messages in 175 kB took 32 s and 960 MB."""
    messages = message(1, b"", key=None, timestamp=NOW) * 60_000
    data = messages if codec == NONE else message(1, gzip.compress(messages), key=None, codec=codec, timestamp=NOW)
    verdicts: list[Verdict] = []

    peak = peak_of(lambda: verdicts.append(validate(data, version=2)))

    assert isinstance(verdicts[0], Accepted)
    assert verdicts[0].records == 60_000
    assert peak < 2 * MIB


def test_old_messages_count_with_overhead_against_the_decompression_budget() -> None:
    messages = message(1, b"", key=None, timestamp=NOW) * 100_000
    budget = budget_of(plain_bytes=8 * MIB)

    found = validate(message(1, gzip.compress(messages), key=None, codec=GZIP, timestamp=NOW), version=2, budget=budget)

    assert isinstance(found, Finding)
    assert found.reason is Reason.DECOMPRESSION_LIMIT
    assert budget.exhausted


def test_an_old_message_beyond_the_decompression_window_is_rejected() -> None:
    large = message(1, bytes(20 * MIB), key=None, timestamp=NOW)
    fits = message(1, bytes(10 * MIB), key=None, timestamp=NOW)
    compressed = [message(1, gzip.compress(inner), key=None, codec=GZIP, timestamp=NOW) for inner in (large, fits)]

    rejected, accepted = (validate(data, version=2, limits=ANY_RATIO) for data in compressed)

    assert isinstance(rejected, Finding)
    assert rejected.message is not None
    assert "limits.max_decompression_window_bytes" in rejected.message
    assert isinstance(accepted, Accepted)


@pytest.mark.parametrize(
    ("make", "version"),
    [
        (lambda: equal_records(Rec(NOW), 500_000, NONE), 8),
        (lambda: equal_records(Rec(NOW), 500_000, ZSTD), 8),
        (lambda: equal_records(Rec(1), 500_000, GZIP), 8),
        (lambda: message(1, b"", key=None, timestamp=NOW) * 100_000, 2),
        (lambda: batch([Rec(NOW)], payload=b"", count=1) * 50_000, 2),
        (lambda: message(1, gzip.compress(message(1, b"", timestamp=NOW) * 100_000), key=None, codec=GZIP), 2),
    ],
    ids=["plain", "zstd", "gzip", "magic 1", "empty batches", "magic 1, gzip"],
)
def test_a_validation_yields_regularly_and_can_be_abandoned(make: Callable[[], bytes], version: int) -> None:
    data = make()
    called = 0

    def give_way() -> None:
        nonlocal called
        called += 1
        if called == 3:
            raise Abandoned

    decompressor = Decompressor()
    with pytest.raises(Abandoned):
        validate(
            data, version=version, budget=DecompressionBudget(128 * MIB, 1000, give_way), decompressor=decompressor
        )

    assert isinstance(validate(batch([Rec(NOW)], ZSTD), decompressor=decompressor), Accepted)


def test_validating_many_empty_partitions_yields_regularly() -> None:
    called = 0

    def give_way() -> None:
        nonlocal called
        called += 1

    found = validate_partitions(8, *[None, b""] * 5000, budget=DecompressionBudget(0, 0, give_way))

    assert len(found.rejected) == 10_000
    assert called > 100
    assert len({id(rejected) for rejected in found.rejected.values()}) == 1


@pytest.mark.parametrize("name", [name for name, codec in CODECS.items() if codec != NONE])
@pytest.mark.parametrize("most", [1, 2, 3, 17, 1000])
def test_verdict_does_not_depend_on_the_decompression_piece_size(name: str, most: int) -> None:
    headers = [(b"h", b"x" * 10), (b"n", None)]
    records = [Rec(NOW + i - 20, b"k" * (i % 7) or None, b"v" * (i * 37 % 500), headers[: i % 3]) for i in range(60)]
    good = batch(records, CODECS[name])
    short = batch(records, CODECS[name], count=61)
    long = batch(records, CODECS[name], count=59)
    policy = TopicPolicy(before_max_ms=10, compacted=True)

    for data in (good, short, long):
        expected = validate(data, policy)
        found = validate(data, policy, decompressor=Decompressor(most))
        assert comparable_verdict(found) == comparable_verdict(expected)
    inner = b"".join(message(1, rec.value, key=rec.key, timestamp=rec.timestamp) for rec in records)
    if CODECS[name] != ZSTD:
        old = wrapper(1, [inner], CODECS[name], timestamp=NOW)
        assert comparable_verdict(validate(old, policy, 2, decompressor=Decompressor(most))) == comparable_verdict(
            validate(old, policy, 2)
        )


def comparable_verdict(verdict: Verdict) -> object:
    return (verdict.records, verdict.ahead_ms) if isinstance(verdict, Accepted) else verdict


def test_empty_zstd_frames_count_against_the_budget() -> None:
    budget = budget_of(plain_bytes=4 * MIB)
    data = batch([], ZSTD, compressed=zstandard.compress(b"") * 20_000, count=1, base_timestamp=NOW, max_timestamp=NOW)

    assert isinstance(validate(data, budget=budget), Finding)
    assert budget.exhausted
