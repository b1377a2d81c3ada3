"""Evaluates the operator's rules for a partition's batch after it has passed a broker's checks.

Compiled with the types in evaluation.pxd if a C compiler is installed.
"""

from collections.abc import Sequence
from typing import Protocol

from sluicegate.protocol.errors import ErrorCode
from sluicegate.protocol.records.codecs.decompression_budget import DecompressionBudget, OverLimit
from sluicegate.protocol.records.contents import HEADER_BYTES, MOST_HEADERS, RecordContents
from sluicegate.protocol.records.message_contents import MessageContents
from sluicegate.validation import wording
from sluicegate.validation.findings import finding_over_limit
from sluicegate.validation.policy import ValidationLimits
from sluicegate.validation.reading import Batch, ContentReader
from sluicegate.validation.requests.request_rule import RequestCheck, SentBatch
from sluicegate.validation.rule_violations import MOST_BROKEN, RuleViolations
from sluicegate.validation.rules.rule import (
    INLINE_STEPS,
    Client,
    Mode,
    NamedRule,
    OnOutage,
    OnSchemaError,
    Outage,
    Part,
    RuledRecord,
    SchemaError,
    StepBudget,
    SupportsLookAhead,
)
from sluicegate.validation.rules.rule_set import RuleSet
from sluicegate.validation.verdict import Broken, Finding, Reason

# The minimum cost of evaluating a rule, and the cost of a step, both in bytes of work. Most steps cost less.
_RULE_WORK = 672
_STEP_WORK = 16
_MOST_STEPS = INLINE_STEPS
# More work than the event loop may do at once, so slow rules always run in a thread.
_SLOW_WORK = 1 << 40
_MOST_HEADERS = MOST_HEADERS
# The maximum number of observed records per batch that events report.
_MOST_OBSERVED = 100
# The maximum number of steps for explanations per rule and batch (20 ms), and the minimum that one explanation counts.
# So at most about a thousand records are explained.
_MOST_EXPLAINING, _LEAST_EXPLAINING = 200_000, 200
# For rules that look ahead: the maximum number of records to read before the first is evaluated, and of their bytes.
_MOST_AHEAD = 64
_MOST_AHEAD_BYTES = 256 << 10
# The maximum number of request rules that a rejection message names.
_MOST_NAMED = 8


class MayBeSlow(Protocol):
    """A rule, or other work on records, that may be slow."""

    @property
    def is_slow(self) -> bool:
        """Return whether the work must never run on the event loop."""


def check_may_run_here(work: MayBeSlow, budget: DecompressionBudget) -> None:
    """Raise OutOfTime on the event loop if the rules, or other work on records, may be slow."""
    if work.is_slow:
        budget.check_at_once(_SLOW_WORK)


class RuleResult:
    """The result for one partition: the findings of rules that reject, and of rules that only observe."""

    def __init__(self, rejecting: Finding | None, observing: Finding | None) -> None:
        self.rejecting = rejecting
        self.observing = observing


def evaluate_rules(
    rules: RuleSet,
    batch: Batch,
    client: Client,
    limits: ValidationLimits,
    reader: ContentReader,
    budget: DecompressionBudget,
    observed: DecompressionBudget,
    broken: Broken | None = None,
    most_broken: int = MOST_BROKEN,
) -> RuleResult:
    """Evaluate every rule for every record, in the order of the configuration.

    `observed` limits how many record errors of observed violations the request may still list. `broken`, if given,
    receives up to `most_broken` records that a rejecting rule rejects. Raises the errors of `budget`.
    """
    most_observed = min(_MOST_OBSERVED, observed.record_errors)
    evaluation = _Evaluation(rules, batch, client, budget, most_observed, broken, most_broken)
    try:
        with reader.contents(batch, rules.parts, limits, budget.for_rereading(), rules.header_names) as contents:
            evaluation.run(contents)
    except OverLimit as over:
        return RuleResult(finding_over_limit(batch.topic, batch.partition, over, batch.record_count), None)
    return RuleResult(
        evaluation.rejecting.finding(batch.record_count, budget),
        evaluation.observing.finding(batch.record_count, observed),
    )


def evaluate_request_rules(rules: Sequence[RequestCheck], sent: SentBatch, client: Client, records: int) -> RuleResult:
    """Evaluate all request rules that apply to this client, in the order of the configuration.

    `records` is the number of records in the batch.
    """
    broken: dict[Mode, list[tuple[str, str]]] = {Mode.REJECT: [], Mode.OBSERVE: []}
    for rule in rules:
        text = rule.fault(sent, client) if rule.concerns(client) else None
        if text is not None:
            broken[rule.mode].append((rule.name, text))
    return RuleResult(
        _finding_about_rules(broken[Mode.REJECT], records), _finding_about_rules(broken[Mode.OBSERVE], records)
    )


def _finding_about_rules(broken: list[tuple[str, str]], records: int) -> Finding | None:
    if not broken:
        return None
    return Finding(
        ErrorCode.POLICY_VIOLATION,
        Reason.REQUEST_RULE_VIOLATED,
        "; ".join(wording.broken_rule(*one) for one in broken[:_MOST_NAMED]),
        records=records,
        rules=tuple((name, 0) for name, _ in broken),
    )


class _WorkBudget(StepBudget):
    """A step budget that counts the steps of rules as work of the validation."""

    def __init__(self, work: DecompressionBudget) -> None:
        super().__init__()
        self._work = work

    def spend(self, steps: int) -> None:
        self.spent += steps
        work = min(steps, _MOST_STEPS) * _STEP_WORK
        self._work.check_at_once(work)
        self._work.worked(work)


class _Evaluation:
    def __init__(
        self,
        rules: RuleSet,
        batch: Batch,
        client: Client,
        budget: DecompressionBudget,
        most_observed: int,
        broken: Broken | None,
        most_broken: int,
    ) -> None:
        self.rejecting = RuleViolations(budget.record_errors, broken, most_broken)
        self.observing = RuleViolations(most_observed)
        self._budget = budget
        self._rules = [
            (named.rule.fault, named, Part.KEY in named.rule.parts, Part.VALUE in named.rule.parts)
            for named in rules.rules
        ]
        self._looking_ahead = rules.looking_ahead
        self._costly: set[int] = set()
        self._steps = _WorkBudget(budget)
        self._explaining: dict[int, int] = {}
        self._of_headers = next((named for named in rules.rules if named.rule.parts & Part.HEADERS), None)
        self._record = RuledRecord(batch.topic, batch.partition, 0, 0, None, None, (), client, batch.producer_id)
        self._record.budget = self._steps

    def run(self, contents: RecordContents | MessageContents) -> None:
        """Evaluate all records."""
        if self._looking_ahead:
            self._evaluate_ahead(contents)
            return
        if isinstance(contents, RecordContents):
            self._evaluate_records(contents)
            return
        record, of = self._record, contents
        while of.read_next():
            record.fill(of.index, of.timestamp, of.key, of.value, of.headers, of.key_size, of.value_size)
            if record.value is not None:
                self._budget.check_at_once(of.value_size)
            self._evaluate(record)

    def _evaluate_records(self, of: RecordContents) -> None:
        """Evaluate the records of a magic 2 batch, using C types."""
        record = self._record
        while of.read_next():
            record.fill(of.index, of.timestamp, of.key, of.value, of.headers, of.key_size, of.value_size)
            if of.header_count > 0:
                record.header_count, record.header_bytes = of.header_count, of.header_bytes
            if of.header_count > _MOST_HEADERS:
                self._note_headers(record, of.header_count)
            if record.value is not None:  # a rule reads the whole value without yielding to other work
                self._budget.check_at_once(of.value_size)
            self._evaluate(record)

    def _evaluate_ahead(self, of: RecordContents | MessageContents) -> None:
        """Evaluate the records, a few at a time."""
        first = self._record
        size = 0
        read: list[tuple[RuledRecord, int]] = []
        while of.read_next():
            record = RuledRecord(first.topic, first.partition, 0, 0, None, None, (), first.client, first.producer_id)
            record.budget = self._steps
            record.fill(of.index, of.timestamp, of.key, of.value, of.headers, of.key_size, of.value_size)
            if of.header_count > 0:
                record.header_count, record.header_bytes = of.header_count, of.header_bytes
            read.append((record, of.header_count))
            size += record.content_bytes + len(record.headers) * HEADER_BYTES
            if len(read) >= _MOST_AHEAD or size >= _MOST_AHEAD_BYTES:
                self._evaluate_read(read)
                read, size = [], 0
        if read:
            self._evaluate_read(read)

    def _evaluate_read(self, read: list[tuple[RuledRecord, int]]) -> None:
        """Evaluate records, each given with its number of headers."""
        records = [record for record, _ in read]
        ahead: list[SupportsLookAhead[RuledRecord]] = []
        for at, (record, headers) in enumerate(read):
            for named, rule in self._looking_ahead:
                if id(named) in self._costly and rule not in ahead:  # in most batches, all records are of one kind
                    ahead.append(rule)
                    rule.look_ahead(records[at:], self._steps)
            if headers > _MOST_HEADERS:
                self._note_headers(record, headers)
            if record.value is not None:
                self._budget.check_at_once(record.value_size)
            self._evaluate(record)

    def _evaluate(self, record: RuledRecord) -> None:
        for fault, named, reads_key, reads_value in self._rules:
            work = _RULE_WORK
            if reads_key and record.key_size > 0:
                work += record.key_size
            if reads_value and record.value_size > 0:
                work += record.value_size
            self._steps.spent = 0
            try:
                text = fault(record)
            except Outage as outage:
                self._note_outage(named, outage)
            except SchemaError as error:
                self._note_schema_error(named, record, error)
            else:
                if text is not None:
                    self._note(named, record, self._explained(named, record, text))
            if self._steps.spent > _MOST_STEPS:
                self._costly.add(id(named))
            self._budget.worked(work)

    def _explained(self, named: NamedRule, record: RuledRecord, text: str) -> str:
        """Return the text to report. For each rule, explains a batch's bad records as long as this is cheap."""
        spent = self._explaining.get(id(named), 0)
        if spent > _MOST_EXPLAINING:
            return text
        before = self._steps.spent
        explained = named.rule.description(record)
        self._explaining[id(named)] = spent + max(self._steps.spent - before, _LEAST_EXPLAINING)
        self._steps.spent = before
        return explained or text

    def _note(self, named: NamedRule, record: RuledRecord, text: str) -> None:
        found = self.rejecting if named.mode is Mode.REJECT else self.observing
        found.note(record.index, record.timestamp, named.name, text)

    def _note_headers(self, record: RuledRecord, count: int) -> None:
        if self._of_headers is not None:
            self._note(self._of_headers, record, f"{count} headers, more than rules read ({MOST_HEADERS})")

    def _note_schema_error(self, named: NamedRule, record: RuledRecord, error: SchemaError) -> None:
        """Note the error, but keep the rule in use, because other records may name other schemas."""
        if named.on_schema_error is OnSchemaError.REJECT:
            self._note(named, record, str(error))
        elif named.mode is Mode.REJECT and named.on_schema_error is OnSchemaError.RETRIABLE:
            self.rejecting.note_schema_error(named, error)
        else:
            self.observing.note_schema_error(named, error)

    def _note_outage(self, named: NamedRule, outage: Outage) -> None:
        """Note the outage, and skip the rule for the remaining records."""
        rejects = named.mode is Mode.REJECT and named.on_outage is not OnOutage.FORWARD
        (self.rejecting if rejects else self.observing).note_outage(named, outage)
        self._rules = [entry for entry in self._rules if entry[1] is not named]
        self._looking_ahead = tuple(entry for entry in self._looking_ahead if entry[0] is not named)
