"""The fast path reads every field of a topic's policy, at every depth, unless the field affects no good batch."""

from collections.abc import Iterator
from dataclasses import fields, replace
from types import FunctionType, MethodType
from typing import Any

import pytest

from sluicegate.config.teams import Owner
from sluicegate.proxy.fastpath.paths import HAS_FAST_PATH
from sluicegate.validation.in_force import RulesInForce
from sluicegate.validation.origins import PolicyOrigins
from sluicegate.validation.policy import (
    NOT_NEEDED_BY_FAST_PATH,
    READ_BY_FAST_PATH,
    ExemptClients,
    Framing,
    RehearsedBounds,
    TimeFix,
    TimestampType,
    TopicPolicy,
    ValidationLimits,
)
from sluicegate.validation.requests.name_pattern import EnforcedClients, Exemption, NamePattern, OwnedClients
from sluicegate.validation.requests.quota import QuotaLimits
from sluicegate.validation.requests.request_rule import RequestCheck
from sluicegate.validation.rulebook import FilePolicies, Rulebook
from sluicegate.validation.rules.avro.schema import avro_content
from sluicegate.validation.rules.built_in import Required
from sluicegate.validation.rules.json.schema import json_schema_content
from sluicegate.validation.rules.native.questions import (
    AvroQuestion,
    BytesQuestion,
    JsonSchemaQuestion,
    OrdinaryQuestions,
)
from sluicegate.validation.rules.rule import Mode, NamedRule, Side
from sluicegate.validation.rules.rule_set import RuleSet
from sluicegate.validation.sensitive.from_keys import Sensitive
from tests.bounds.frames import request_header, sized_produce_request
from tests.framing.cases import batch_builder, batch_with_payload, lz4_blocks, plain_payload, records_with_wrong_length
from tests.oracle.validator_cases import NOW
from tests.two_paths.both import BothPaths
from tests.wire.batches import CODECS, LZ4, Rec, batch

pytestmark = pytest.mark.skipif(not HAS_FAST_PATH, reason="there is no fast path: it was not compiled")

_VERSION = 13
_ID = b"sixteen bytes id"
_TEAM = Owner(team="payments")
_BOUNDED = TopicPolicy(before_max_ms=5000, after_max_ms=5000)
_OBSERVING = TopicPolicy(mode=Mode.OBSERVE, before_max_ms=5000)

SAMPLES: dict[str, tuple[TopicPolicy, dict[str, Any]]] = {
    "timestamp_type": (_BOUNDED, {"timestamp_type": TimestampType.LOG_APPEND_TIME}),
    "before_max_ms": (TopicPolicy(), {"before_max_ms": 5000}),
    "after_max_ms": (TopicPolicy(), {"after_max_ms": 5000}),
    "compacted": (TopicPolicy(), {"compacted": True}),
    "max_message_bytes": (TopicPolicy(), {"max_message_bytes": 500}),
    "checked": (_BOUNDED, {"checked": False}),
    "mode": (_BOUNDED, {"mode": Mode.OBSERVE}),
    "rehearsed": (TopicPolicy(), {"rehearsed": RehearsedBounds((5000,), (5000,))}),
    "fix": (_BOUNDED, {"fix": TimeFix.CLAMP}),
    "dead_letters": (_OBSERVING, {"dead_letters": "bad"}),
    "rules": (TopicPolicy(), {"rules": RuleSet([NamedRule("keyed", Required(Side.KEY))])}),
    "requests": (TopicPolicy(), {"requests": (RequestCheck("acks", acks=frozenset({1})),)}),
    "samples": (_BOUNDED, {"samples": True}),
    "quota": (TopicPolicy(), {"quota": QuotaLimits("slow", None, None, NamePattern("t"), 1, 1, None)}),
    "framing": (TopicPolicy(), {"framing": Framing.BROKER}),
    "enforced": (_BOUNDED, {"enforced": EnforcedClients(())}),
    "floor_of_others": (_BOUNDED, {"floor_of_others": TopicPolicy(compacted=True)}),
    "owner": (_BOUNDED, {"owner": _TEAM}),
    "client_owners": (_BOUNDED, {"client_owners": (OwnedClients(_TEAM, None, NamePattern("*")),)}),
    "sensitive": (TopicPolicy(), {"sensitive": object.__new__(Sensitive)}),
    "exempt": (_BOUNDED, {"exempt": ExemptClients((Exemption(None, NamePattern("etl")),))}),
    "origins": (_BOUNDED, {"origins": PolicyOrigins(is_suspended=True)}),
}
"""A policy, and a value of one field that changes the policy's verdicts on some of BATCHES."""

_TIMES = (NOW, NOW - 5000, NOW - 5001, NOW + 5000, NOW + 5001, NOW - 10**9, NOW + 10**7, -1)
BATCHES = [
    *(batch([Rec(NOW), Rec(time, key, value)], codec) for codec in CODECS.values() for time in _TIMES
      for key in (None, b"", b"k") for value in (None, b"v")),
    *(batch([Rec(NOW, b"k", b"\xff" * size)]) for size in (0, 300, 2000)),
    batch([Rec(NOW, headers=[(b"h", b"v")] * 20)]),
    batch([Rec(NOW)] * 500),
    batch_builder(records_with_wrong_length(1), LZ4)(NOW),
    batch_with_payload(LZ4, lz4_blocks(plain_payload(), b"", b"hidden"))(NOW),
]  # fmt: skip
_NAMES = [each.name for each in fields(TopicPolicy) if each.init]


@pytest.mark.parametrize("name", _NAMES)
def test_a_batch_that_the_fast_path_accepts_violates_no_policy_field(name: str) -> None:
    assert name in SAMPLES, (
        f"TopicPolicy.{name} is new. Add a policy with it to SAMPLES here, and batches that it is about to BATCHES. "
        "Until it is in READ_BY_FAST_PATH (validation/policy.py; OrdinaryRequests.add_topic reads it) or in "
        "NOT_NEEDED_BY_FAST_PATH (it changes nothing about a good batch), topics with it take the slow path"
    )
    base, changed = SAMPLES[name]
    policy = replace(base, **changed)
    default = next(each for each in fields(TopicPolicy) if each.name == name).default
    assert getattr(policy, name) != default, "the sample has the default"
    if name not in READ_BY_FAST_PATH | NOT_NEEDED_BY_FAST_PATH:
        assert policy.ordinary is None, f"no native code reads {name}, but the fast path accepts the topic"
        return
    with_it, without = (list(_accepted_natively(each)) for each in (policy, base))  # the slow path checks these too
    assert any(with_it), "no batch stays on the fast path"
    if name in READ_BY_FAST_PATH:
        assert with_it != without, (
            f"TopicPolicy.{name} is in READ_BY_FAST_PATH, and changes the outcome of no batch of BATCHES there: "
            "compare it in validation/ordinary.pyx, and add a batch that it is about"
        )


def _accepted_natively(policy: TopicPolicy) -> Iterator[bool]:
    both = BothPaths({"t": policy}, {_ID: "t"}, ValidationLimits())
    for one in BATCHES:
        frame = bytearray(sized_produce_request(_VERSION, {_ID: [(0, one)]})[4:])
        yield both.validate(frame, _VERSION, len(request_header(0, _VERSION)), NOW)


def test_the_declared_policy_fields_exist_and_do_not_overlap() -> None:
    names = {each.name for each in fields(TopicPolicy)}
    assert names >= READ_BY_FAST_PATH | NOT_NEEDED_BY_FAST_PATH
    assert not READ_BY_FAST_PATH & NOT_NEEDED_BY_FAST_PATH


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("fix", [None, *TimeFix])
def test_a_mode_or_a_fix_that_changes_good_batches_needs_the_slow_path(mode: Mode, fix: TimeFix | None) -> None:
    policy = TopicPolicy(mode=mode, fix=fix, before_max_ms=5000, after_max_ms=5000)

    assert (policy.ordinary is None) == (mode is Mode.MARK or fix is TimeFix.PREVIOUS)
    list(_accepted_natively(policy))


def test_native_code_reads_the_declared_policy_fields() -> None:
    policy = TopicPolicy(rules=RuleSet([NamedRule("keyed", Required(Side.KEY))]))
    read = _read_natively(policy, ValidationLimits())

    assert read["TopicPolicy"] == READ_BY_FAST_PATH, "compare READ_BY_FAST_PATH with OrdinaryRequests.add_topic"
    about_bad_batches = {"max_record_errors", "max_samples"}
    assert read["ValidationLimits"] == {each.name for each in fields(ValidationLimits)} - about_bad_batches, (
        "validation/ordinary.pyx must compare each limit, or the limit does not apply on the fast path"
    )


def test_native_code_reads_every_field_of_every_native_check() -> None:
    of_json = json_schema_content('{"type": "object"}').ordinary(5)
    of_avro = avro_content('"int"').ordinary(0)
    assert of_json is not None and of_avro is not None
    questions = OrdinaryQuestions(of_json, of_avro)

    read = _read_natively(TopicPolicy(rules=_WithQuestions(questions)), ValidationLimits())

    for kind in (OrdinaryQuestions, BytesQuestion, JsonSchemaQuestion, AvroQuestion):
        unread = {each.name for each in fields(kind)} - read[kind.__name__]
        assert not unread, (
            f"validation/rules/native/contents.pyx does not read {kind.__name__}.{', '.join(unread)}: "
            "rules whose ordinary() sets it would not be checked on the fast path"
        )


ASKED: dict[str, Any] = {
    "required": True,
    "least": 5,
    "most": 5,
    "is_text": True,
    "json_depth": 5,
    "schemas": (JsonSchemaQuestion({}, 0),),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", [each.name for each in fields(BytesQuestion)])
def test_combining_byte_questions_keeps_every_field(name: str) -> None:
    assert name in ASKED, f"BytesQuestion.{name} is new: give a value for ASKED here"
    question = BytesQuestion(**{name: ASKED[name]})

    assert question.both(BytesQuestion()) == BytesQuestion().both(question) == question != BytesQuestion()
    for side in ("key", "value"):
        asked = OrdinaryQuestions(**{side: question})
        assert asked.both(OrdinaryQuestions()) == OrdinaryQuestions().both(asked) == asked


def test_combining_ordinary_questions_keeps_the_record_limit() -> None:
    assert {each.name for each in fields(OrdinaryQuestions)} == {"key", "value", "most_records"}
    few = OrdinaryQuestions(most_records=5)
    assert few.both(OrdinaryQuestions()) == OrdinaryQuestions().both(few) == few


@pytest.mark.parametrize("name", [each.name for each in fields(RehearsedBounds)])
def test_the_fast_path_gets_every_rehearsed_bound(name: str) -> None:
    narrowest = TopicPolicy(rehearsed=RehearsedBounds(**{name: (9, 5)})).narrowest

    assert name in READ_BY_FAST_PATH and getattr(narrowest, name) == 5, "narrow it in TopicPolicy.narrowest"


def test_a_named_rule_rejects_nothing_that_its_rule_accepts() -> None:
    assert {each.name for each in fields(NamedRule)} == {"name", "rule", "mode", "on_outage", "on_schema_error"}, (
        "RuleSet.ordinary asks each NamedRule's `rule` alone: with a new field that makes more records bad, it has to "
        "be None; then name the field here"
    )


class _WithQuestions(RuleSet):
    def __init__(self, questions: OrdinaryQuestions) -> None:
        super().__init__(())
        self.ordinary = questions


class _Reading:
    """Replaces a value and records which of its fields are read, also by its own methods."""

    def __init__(self, subject: object, read: dict[str, set[str]]) -> None:
        self._subject = subject
        self._read = read

    @property  # type: ignore[misc]
    def __class__(self) -> type:  # for isinstance
        return type(self._subject)

    def __getattr__(self, name: str) -> object:
        method = getattr(type(self._subject), name, None)
        if isinstance(method, FunctionType):
            return MethodType(method, self)
        self._read.setdefault(type(self._subject).__name__, set()).add(name)
        return self._wrapped(getattr(self._subject, name))

    def _wrapped(self, value: object) -> object:
        if isinstance(value, tuple):
            return tuple(map(self._wrapped, value))
        kinds = (TopicPolicy, RuleSet, OrdinaryQuestions, BytesQuestion, JsonSchemaQuestion, AvroQuestion)
        return _Reading(value, self._read) if isinstance(value, kinds) else value


def _read_natively(policy: TopicPolicy, limits: ValidationLimits) -> dict[str, set[str]]:
    from sluicegate.validation.ordinary import OrdinaryRequests  # noqa: PLC0415  # it is compiled

    read: dict[str, set[str]] = {}
    rules = RulesInForce(Rulebook(FilePolicies(TopicPolicy(), ())))
    fast = OrdinaryRequests(_Reading(limits, read), 100, lambda: NOW, rules)  # type: ignore[arg-type]
    fast.add_topic(_ID, True, "t", _Reading(policy, read))  # type: ignore[arg-type]
    frame = bytearray(sized_produce_request(_VERSION, {_ID: [(0, batch([Rec(NOW)], LZ4))]})[4:])
    fast.validate(memoryview(frame), len(request_header(0, _VERSION)), len(frame), _VERSION)
    return read
