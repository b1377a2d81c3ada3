"""Bad records get marks, and nothing else in their batch changes. kafka-python reads the batches back."""

from collections.abc import Sequence
from typing import Any

import pytest
from kafka.record import MemoryRecords

from sluicegate.config.files.yaml_source import read_yaml
from sluicegate.config.loading import load
from sluicegate.protocol.produce_request import walk_produce_request
from sluicegate.protocol.records.codecs.decompression import Decompressor
from sluicegate.protocol.records.codecs.decompression_budget import DecompressionBudget
from sluicegate.protocol.records.record_batch import TRANSACTIONAL
from sluicegate.validation.dispositions.marks import without_marks
from sluicegate.validation.from_keys import limits_of, rulebook_of
from sluicegate.validation.produce.request import validate_request
from sluicegate.validation.rules.rule import Client
from sluicegate.validation.validated_request import ValidatedRequest
from tests.wire.batches import CODECS, Rec, batch, message
from tests.wire.raw_client import produce_body, topic_data

NOW = 1_800_000_000_000
OLD = NOW - 7_200_000
FILE = """
upstream: {bootstrap: ["127.0.0.1:9"]}
listen: {bootstrap: "127.0.0.1:9"}
topics:
  - match: t
    mode: mark
    message.timestamp.before.max.ms: 1h
    message.timestamp.after.max.ms: 1h
    enforce: {clients: ["a*"]}
    SIZE
    rules:
      - {name: keyed, key: {required: true}}
      - {name: short, value: {max_size: 3}}
      - {name: seen, value: {required: true}, mode: observe}
"""


def validate_batch(data: bytes, size: str = "samples: false", version: int = 9, client: str = "a") -> ValidatedRequest:
    config = load(read_yaml(FILE.replace("SIZE", size), "f"), {}).config
    body = produce_body(version, [topic_data("t", (0, data))])
    request = walk_produce_request(bytearray(body), version, 0, 100)
    budget = DecompressionBudget(1 << 24, 5, lambda: None)
    sender = Client("a:1", client)
    policy = rulebook_of(config).policy_of("t").for_client(sender)
    found = validate_request(
        request, {}, lambda _: policy, limits_of(config), lambda: NOW, Decompressor(), budget, client=sender
    )
    assert found.rejected or budget.record_errors == 5, "marked records are not in responses"
    return found


def read(data: bytes) -> list[tuple[int, bytes | None, bytes | None, list[Any]]]:
    records = MemoryRecords(data)
    one = records.next_batch()
    assert one.validate_crc()
    assert records.next_batch() is None
    return [(each.timestamp, each.key, each.value, each.headers) for each in one]


def forwarded_batch(data: bytes, **options: Any) -> bytes:
    found = validate_batch(data, **options)
    assert not found.rejected
    return found.replacements().get((0, 0), data)


def mark_headers(reason: str, rules: str | None = None) -> list[tuple[str, bytes]]:
    named = [] if rules is None else [("sluicegate.rule", rules.encode())]
    return [("sluicegate.reason", reason.encode()), *named]


RULE, BEHIND = "rule_violated", "timestamp_too_old"
RECORDS: Sequence[tuple[Rec, list[tuple[str, bytes]]]] = [
    (Rec(NOW, b"k", b"v", [(b"h", b"1")]), []),
    (Rec(NOW, None, b"long", [(b"h", None)]), mark_headers(RULE, "keyed, short")),
    (Rec(OLD, b"k", b"v"), mark_headers(BEHIND)),
    (Rec(OLD, None, None), mark_headers(BEHIND, "keyed")),
    (Rec(NOW, b"k", None), []),
]


@pytest.mark.parametrize("codec", list(CODECS))
def test_mark_mode_adds_all_violations_to_bad_records_and_changes_nothing_else(codec: str) -> None:
    producer = {"producer_id": 7, "producer_epoch": 3, "base_sequence": 11, "flags": TRANSACTIONAL}
    data = batch([each for each, _ in RECORDS], CODECS[codec], **producer)

    made = forwarded_batch(data)

    headers = [[(name.decode(), value) for name, value in rec.headers] + marks for rec, marks in RECORDS]
    assert read(made) == [
        (rec.timestamp, rec.key, rec.value, own) for (rec, _), own in zip(RECORDS, headers, strict=True)
    ]
    assert made[:8] == data[:8] and made[12:17] == data[12:17] and made[21:61] == data[21:61]
    assert (len(made) > len(data)) and made != data


def test_mark_mode_forwards_good_batch_byte_for_byte() -> None:
    assert forwarded_batch(batch([Rec(NOW, b"k", b"slu", [(b"other", b"sluicegate.rule")])])) == batch(
        [Rec(NOW, b"k", b"slu", [(b"other", b"sluicegate.rule")])]
    )


@pytest.mark.parametrize("value", [b"v", b"too long"])
def test_mark_headers_sent_by_producers_are_renamed_even_in_good_records(value: bytes) -> None:
    own = [(b"sluicegate.rule", b"x"), (b"a", b"1"), (b"sluicegate.reason", None), (b"sluicegate.rules", b"")]
    marks = mark_headers(RULE, "short") if len(value) > 3 else []

    ((*_, headers),) = read(forwarded_batch(batch([Rec(NOW, b"k", value, own)])))

    renamed = [("renamed.sluicegate.rule", b"x"), ("a", b"1"), ("renamed.sluicegate.reason", None)]
    assert headers == [*renamed, ("sluicegate.rules", b""), *marks]


def test_mark_headers_stay_in_batches_of_exempt_clients() -> None:
    data = batch([Rec(NOW, None, b"v", [(b"sluicegate.rule", b"x")])])

    assert forwarded_batch(data, client="b") == data


def test_rejects_batch_that_exceeds_max_message_bytes_with_its_marks() -> None:
    data = batch([Rec(NOW, None, b"v")])
    size = len(forwarded_batch(data))

    assert forwarded_batch(data, size=f"max.message.bytes: {size}") != data
    rejected = validate_batch(data, f"max.message.bytes: {size - 1}").rejected[0, 0]
    assert (rejected.code, rejected.reason.value) == (10, "batch_too_large")


def test_reports_bound_and_rule_violations_but_observing_rules_add_no_marks() -> None:
    found = validate_batch(batch([each for each, _ in RECORDS]))

    assert [(each.reason.value, each.bad_count, each.rules) for each in found.marked[0, 0].findings] == [
        (BEHIND, 2, ()),
        (RULE, 2, (("keyed", 2), ("short", 1))),
    ]
    assert found.observed[0, 0][0].rules == (("seen", 2),)


@pytest.mark.parametrize("magic", [0, 1])
def test_mark_mode_rejects_bad_messages_of_formats_without_headers(magic: int) -> None:
    good, bad = (message(magic, b"v", key=key, timestamp=NOW) for key in (b"k", None))

    assert forwarded_batch(good, version=2) == good
    assert validate_batch(bad, version=2).rejected[0, 0].rules == (("keyed", 1),)


@pytest.mark.parametrize("data", [batch([Rec(NOW, None)], crc=1), batch([Rec(NOW, None)], count=2)])
def test_mark_mode_rejects_batch_that_is_invalid_as_a_whole(data: bytes) -> None:
    assert (0, 0) in validate_batch(data).rejected


@pytest.mark.parametrize("codec", list(CODECS))
def test_removing_marks_from_a_stored_batch_restores_the_original_batch(codec: str) -> None:
    own = [(b"sluicegate.reason", b"mine"), (b"h", b"1"), (b"sluicegate.rule", b"mine"), (b"sluicegate.rule\0x", None)]
    forged = [Rec(NOW, b"k", b"v", own), Rec(OLD, None, b"long", own)]
    records = [*(each for each, _ in RECORDS), *forged]
    sent = batch(records, CODECS[codec])
    limits = limits_of(load(read_yaml(FILE.replace("SIZE", ""), "f"), {}).config)

    found = without_marks(memoryview(forwarded_batch(sent)), limits, Decompressor())

    assert found is not None and read(found) == read(sent)
    assert without_marks(memoryview(batch(records[:1], CODECS[codec])), limits, Decompressor()) is None
    assert without_marks(memoryview(batch(forged, CODECS[codec])), limits, Decompressor()) is None
