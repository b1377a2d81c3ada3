"""Validates one record as the proxy would (`sluicegate try`).

The record is encoded as a producer encodes it, and is validated by the same code as requests, with the policy in force
and the cluster's settings. So the command prints the error that a client would get.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sluicegate.config.loading import Loaded
from sluicegate.protocol.errors import error_name
from sluicegate.protocol.records.record_batch import RecordBatch
from sluicegate.protocol.records.writing import NewRecord
from sluicegate.protocol.topic_name import is_legal_topic_name
from sluicegate.proxy.registry.registries import Registries
from sluicegate.proxy.registry.schema_rules import SchemaRules
from sluicegate.proxy.reload.topic_explanation import NO_TOPIC, NOT_ASKED, ReadSettings, TopicExplanation
from sluicegate.proxy.reporting.events.violation_event import shown_beginning
from sluicegate.validation.dispositions.marks import REASON_HEADER
from sluicegate.validation.effective import effective_policy, violated_value
from sluicegate.validation.from_keys import limits_of
from sluicegate.validation.outcome import Waiver
from sluicegate.validation.policy import TimestampType, TopicPolicy
from sluicegate.validation.produce.one_batch import PLACE, validate_batch
from sluicegate.validation.rules.rule import Client, Mode, OnOutage, OnSchemaError
from sluicegate.validation.timestamps import bounds_of
from sluicegate.validation.units import diagnose
from sluicegate.validation.validated_request import ValidatedRequest
from sluicegate.validation.verdict import TIMED, Beginning, Finding, Reason

_OF_RULES = frozenset(
    {Reason.RULE_VIOLATED, Reason.REQUEST_RULE_VIOLATED, Reason.DEPENDENCY_UNAVAILABLE, Reason.SCHEMA_UNUSABLE}
)
# The reasons for which a rule was not evaluated, because a dependency does not respond or a schema cannot be applied.
_NOT_EVALUATED = frozenset({Reason.DEPENDENCY_UNAVAILABLE, Reason.SCHEMA_UNUSABLE})


@dataclass(frozen=True, slots=True)
class TrialResult:
    """The lines to print, and whether the record would be forwarded."""

    is_forwarded: bool
    lines: tuple[str, ...]


def validate_one(
    topic: str,
    record: NewRecord,
    loaded: Loaded,
    now_ms: int,
    read_settings: ReadSettings = lambda _topic: NOT_ASKED,
    client_id: str = "",
) -> TrialResult:
    """Validate a batch with this record at `now_ms` (Unix time).

    `read_settings` reads the cluster's settings for the topic.
    """
    client = Client("", client_id)
    if not is_legal_topic_name(topic):
        return TrialResult(False, (f"{topic}: {NO_TOPIC}",))
    read = read_settings(topic)
    maker = SchemaRules(Registries().by_name(loaded.config.registries))
    explanation = TopicExplanation(topic, loaded, read, maker=maker)
    policy = explanation.policy.for_exempt() if explanation.exempts(client) else explanation.policy.for_client(client)
    validated = _validate(topic, record, loaded, policy, now_ms, client)
    explained = _Explanation(validated, record, policy, now_ms, client)
    lines = [explanation.decides(), *explained.lines()]
    if policy.checked:
        lines[2:2] = [f"  {explanation.cluster_settings_text()}"]
        if read.settings is None and loaded.config.upstream.topic_settings:
            lines[3:3] = _by_create_time(topic, record, loaded, policy, now_ms, client)
    return TrialResult(PLACE not in validated.rejected, tuple(lines))


def _by_create_time(
    topic: str, record: NewRecord, loaded: Loaded, policy: TopicPolicy, now_ms: int, client: Client
) -> Iterator[str]:
    """Yield how the verdict would differ if the cluster, whose settings are unknown, used CreateTime for the topic."""
    if policy.timestamp_type is not TimestampType.LOG_APPEND_TIME:
        return
    with_own_times = replace(policy, timestamp_type=TimestampType.CREATE_TIME)
    rejected = _validate(topic, record, loaded, with_own_times, now_ms, client).rejected.get(PLACE)
    if rejected is not None and rejected.reason in TIMED:
        error = f"rejected: {error_name(rejected.code)}: {rejected.message or 'without a message'}"
        yield f"  if message.timestamp.type is CreateTime on the cluster, not LogAppendTime as in the file: {error}"


def _validate(
    topic: str, record: NewRecord, loaded: Loaded, policy: TopicPolicy, now_ms: int, client: Client
) -> ValidatedRequest:
    limits = replace(limits_of(loaded.config), max_samples=1)
    return validate_batch(topic, [record], policy, limits, now_ms, client)


class _Explanation:
    def __init__(
        self,
        validated: ValidatedRequest,
        record: NewRecord,
        policy: TopicPolicy,
        now_ms: int,
        client: Client,
    ) -> None:
        self._client = client
        self._validated = validated
        self._record = record
        self._policy = policy
        self._now_ms = now_ms

    def lines(self) -> Iterator[str]:
        """Yield the outcome and the violations."""
        validated = self._validated
        yield f"  timestamp {self._record.timestamp} {diagnose(self._record.timestamp, self._now_ms)}"
        waiver = validated.waived.get(PLACE)
        if waiver is Waiver.EXEMPT:
            yield "forwarded unvalidated (the client is exempt)"
        elif waiver is not None:
            yield "forwarded unvalidated (checks: none)"
        elif PLACE in validated.fixed:
            fixed = validated.fixed[PLACE]
            yield from self._described(fixed.finding)
            records = memoryview(fixed.records)
            given = RecordBatch(records, 0, len(records)).base_timestamp
            yield f"forwarded with the timestamp {given}, which {diagnose(given, self._now_ms)} (fix)"
        elif PLACE in validated.rejected:
            rejected = validated.rejected[PLACE]
            yield from self._described(rejected)
            yield f"rejected: {error_name(rejected.code)}: {rejected.message or 'without a message'}"
        elif validated.is_marked(PLACE):
            for finding in validated.marked[PLACE].findings:
                yield from self._described(finding)
            yield f"forwarded with the header {REASON_HEADER} (mode: mark)"
        elif PLACE in validated.observed:
            for finding in validated.observed[PLACE]:
                yield from self._described(finding)
            yield self._why_forwarded(validated.observed[PLACE][0])
        elif self._policy.timestamp_type is TimestampType.LOG_APPEND_TIME:
            yield "accepted, with the time of the broker (message.timestamp.type: LogAppendTime)"
        else:
            yield "accepted"
        if PLACE in validated.masked:
            yield f"sensitive fields are masked before it is forwarded ({self._policy.sensitive})"
        yield from self._rehearsed()
        yield from self._rules()

    def _why_forwarded(self, observed: Finding) -> str:
        """Return why a record with violations is forwarded."""
        policy = self._policy
        named = {rule.name: rule for rule in (policy.rules.rules if policy.rules is not None else ())}
        rules = [named[name] for name, _ in observed.rules if name in named]
        if observed.reason is Reason.DEPENDENCY_UNAVAILABLE and any(
            rule.on_outage is OnOutage.FORWARD for rule in rules
        ):
            return "forwarded; a rule was not evaluated: its dependency does not respond (on_outage: forward)"
        if observed.reason is Reason.SCHEMA_UNUSABLE and any(
            rule.on_schema_error is OnSchemaError.FORWARD for rule in rules
        ):
            return "forwarded; a rule was not evaluated: its schema cannot be applied (on_schema_error: forward)"
        is_enforced = policy.enforced is None or policy.enforced.covers(self._client)
        if not is_enforced and not policy.only_observes(rule.name for rule in rules):
            return f"forwarded unchanged (enforce: {policy.enforced}); full enforcement would reject it"
        if PLACE in self._validated.to_quarantine:
            return f"forwarded unchanged, with a copy in {policy.dead_letters} (mode: observe, quarantine)"
        if policy.mode is Mode.OBSERVE:
            return "forwarded unchanged (mode: observe); mode: reject would reject it"
        return "forwarded unchanged (the rule has mode: observe); mode: reject would reject it"

    def _described(self, finding: Finding) -> Iterator[str]:
        if not finding.bad_records:
            rule = finding.rules[0][0] if finding.rules else None
            yield f"  {finding.reason.value}: {finding.reason.text}{self._key_of(finding.reason, rule)}"
        for bad in finding.bad_records:
            rule = bad.rules[0] if bad.rules else None
            yield f"  record {bad.index}: {bad.message}{self._key_of(bad.reason, rule)}"
            if bad.contents is not None:
                yield from (
                    f"    {name} {_shown(part)}" for name, part in zip(("key", "value"), bad.contents, strict=True)
                )

    def _key_of(self, reason: Reason, rule: str | None) -> str:
        value = violated_value(self._policy, reason, rule)
        return f" ({value.key}: {value.source})" if value is not None else ""

    def _rules(self) -> Iterator[str]:
        """Yield the result of each rule. Rules are evaluated only if a broker would accept the batch."""
        policy = self._policy
        rejected = self._validated.rejected.get(PLACE)
        observed = self._validated.observed.get(PLACE, ())
        marked = self._validated.marked[PLACE].findings if PLACE in self._validated.marked else ()
        findings = [*(() if rejected is None else (rejected,)), *observed, *marked]
        broken = {name for each in findings if each.reason not in _NOT_EVALUATED for name, _ in each.rules}
        without_result = {name for each in findings if each.reason in _NOT_EVALUATED for name, _ in each.rules}
        evaluates_requests = policy.mode is Mode.MARK or all(each.reason in _OF_RULES for each in findings)
        evaluates_records = evaluates_requests and (
            rejected is None or rejected.reason is not Reason.REQUEST_RULE_VIOLATED
        )
        groups = (
            (policy.requests, evaluates_requests),
            (policy.rules.rules if policy.rules else (), evaluates_records),
        )
        for rules, is_evaluated in groups:
            for name in dict.fromkeys(rule.name for rule in rules):
                result = "violated" if name in broken else "passed" if is_evaluated else "not evaluated"
                yield f"rule {name}: {'no result' if name in without_result - broken else result}"

    def _rehearsed(self) -> Iterator[str]:
        tried = self._policy.rehearsed
        if tried is None:
            return
        counts = self._validated.rehearsed.get(PLACE)
        source = next(value.source for value in effective_policy(self._policy) if value.key == "rehearse")
        for i, bound in enumerate(bounds_of(tried)):
            effect = "would reject it" if counts is not None and counts[i] else "would accept it"
            yield f"rehearsed bound: {bound.key} {bound.max_ms} {effect} ({source})"


def _shown(part: Beginning | None) -> str:
    """Return a key or value as a violation event shows it (`samples: true`)."""
    shown = shown_beginning(part)
    return "is null" if shown is None else f"({shown['size']} bytes): {shown['text']}"
