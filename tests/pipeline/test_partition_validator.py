"""A stored batch is validated as it was sent, even if the broker or compaction has changed it."""

import pickle
import time
import zlib
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import numpy as np
import pytest

from sluicegate.pipeline.jobs.audit import partition_validator
from sluicegate.pipeline.jobs.audit.findings import AppendTimeRange, AuditFindings
from sluicegate.pipeline.jobs.audit.partition_validator import (
    PLACE,
    CannotBeValidated,
    PartitionValidator,
    batch_as_sent,
)
from sluicegate.pipeline.jobs.audit.partitions import append_time_lookup
from sluicegate.pipeline.jobs.audit.policies import policies_of
from sluicegate.pipeline.jobs.profile.append_times import AppendTimes
from sluicegate.pipeline.kafka.cluster import OffsetRange, TopicPartition
from sluicegate.pipeline.kafka.fetching import StoredBatch, stored_batches
from sluicegate.pipeline.runs.moments import BadMoment, moment_from
from sluicegate.pipeline.source.topics import Topics
from sluicegate.protocol.records.record_batch import RecordBatch
from sluicegate.validation.policy import TimeFix, TimestampType, TopicPolicy, ValidationLimits
from sluicegate.validation.rulebook import FilePolicies, Rulebook
from sluicegate.validation.rules.cel.rule import IsTrue
from sluicegate.validation.rules.rule import Mode, NamedRule, Outage, Part, RuledRecord
from sluicegate.validation.rules.rule_set import RuleSet
from tests.config.reading import SMALLEST, load_text
from tests.framing.cases import AMBIGUOUS, UNREADABLE
from tests.integration.topics import create_topic
from tests.validation.rules.inline_rule import InlineRule
from tests.wire.batches import LZ4, NONE, Rec, batch, record
from tests.wire.raw_client import RawClient, topic_data

NOW = 1_790_000_000_000
HOUR = 3_600_000
AT = AppendTimeRange(NOW, NOW, NOW)
OF = TopicPartition("t", 0)


def stored_batch(data: bytes, base_offset: int = 0) -> StoredBatch:
    whole = memoryview(base_offset.to_bytes(8) + data[8:])
    header = RecordBatch(whole, 0, len(whole))
    return StoredBatch(whole, 0, len(whole), base_offset, base_offset + header.last_offset_delta, header)


def validate_by(policy: TopicPolicy) -> PartitionValidator:
    return PartitionValidator(OF, Rulebook(FilePolicies(policy, ())), ValidationLimits())


def test_records_with_log_append_time_are_validated_as_sent(kafka_bootstrap: str) -> None:
    topic = create_topic(kafka_bootstrap, {"message.timestamp.type": "LogAppendTime"}, 1)
    sent = [batch([Rec(time_ms) for time_ms in (7, NOW * 1000)], codec) for codec in (NONE, LZ4)]
    before = time.time_ns() // 1_000_000
    with RawClient(kafka_bootstrap.split(",", maxsplit=1)[0]) as client:
        for data in sent:
            client.produce(9, [topic_data(topic, (0, data))])
    after = time.time_ns() // 1_000_000
    cluster = Topics(kafka_bootstrap, (topic,)).cluster()
    found = [*stored_batches(cluster, OffsetRange(TopicPartition(topic, 0), 0, 4), committed=True)]
    cluster.close()

    frames = [batch_as_sent(each) for each in found]

    # All fields except the leader's epoch, the CRC, and the largest time, which is the append time.
    assert [(f[:12], f[16:17], f[21:35], f[43:]) for f in frames] == [
        (s[:12], s[16:17], s[21:35], s[43:]) for s in sent
    ]
    moment = append_time_lookup(AppendTimes.between(0, 1))
    assert all(before <= time <= after for each in found for time in moment(each))
    policy = TopicPolicy(before_max_ms=HOUR, after_max_ms=HOUR)
    assert [validate_by(policy).validate(each, NOW).rejected[PLACE].bad_count for each in found] == [2, 2]
    by_broker = TopicPolicy(TimestampType.LOG_APPEND_TIME, before_max_ms=HOUR, after_max_ms=HOUR)
    assert [validate_by(by_broker).validate(each, NOW).accepted[PLACE].records for each in found] == [2, 2]


@pytest.mark.parametrize("value", [None, b"", b"no json", b'{"email": null}', b'{"email": 7}', b"[1, 2]"])
def test_expression_error_is_reported_as_violation_of_the_record(value: bytes | None) -> None:
    rules = RuleSet([NamedRule("mail", IsTrue("value.email.matches('.+@.+')"))])
    audit = validate_by(TopicPolicy(rules=rules))

    validated = audit.validate(stored_batch(batch([Rec(NOW, b"k", value), Rec(NOW, b"k", b'{"email": "a@b"}')])), NOW)

    assert validated.rejected[PLACE].bad_count == 1
    assert [name for name, _ in validated.rejected[PLACE].rules] == ["mail"]


def test_compaction_gaps_cause_no_findings_and_stored_offsets_are_reported() -> None:
    whole = batch([Rec(NOW), Rec(NOW), Rec(NOW, key=None)], last_offset_delta=9)
    policy = TopicPolicy(compacted=True)
    findings = AuditFindings(OF, samples=5)
    each = stored_batch(whole, base_offset=100)

    validated = validate_by(policy).validate(each, NOW)
    findings.add(each, validated, AT)

    assert validated.rejected[PLACE].bad_count == 1
    (sample,) = [row for row in findings.table(()).to_pylist() if row["what"] == "samples"]
    assert (sample["first_offset"], sample["reason"]) == (102, "null_key")


@pytest.mark.parametrize(
    ("policy", "verdict"),
    [
        (TopicPolicy(after_max_ms=HOUR), "reject"),
        (TopicPolicy(after_max_ms=HOUR, mode=Mode.OBSERVE), "observe"),
        (TopicPolicy(after_max_ms=HOUR, mode=Mode.QUARANTINE, dead_letters="dead"), "quarantine"),
        (TopicPolicy(after_max_ms=HOUR, fix=TimeFix.UNIT), "fix"),
        (TopicPolicy(after_max_ms=HOUR, checked=False), "unchecked"),
    ],
)
def test_the_verdict_on_a_batch_follows_its_policy(policy: TopicPolicy, verdict: str) -> None:
    findings = AuditFindings(OF, samples=5)
    each = stored_batch(batch([Rec(NOW), Rec(NOW * 1_000_000), Rec(NOW)]))

    findings.add(each, validate_by(policy).validate(each, NOW), AT)

    rows = findings.table(()).to_pylist()
    (whole,) = [row for row in rows if row["what"] == "batches"]
    report = [(row["verdict"], row["reason"], row["bad_records"]) for row in rows if row["what"] == "findings"]
    assert (whole["verdict"], whole["records"]) == (verdict, 3)
    assert report == ([] if verdict == "unchecked" else [(verdict, "timestamp_in_future", 1)])


def test_compaction_offset_gaps_cause_no_violation() -> None:
    left = b"".join(record(Rec(NOW), index, NOW) for index in (2, 5, 9))
    each = stored_batch(batch([Rec(NOW)] * 3, payload=left, last_offset_delta=9))

    assert validate_by(TopicPolicy()).validate(each, NOW).accepted[PLACE].records == 3


@pytest.mark.parametrize(
    ("case", "verdict", "reason"),
    [
        ("a record within a record, zstd", "reject", "ambiguous_framing"),
        ("an empty raw block, lz4", "reject", "ambiguous_framing"),
        ("trailing bytes, lz4", "observe", "unreadable_framing"),
        ("half a skippable frame after it, zstd", "observe", "unreadable_framing"),
    ],
)
def test_batches_that_some_clients_cannot_read_are_findings(case: str, verdict: str, reason: str) -> None:
    batch_of_two = stored_batch({**AMBIGUOUS, **UNREADABLE}[case](NOW), 5)
    findings = AuditFindings(OF, samples=5)

    findings.add(batch_of_two, validate_by(TopicPolicy()).validate(batch_of_two, NOW), AT)

    rows = findings.table(missing=()).to_pylist()
    found = [(row["verdict"], row["reason"], row["records"]) for row in rows if row["what"] == "findings"]
    assert found == [(verdict, reason, 2)]
    assert [row["first_offset"] for row in rows if row["what"] == "samples"] == [5]
    assert [row["verdict"] for row in rows if row["what"] == "batches"] == [verdict]


def test_a_stored_batch_with_a_wrong_crc_is_a_crc_mismatch() -> None:
    validated = validate_by(TopicPolicy()).validate(stored_batch(batch([Rec(NOW)], crc=7, last_offset_delta=3)), NOW)

    assert validated.rejected[PLACE].reason == "crc_mismatch"


@pytest.mark.parametrize("compression", [0, 5])
def test_values_of_glues_serializers_are_validated_by_the_schemas_of_a_folder(tmp_path: Path, compression: int) -> None:
    """The policies are pickled first, as for executors."""
    version = UUID(int=1)
    (tmp_path / f"{version}.json").write_text('{"type": "object", "required": ["a"]}')
    text = (
        f"{SMALLEST}registries: {{main: {{type: glue, folder: '{tmp_path}'}}}}\n"
        "topics: [{match: t, rules: ["
        "{name: shape, value: {schema: {registry: main, format: json}}, cel: 'value.a > 1'}]}]\n"
    )
    policies = pickle.loads(pickle.dumps(policies_of(load_text(text).config, {})))
    pack = zlib.compress if compression else bytes
    values = [
        bytes([3, compression]) + version.bytes + pack(value) for value in (b'{"a": 2}', b'{"b": 2}', b'{"a": 1}')
    ]
    audit = PartitionValidator(OF, policies.rulebook(), ValidationLimits())

    validated = audit.validate(stored_batch(batch([Rec(NOW, b"k", value) for value in values])), NOW)

    assert validated.rejected[PLACE].bad_count == 2


class _Down(InlineRule):
    parts = Part.NONE
    is_slow = False

    def fault(self, record: RuledRecord) -> str | None:
        raise Outage("registry main is unavailable: no route")


def test_rule_outage_raises_an_error_instead_of_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_validator, "TIMEOUT_SECONDS", 0.0)
    policy = TopicPolicy(rules=RuleSet([NamedRule("schema", _Down())]))

    with pytest.raises(
        CannotBeValidated, match=r"t-0: rule schema cannot be evaluated .* no route.* from offset 40 on"
    ):
        validate_by(policy).validate(stored_batch(batch([Rec(NOW)]), 40), NOW)


@pytest.mark.parametrize(
    ("last", "at"), [(0, (1000, 1000)), (9, (1000, 1000)), (10, (1000, 2000)), (19, (1000, 2000)), (99, (2000, NOW))]
)
def test_a_batchs_append_time_is_between_the_surrounding_known_append_times(last: int, at: tuple[int, int]) -> None:
    steps = (np.array([10, 20]), np.array([1000, 2000]))
    times = replace(AppendTimes.between(0, NOW), offsets=steps[0], times=steps[1])
    each = stored_batch(batch([Rec(NOW)], last_offset_delta=0), last)

    found = append_time_lookup(times)(each)

    assert (found.earliest_ms, found.next_step_ms, found.latest_ms) == (*at, NOW)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("now", NOW),
        ("1767225600000", 1_767_225_600_000),
        ("2026-01-01", 1_767_225_600_000),
        ("2026-01-01T01:00:00+01:00", 1_767_225_600_000),
    ],
)
def test_parses_moment_as_iso_time_or_relative_time(text: str, found: int) -> None:
    assert moment_from(text, NOW) == found


@pytest.mark.parametrize("text", ["yesterday", "", "12", "2026-13-01", "9" * 30])
def test_an_invalid_moment_is_reported(text: str) -> None:
    with pytest.raises(BadMoment, match="--as-of: expected now, a date"):
        moment_from(text, NOW)
