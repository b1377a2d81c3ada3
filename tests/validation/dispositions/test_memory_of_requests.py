"""The memory for bad records until a response is bounded for the whole request, not for each of its batches."""

from collections import Counter

import pytest

from sluicegate.config.files.yaml_source import read_yaml
from sluicegate.config.loading import load
from sluicegate.protocol.produce_request import walk_produce_request
from sluicegate.protocol.records.codecs.decompression import Decompressor
from sluicegate.protocol.records.codecs.decompression_budget import DecompressionBudget
from sluicegate.validation.from_keys import limits_of, rulebook_of
from sluicegate.validation.produce.request import validate_request
from sluicegate.validation.rules.rule import Client
from sluicegate.validation.validated_request import ValidatedRequest
from sluicegate.validation.verdict import Finding
from tests.wire.batches import NONE, Rec, batch
from tests.wire.raw_client import produce_body, topic_data

NOW = 1_800_000_000_000
LISTED = 20
FILE = f"""
upstream: {{bootstrap: ["127.0.0.1:9"]}}
listen: {{bootstrap: "127.0.0.1:9"}}
limits: {{max_record_errors: {LISTED}}}
defaults: {{message.timestamp.after.max.ms: 1h, rules: [{{name: keyed, key: {{required: true}}}}]}}
topics:
  - {{match: marked, mode: mark}}
  - {{match: copied, mode: observe, quarantine: dead}}
  - {{match: quarantined, quarantine: dead}}
"""


def validate_records(topic: str, records: int, partitions: int) -> ValidatedRequest:
    config = load(read_yaml(FILE, "f"), {}).config
    data = batch([Rec(NOW + 10**9, None)] * records, NONE)
    body = produce_body(9, [topic_data(topic, *((number, data) for number in range(partitions)))])
    request = walk_produce_request(bytearray(body), 9, 0, 1000)
    policy = rulebook_of(config).policy_of(topic)
    budget = DecompressionBudget(1 << 30, LISTED, lambda: None)
    client = Client("a:1", "a")
    return validate_request(
        request, {}, lambda _: policy, limits_of(config), lambda: NOW, Decompressor(), budget, client=client
    )


def findings_in(found: ValidatedRequest) -> list[Finding]:
    marked = [each for one in found.marked.values() for each in one.findings]
    observed = [each for some in found.observed.values() for each in some]
    return [*marked, *observed, *found.rejected.values()]


@pytest.mark.parametrize("topic", ["marked", "copied", "quarantined"])
def test_limit_of_listed_bad_records_is_shared_by_the_batches_of_a_request(topic: str) -> None:
    found = findings_in(validate_records(topic, 50, 40))

    listed = Counter(each.reason for each in found for _ in each.bad_records)
    assert sum(each.bad_count for each in found) >= 50 * 40
    assert 0 < listed.total() <= 3 * LISTED


def test_broken_rules_are_released_after_marks_are_written() -> None:
    found = validate_records("marked", 50, 40)

    assert len(found.marked) == 40
    assert all(each.broken is None for each in findings_in(found))


def test_limit_of_kept_broken_rules_is_shared_by_batches_to_copy() -> None:
    found = findings_in(validate_records("copied", 60_000, 6))

    kept = [len(each.broken) for each in found if each.broken is not None]
    assert kept == [60_000] * 4 + [4 * 65_536 - 4 * 60_000, 0]
