"""When a request is validated, its rules apply to the right clients, reject violations, and report them."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pytest

from sluicegate.protocol.errors import ErrorCode
from sluicegate.protocol.produce_request import walk_produce_request
from sluicegate.protocol.records.codecs.decompression import Decompressor
from sluicegate.protocol.records.codecs.decompression_budget import DecompressionBudget, OutOfTime
from sluicegate.validation.outcome import Waiver
from sluicegate.validation.policy import EXEMPT, TimeFix, TopicPolicy, ValidationLimits
from sluicegate.validation.produce.request import validate_request
from sluicegate.validation.requests.name_pattern import EnforcedClients
from sluicegate.validation.requests.request_rule import RequestCheck
from sluicegate.validation.rules.built_in import Required, Size, Utf8
from sluicegate.validation.rules.headers import RequiredHeaders
from sluicegate.validation.rules.rule import (
    INLINE_STEPS,
    UNBOUNDED,
    Client,
    Mode,
    NamedRule,
    OnOutage,
    OnSchemaError,
    Outage,
    Part,
    RecordRule,
    RuledRecord,
    SchemaError,
    Side,
    StepBudget,
)
from sluicegate.validation.rules.rule_set import RuleSet
from sluicegate.validation.validated_request import ValidatedRequest
from sluicegate.validation.verdict import BadRecord, Finding, Reason
from tests.validation.rules.inline_rule import InlineRule
from tests.wire.batches import CODECS, NONE, Rec, batch, message, wrapper
from tests.wire.raw_client import produce_body, topic_data

NOW = 1_800_000_000_000
KEYED = NamedRule("keyed", Required(Side.KEY))
SMALL = NamedRule("small", Size(Side.VALUE, 1, 10))
TEXT = NamedRule("text", Utf8(Side.VALUE), Mode.OBSERVE)


class RecordingRule(InlineRule):
    """A rule that only records the records that it gets."""

    def __init__(self, parts: Part, is_slow: bool = False, raises: Exception | None = None) -> None:
        self.parts = parts
        self.is_slow = is_slow
        self.raises = raises
        self.records: list[tuple[object, ...]] = []

    def fault(self, record: RuledRecord) -> str | None:
        self.records.append((record.index, record.timestamp, record.key, record.value, record.headers, record.client))
        if self.raises is not None:
            raise self.raises
        return None


def policy_with_rules(*rules: NamedRule, mode: Mode = Mode.REJECT, **more: object) -> TopicPolicy:
    return TopicPolicy(before_max_ms=1000, mode=mode, rules=RuleSet(rules), **more)


def validate_partitions(
    policy: TopicPolicy,
    *partitions: bytes,
    version: int = 8,
    client: Client | None = None,
    errors: int = 1000,
    most_at_once: int = 1 << 62,
    give_way: Callable[[], None] = lambda: None,
) -> ValidatedRequest:
    body = produce_body(version, [topic_data("t", *enumerate(partitions))])
    budget = DecompressionBudget(1 << 24, errors, give_way, most_at_once)
    request = walk_produce_request(bytearray(body), version, 0, 100)
    known = ({}, lambda _: policy, ValidationLimits(), lambda: NOW, Decompressor(), budget, None)
    return validate_request(request, *known, client=client)


@pytest.mark.parametrize("codec", list(CODECS.values()))
def test_violations_of_a_record_are_listed_in_the_order_of_the_rules(codec: int) -> None:
    records = [Rec(NOW), Rec(NOW, None, b""), Rec(NOW, None), Rec(NOW, b"k", b"v" * 11)]

    found = validate_partitions(policy_with_rules(KEYED, SMALL), batch(records, codec), batch(records[:1], codec))

    assert set(found.accepted) == {(0, 1)}
    rejected = found.rejected[0, 0]
    null = "rule keyed: the key is null; send a key"
    least = "rule small: the value has 0 bytes; at least 1 are required"
    most = "rule small: the value has 11 bytes; at most 10 are allowed"
    assert (rejected.code, rejected.reason, rejected.bad_count, rejected.records) == (87, Reason.RULE_VIOLATED, 3, 4)
    assert rejected.bad_records == (
        BadRecord(1, NOW, Reason.RULE_VIOLATED, f"{null}; {least}", rules=("keyed", "small")),
        BadRecord(2, NOW, Reason.RULE_VIOLATED, null, rules=("keyed",)),
        BadRecord(3, NOW, Reason.RULE_VIOLATED, most, rules=("small",)),
    )
    assert rejected.rules == (("keyed", 2), ("small", 2))
    assert rejected.message is not None and rejected.message.startswith(
        "One or more records have been rejected due to 3 record errors in total, and only showing the first three"
    )


def test_broker_checks_are_applied_before_rules() -> None:
    seen = RecordingRule(Part.VALUE)

    found = validate_partitions(
        policy_with_rules(KEYED, NamedRule("seen", seen)), batch([Rec(1, None)]), batch([Rec(NOW, None)], crc=5)
    )

    assert [rejected.code for rejected in found.rejected.values()] == [ErrorCode.INVALID_TIMESTAMP, 2]
    assert seen.records == []


def test_rule_gets_only_the_record_parts_that_it_requires() -> None:
    client = Client("a:1", "app")
    key, headers = RecordingRule(Part.KEY), RecordingRule(Part.HEADERS)
    records = [Rec(NOW - 5, b"k", b"secret", [(b"h", b"1"), (b"h", None)])]

    validate_partitions(policy_with_rules(NamedRule("k", key)), batch(records, CODECS["zstd"]), client=client)
    validate_partitions(policy_with_rules(NamedRule("h", headers)), batch(records), client=client)

    assert key.records == [(0, NOW - 5, b"k", None, (), client)]
    assert headers.records == [(0, NOW - 5, None, None, ((b"h", b"1"), (b"h", None)), client)]


def test_violation_of_an_observed_rule_is_reported_but_not_rejected() -> None:
    bad = batch([Rec(NOW, b"k", b"\xff"), Rec(NOW)])

    found = validate_partitions(
        policy_with_rules(KEYED, TEXT), bad, batch([Rec(NOW, None, b"\xff")]), batch([Rec(NOW)])
    )

    assert set(found.accepted) == {(0, 2)}
    assert set(found.rejected) == {(0, 1)}
    assert {place: told.rules for place, (told,) in found.observed.items()} == {
        (0, 0): (("text", 1),),
        (0, 1): (("text", 1),),
    }


def test_observed_violations_do_not_consume_the_record_error_limit() -> None:
    found = validate_partitions(
        policy_with_rules(KEYED, mode=Mode.OBSERVE),
        batch([Rec(NOW, None)] * 700),
        batch([Rec(NOW, None)] * 300),
        errors=5,
    )

    assert (found.rejected, found.accepted) == ({}, {})
    assert [told.bad_count for (told,) in found.observed.values()] == [700, 300]


SEVERAL = (
    KEYED,
    TEXT,
    SMALL,
    NamedRule("traced", RequiredHeaders(("trace",)), Mode.OBSERVE),
    NamedRule("few", Size(Side.KEY, 0, 2), Mode.OBSERVE),
)
ENFORCED = policy_with_rules(*SEVERAL)


def observed_findings(found: ValidatedRequest) -> Iterator[Finding]:
    yield from found.rejected.values()
    yield from (each for several in found.observed.values() for each in several)
    yield from (each for marked in found.marked.values() for each in marked.findings)


def violations_by_rule(found: ValidatedRequest) -> Counter[str]:
    return sum((Counter(dict(each.rules)) for each in observed_findings(found)), Counter())


@pytest.mark.parametrize(
    "policy",
    [
        replace(ENFORCED, mode=Mode.OBSERVE),
        replace(ENFORCED, mode=Mode.OBSERVE, dead_letters="copies"),
        replace(ENFORCED, mode=Mode.OBSERVE, samples=True),
        replace(ENFORCED, mode=Mode.QUARANTINE, dead_letters="bad"),
        replace(ENFORCED, mode=Mode.MARK),
        replace(ENFORCED, enforced=EnforcedClients(percent=0)).for_client(Client("a:1")),
        replace(ENFORCED, mode=Mode.QUARANTINE, dead_letters="bad").observing(),
    ],
    ids=["observe", "copy", "samples", "quarantine", "mark", "not enforced", "suspended"],
)
@pytest.mark.parametrize("version", [0, 2, 8])
def test_each_rule_counts_the_same_violations_in_each_mode(policy: TopicPolicy, version: int) -> None:
    contents = [(b"k", b"v"), (None, b"\xff"), (b"key", b"\xff"), (None, b"v" * 11), (b"key", b"\xff" * 11)]
    magic = 0 if version == 0 else 1
    old = [message(magic, value, key=key, timestamp=NOW, offset=i) for i, (key, value) in enumerate(contents)]
    new = batch([Rec(NOW, key, value, [(b"trace", b"")] * (i % 2)) for i, (key, value) in enumerate(contents)])
    data = new if version == 8 else b"".join(old)

    found = validate_partitions(policy, data, version=version)

    assert violations_by_rule(found) == violations_by_rule(validate_partitions(ENFORCED, data, version=version))
    assert violations_by_rule(found) == {
        "keyed": 2,
        "text": 3,
        "small": 2,
        "few": 2,
        "traced": 3 if version == 8 else 5,
    }
    if policy.mode is Mode.OBSERVE:
        ((deciding, other),) = found.observed.values()
        assert [name for name, _ in deciding.rules] == ["keyed", "small"], "the rejecting rule first"
        assert deciding.bad_count == 3 and other.bad_count == (4 if version == 8 else 5)
        assert found.records_of((0, 0)) == (5 if version == 8 else deciding.records)
    if policy.dead_letters is not None:
        assert {name for name, _ in found.to_quarantine[0, 0][0].rules} == {"keyed", "small"}, "no others are copied"


@pytest.mark.parametrize("mode", [Mode.REJECT, Mode.OBSERVE])
def test_outage_or_request_rule_does_not_hide_violations_of_another_rule(mode: Mode) -> None:
    down = NamedRule("down", RecordingRule(Part.NONE, raises=Outage("down")), on_outage=OnOutage.FORWARD)
    policy = replace(
        policy_with_rules(down, KEYED, mode=mode), requests=(RequestCheck("idem", Mode.OBSERVE, idempotent=True),)
    )

    found = validate_partitions(policy, batch([Rec(NOW, None)]))

    assert [(each.reason, each.rules) for each in observed_findings(found)] == [
        (Reason.RULE_VIOLATED, (("keyed", 1),)),
        (Reason.DEPENDENCY_UNAVAILABLE, (("down", 0),)),
        (Reason.REQUEST_RULE_VIOLATED, (("idem", 0),)),
    ]


def test_listed_record_errors_stay_within_the_response_limit() -> None:
    found = validate_partitions(
        policy_with_rules(KEYED), batch([Rec(NOW, None)] * 50), batch([Rec(NOW, None)] * 50), errors=60
    )

    assert [len(rejected.bad_records) for rejected in found.rejected.values()] == [50, 10]
    assert [rejected.bad_count for rejected in found.rejected.values()] == [50, 50]


def test_rules_are_evaluated_on_fixed_timestamps() -> None:
    seen = RecordingRule(Part.NONE)
    policy = policy_with_rules(KEYED, NamedRule("seen", seen), fix=TimeFix.NOW)

    found = validate_partitions(policy, batch([Rec(1)]), batch([Rec(1, None)]))

    assert set(found.fixed) == {(0, 0)}
    assert {place: rejected.reason for place, rejected in found.rejected.items()} == {(0, 1): Reason.RULE_VIOLATED}
    assert [time for _, time, *_ in seen.records] == [NOW, NOW]


@pytest.mark.parametrize(
    ("on_outage", "code", "words"),
    [
        (OnOutage.RETRIABLE, ErrorCode.REQUEST_TIMED_OUT, "the registry is down; try again"),
        (OnOutage.REJECT, ErrorCode.POLICY_VIOLATION, "the registry is down; send again when it is available"),
    ],
)
def test_outage_rejects_the_batch_without_listing_records(on_outage: OnOutage, code: ErrorCode, words: str) -> None:
    rule = RecordingRule(Part.NONE, raises=Outage("the registry is down"))

    found = validate_partitions(
        policy_with_rules(NamedRule("body", rule, on_outage=on_outage), KEYED), batch([Rec(NOW)] * 9)
    )

    rejected = found.rejected[0, 0]
    assert (rejected.code, rejected.reason, rejected.bad_records) == (code, Reason.DEPENDENCY_UNAVAILABLE, ())
    assert rejected.message == f"rule body cannot be evaluated by the proxy in front of the cluster: {words}"
    assert len(rule.records) == 1, "the rule is evaluated once for each batch"


def test_a_record_that_violates_another_rule_is_rejected_during_an_outage() -> None:
    rule = NamedRule("body", RecordingRule(Part.NONE, raises=Outage("down")))
    assert (
        validate_partitions(policy_with_rules(rule, KEYED), batch([Rec(NOW), Rec(NOW, None)])).rejected[0, 0].code == 87
    )


def test_outage_of_a_rule_that_forwards_is_reported() -> None:
    rule = NamedRule("body", RecordingRule(Part.NONE, raises=Outage("down")), on_outage=OnOutage.FORWARD)

    found = validate_partitions(policy_with_rules(rule, KEYED), batch([Rec(NOW)]))

    assert found.rejected == {}
    assert (found.observed[0, 0][0].reason, found.observed[0, 0][0].rules) == (
        Reason.DEPENDENCY_UNAVAILABLE,
        (("body", 0),),
    )


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("codec", ["none", "gzip", "lz4"])
def test_rules_apply_to_old_message_sets(version: int, codec: str) -> None:
    magic = 1 if version == 2 else 0
    inner = [message(magic, b"v", key=key, timestamp=NOW, offset=i) for i, key in enumerate((b"k", None, b"x", None))]
    data = b"".join(inner) if codec == "none" else wrapper(magic, inner, CODECS[codec])

    found = validate_partitions(policy_with_rules(KEYED), data, inner[0], version=version)

    assert set(found.accepted) == {(0, 1)}
    assert [record.index for record in found.rejected[0, 0].bad_records] == [1, 3]


@pytest.mark.parametrize("data", [b"", batch([Rec(NOW, None)])[:-1], message(1, b"v", key=None)[:-1]])
def test_partitions_without_a_complete_batch_are_accepted(data: bytes) -> None:
    """In old requests a broker accepts such data and stores nothing."""
    assert set(validate_partitions(policy_with_rules(KEYED), data, version=2).accepted) == {(0, 0)}


def test_slow_rule_is_never_evaluated_on_the_event_loop() -> None:
    rule = RecordingRule(Part.NONE, is_slow=True)
    with pytest.raises(OutOfTime):
        validate_partitions(policy_with_rules(NamedRule("slow", rule)), batch([Rec(NOW)]), most_at_once=64 * 1024)
    assert rule.records == []


@pytest.mark.parametrize("data", [batch([Rec(NOW, b"k", bytes(65_537))]), message(1, bytes(65_537))])
def test_no_rule_reads_a_large_value_on_the_event_loop(data: bytes) -> None:
    """A rule reads the value without interruption."""
    reads, counts = RecordingRule(Part.VALUE), RecordingRule(Part.NONE)
    with pytest.raises(OutOfTime):
        validate_partitions(policy_with_rules(NamedRule("reads", reads)), data, version=2, most_at_once=64 * 1024)
    assert reads.records == []
    validate_partitions(policy_with_rules(NamedRule("counts", counts)), data, version=2, most_at_once=64 * 1024)
    assert len(counts.records) == 1


def test_validation_by_rules_yields_regularly() -> None:
    turns = 0

    def give_way() -> None:
        nonlocal turns
        turns += 1

    validate_partitions(policy_with_rules(KEYED), batch([Rec(NOW, b"k", b"")] * 5000), give_way=give_way)
    assert turns > 10


@pytest.mark.parametrize("version", [1, 2, 8])
@pytest.mark.parametrize("part", [Part.KEY, Part.VALUE])
def test_bytes_read_by_each_rule_count_towards_the_yield_interval(version: int, part: Part) -> None:
    large = bytes(64 * 1024)
    key, value = (large, b"") if part is Part.KEY else (b"", large)
    old = b"".join(message(version - 1, value, key=key, timestamp=NOW) for _ in range(10))
    data = batch([Rec(NOW, key, value)] * 10) if version == 8 else old

    def count_turns(*parts: Part) -> int:
        turns = 0

        def give_way() -> None:
            nonlocal turns
            turns += 1

        validate_partitions(
            policy_with_rules(*(NamedRule(f"r{i}", RecordingRule(one)) for i, one in enumerate(parts))),
            data,
            version=version,
            give_way=give_way,
        )
        return turns

    unread = count_turns(Part.NONE, Part.NONE)
    assert count_turns(part, Part.NONE) == unread + 10
    assert count_turns(part, part) == unread + 20


def test_observed_record_errors_are_bounded_for_all_partitions_of_a_request() -> None:
    """Regression: the limit applied to each partition, so a request with ten thousand partitions had a million
    texts."""
    bad = batch([Rec(NOW, b"k", b"\xff")] * 100)

    found = validate_partitions(policy_with_rules(TEXT), *[bad] * 20)

    assert {told.bad_count for (told,) in found.observed.values()} == {100}
    assert len(found.observed) == 20
    assert sum(len(told.bad_records) for (told,) in found.observed.values()) == 1000


def test_reading_a_payload_twice_stays_within_the_budget() -> None:
    large = batch([Rec(NOW, b"k", bytes(60_000))] * 200, CODECS["lz4"])
    body = produce_body(8, [topic_data("t", (0, large))])
    budget = DecompressionBudget(13_000_000, 10, lambda: None)
    request = walk_produce_request(bytearray(body), 8, 0, 100)

    found = validate_request(
        request,
        {},
        lambda _: policy_with_rules(NamedRule("s", Size(Side.VALUE, 0, 60_000)), NamedRule("u", Utf8(Side.VALUE))),
        ValidationLimits(),
        lambda: NOW,
        Decompressor(),
        budget,
    )

    assert set(found.accepted) == {(0, 0)}


def test_batches_of_an_exempt_client_are_counted_and_not_validated() -> None:
    found = validate_partitions(EXEMPT, batch([Rec(1, None)]), batch([Rec(1)], crc=1))

    assert set(found.waived.values()) == {Waiver.EXEMPT} and len(found.waived) == 2
    assert (found.rejected, found.accepted) == ({}, {})


def test_topics_use_the_fast_path_if_all_rules_are_native() -> None:
    assert policy_with_rules(KEYED).ordinary == policy_with_rules(KEYED)
    assert policy_with_rules(KEYED, NamedRule("seen", RecordingRule(Part.NONE))).ordinary is None
    assert TopicPolicy(before_max_ms=5).ordinary == TopicPolicy(before_max_ms=5)


def test_too_many_headers_are_rejected_if_a_rule_reads_headers() -> None:
    rule: RecordRule = RecordingRule(Part.HEADERS)
    found = validate_partitions(
        policy_with_rules(NamedRule("h", rule)), batch([Rec(NOW, headers=[(b"", None)] * 10_001)])
    )
    assert found.rejected[0, 0].bad_records[0].message == "rule h: 10001 headers, more than rules read (10000)"


def test_record_error_message_of_many_rules_is_truncated() -> None:
    class LongRule(RecordingRule):
        def fault(self, record: RuledRecord) -> str | None:
            return "x" * 100_000

    found = validate_partitions(
        policy_with_rules(*(NamedRule(f"r{n}", LongRule(Part.NONE)) for n in range(100))), batch([Rec(NOW)] * 3, NONE)
    )
    assert all(len(record.message) < 3000 for record in found.rejected[0, 0].bad_records)
    assert len(found.rejected[0, 0].rules) == 100


def test_violations_are_explained_only_within_the_explanation_budget() -> None:
    class ExplainingRule(RecordingRule):
        def __init__(self, explanation: str | None, steps: int) -> None:
            super().__init__(Part.VALUE)
            self.explained: list[bytes | None] = []
            self.words = explanation
            self.steps = steps

        def fault(self, record: RuledRecord) -> str | None:
            return "is bad" if record.value else None

        def description(self, record: RuledRecord) -> str | None:
            self.explained.append(record.value)
            record.budget.spend(self.steps)
            return self.words

    first, second = ExplainingRule("is bad at /a", 10), ExplainingRule("is bad at /b", INLINE_STEPS + 1)
    values = [b"", b"x", b"y", b"z"]
    records = batch([Rec(NOW, value=value) for value in values])
    found = validate_partitions(policy_with_rules(NamedRule("a", first), NamedRule("b", second)), records, records)

    words = ["rule a: is bad at /a; rule b: is bad at /b", *["rule a: is bad at /a; rule b: is bad"] * 2]
    assert [record.message for record in found.rejected[0, 0].bad_records] == words
    assert [record.message for record in found.rejected[0, 1].bad_records] == words
    assert first.explained == [b"x", b"y", b"z"] * 2
    assert second.explained == [b"x", b"x"]


def test_rule_with_cheap_explanations_explains_a_thousand_violations() -> None:
    class ExplainingRule(RecordingRule):
        def fault(self, record: RuledRecord) -> str | None:
            return "is bad"

        def description(self, record: RuledRecord) -> str | None:
            return "is bad at /a"

    found = validate_partitions(policy_with_rules(NamedRule("a", ExplainingRule(Part.VALUE))), batch([Rec(NOW)] * 1500))

    explained = [record.message.endswith("at /a") for record in found.rejected[0, 0].bad_records]
    assert explained == [True] * 1000


class NamesSchemas(RecordingRule):
    """A rule that reads a schema's name from each value. The schema `bad` cannot be applied."""

    def fault(self, record: RuledRecord) -> str | None:
        if record.value == b"bad":
            raise SchemaError("schema 7 of registry main cannot be compiled: it is too large")
        return "is wrong" if record.value == b"wrong" else None


def validate_by_schema(on_schema_error: OnSchemaError, *values: bytes, mode: Mode = Mode.REJECT) -> ValidatedRequest:
    rule = NamedRule("body", NamesSchemas(Part.VALUE), mode, on_schema_error=on_schema_error)
    return validate_partitions(policy_with_rules(rule), batch([Rec(NOW, value=value) for value in values], NONE))


def test_record_with_an_unusable_schema_is_rejected_permanently() -> None:
    found = validate_by_schema(OnSchemaError.REJECT, b"good", b"bad", b"good", b"wrong").rejected[0, 0]

    assert (found.code, found.reason, found.bad_count) == (ErrorCode.INVALID_RECORD, Reason.RULE_VIOLATED, 2)
    assert [record.index for record in found.bad_records] == [1, 3]
    assert found.bad_records[0].message == ("rule body: schema 7 of registry main cannot be compiled: it is too large")


def test_record_with_an_unusable_schema_is_retried_or_forwarded_if_configured() -> None:
    retriable = validate_by_schema(OnSchemaError.RETRIABLE, b"good", b"bad").rejected[0, 0]
    assert (retriable.code, retriable.reason, retriable.bad_count) == (
        ErrorCode.REQUEST_TIMED_OUT,
        Reason.SCHEMA_UNUSABLE,
        0,
    )
    assert "schema 7 of registry main" in (retriable.message or "")

    forwarded = validate_by_schema(OnSchemaError.FORWARD, b"good", b"bad")
    assert not forwarded.rejected
    assert forwarded.observed[0, 0][0].reason is Reason.SCHEMA_UNUSABLE
    observed = validate_by_schema(OnSchemaError.RETRIABLE, b"bad", mode=Mode.OBSERVE)
    assert not observed.rejected


@pytest.mark.parametrize("on_schema_error", [OnSchemaError.RETRIABLE, OnSchemaError.FORWARD])
def test_records_with_usable_schemas_are_validated_beside_unusable_ones(on_schema_error: OnSchemaError) -> None:
    found = validate_by_schema(on_schema_error, b"bad", b"wrong").rejected[0, 0]
    assert (found.code, found.bad_count) == (ErrorCode.INVALID_RECORD, 1)


class RecordingLookAheadRule(RecordingRule):
    """A rule that records which records it may look at in advance."""

    def __init__(self, raises: Exception | None = None) -> None:
        super().__init__(Part.KEY | Part.VALUE, raises=raises)
        self.ahead: list[list[int]] = []
        self.is_costly = True

    def fault(self, record: RuledRecord) -> str | None:
        record.budget.spend(UNBOUNDED if self.is_costly else 1)
        return super().fault(record)

    def look_ahead(self, records: Sequence[RuledRecord], _budget: StepBudget) -> None:
        assert not self.records or self.records[-1][0] == records[0].index - 1
        self.ahead.append([record.index for record in records])


@pytest.mark.parametrize("codec", list(CODECS.values()))
@pytest.mark.parametrize(
    ("sizes", "ahead"),
    [
        ([1, 2, 3], [2]),
        ([10] * 150, [63, 64, 22]),
        ([10] * 128, [63, 64]),
        ([300_000], []),
        ([100_000] * 4, [2, 1]),
        ([10, 1_000_000, 10], [1, 1]),
    ],
)
def test_a_look_ahead_gets_a_bounded_number_of_records(sizes: list[int], ahead: list[int], codec: int) -> None:
    looks, beside = RecordingLookAheadRule(), RecordingRule(Part.KEY | Part.VALUE)
    records = batch([Rec(NOW, key=b"k", value=bytes(size)) for size in sizes], codec)
    validate_partitions(policy_with_rules(NamedRule("ahead", looks), NamedRule("beside", beside)), records)

    assert [len(indices) for indices in looks.ahead] == ahead
    assert [index for indices in looks.ahead for index in indices] == list(range(1, len(sizes)))
    assert looks.records == beside.records
    assert [len(value) for _, _, _, value, *_ in looks.records if isinstance(value, bytes)] == sizes


def test_a_rule_without_costly_records_gets_no_look_ahead() -> None:
    looks = RecordingLookAheadRule()
    looks.is_costly = False
    validate_partitions(policy_with_rules(NamedRule("ahead", looks)), batch([Rec(NOW, value=b"x")] * 3, NONE))
    assert (looks.ahead, len(looks.records)) == ([], 3)


def test_look_ahead_includes_old_messages() -> None:
    looks = RecordingLookAheadRule()
    messages = b"".join(message(1, value, timestamp=NOW) for value in (b"a", b"b"))
    validate_partitions(policy_with_rules(NamedRule("ahead", looks)), messages, version=2)
    assert (looks.ahead, [entry[3] for entry in looks.records]) == ([[1]], [b"a", b"b"])


def test_outage_stops_the_look_ahead() -> None:
    looks = RecordingLookAheadRule(raises=Outage("registry main does not respond"))
    found = validate_partitions(policy_with_rules(NamedRule("ahead", looks)), batch([Rec(NOW, value=b"x")] * 200, NONE))
    assert found.rejected[0, 0].reason is Reason.DEPENDENCY_UNAVAILABLE
    assert (len(looks.ahead), len(looks.records)) == (0, 1)


def test_costly_records_are_validated_off_the_event_loop_and_yield_after_each() -> None:
    class StepCountingRule(RecordingRule):
        def __init__(self, of_records: tuple[int, ...]) -> None:
            super().__init__(Part.NONE)  # without compiled code, no rule about content runs on the event loop
            self.of_records = of_records

        def fault(self, record: RuledRecord) -> str | None:
            record.budget.spend(self.of_records[record.index])
            return super().fault(record)

    def count_turns_of_steps(*steps: int, most_at_once: int = 1 << 62) -> int:
        turns: list[int] = []
        records = batch([Rec(NOW) for _ in steps], NONE)
        policy = policy_with_rules(NamedRule("steps", StepCountingRule(steps)))
        validate_partitions(policy, records, most_at_once=most_at_once, give_way=lambda: turns.append(0))
        return len(turns)

    on_the_loop = 64 * 1024
    assert count_turns_of_steps(100, 1000, most_at_once=on_the_loop) < 2
    with pytest.raises(OutOfTime):
        count_turns_of_steps(5_000, most_at_once=on_the_loop)
    assert count_turns_of_steps(*[20_000] * 10) >= 10
    assert count_turns_of_steps(UNBOUNDED, UNBOUNDED) >= 2
