"""Asks the rules of a topic about the records of one partition, which a broker would take.

Compiled with the types in asking.pxd where a C compiler was at hand.
"""

from sluicegate.protocol.records.codecs.decompression_budget import Allowance, OverLimit
from sluicegate.protocol.records.contents import MOST_HEADERS, RecordContents
from sluicegate.protocol.records.message_contents import MessageContents
from sluicegate.validation.mode import Mode
from sluicegate.validation.policy import ValidationLimits
from sluicegate.validation.record_errors import over_limit
from sluicegate.validation.rules.findings import Findings
from sluicegate.validation.rules.reading import Batch, ContentReader
from sluicegate.validation.rules.rule import (
    INLINE_STEPS,
    Client,
    NamedRule,
    OnOutage,
    OnSchemaError,
    Outage,
    Part,
    RuledRecord,
    SchemaError,
)
from sluicegate.validation.rules.rule_set import RuleSet
from sluicegate.validation.verdict import Broken, Rejected

# What asking a rule costs at least, in bytes of work.
_QUESTION_WORK = 512
# And a step, of which few take as long as they may.
_STEP_WORK = 16
_MOST_STEPS = INLINE_STEPS
# What is slow is more than the event loop ever does at once.
_SLOW_WORK = 1 << 40
_MOST_HEADERS = MOST_HEADERS
# Of a batch, records that are only told, in events.
_MOST_TOLD = 100


def check_may_be_asked_here(rules: RuleSet, allowance: Allowance) -> None:
    """Raises OutOfTime on the event loop where a rule may be slow."""
    if rules.is_slow:
        allowance.check_at_once(_SLOW_WORK)


class Answers:
    """What rules said of one partition: what it is `rejected` for, and what is only told of it."""

    def __init__(self, rejected: Rejected | None, observed: Rejected | None) -> None:
        self.rejected = rejected
        self.observed = observed


def ask_rules(
    rules: RuleSet,
    batch: Batch,
    client: Client,
    limits: ValidationLimits,
    reader: ContentReader,
    allowance: Allowance,
    told: Allowance,
    broken: Broken | None = None,
) -> Answers:
    """Every rule about every record, in the file's order. `told` has how many record errors of its request may still be
    listed of what is only observed; `broken` is filled with all that are rejected, where somebody wants them. Raises
    what `allowance` raises to give way.
    """
    asking = _Asking(rules, batch, client, allowance, min(_MOST_TOLD, told.record_errors), broken)
    try:
        with reader.contents(batch, rules.needs, limits, allowance.to_read_again()) as contents:
            asking.ask(contents)
    except OverLimit as over:
        return Answers(over_limit(batch.topic, batch.partition, over, batch.record_count), None)
    return Answers(
        asking.rejecting.rejection(batch.record_count, allowance), asking.observing.rejection(batch.record_count, told)
    )


class _Asking:
    def __init__(
        self,
        rules: RuleSet,
        batch: Batch,
        client: Client,
        allowance: Allowance,
        most_told: int,
        broken: Broken | None,
    ) -> None:
        self.rejecting = Findings(allowance.record_errors, broken)
        self.observing = Findings(most_told)
        self._allowance = allowance
        self._asked = [
            (named.rule.complaint, named, Part.KEY in named.rule.needs, Part.VALUE in named.rule.needs)
            for named in rules.rules
        ]
        self._has_explained: set[int] = set()
        self._of_headers = next((named for named in rules.rules if named.rule.needs & Part.HEADERS), None)
        self._record = RuledRecord(batch.topic, batch.partition, 0, 0, None, None, (), client, batch.producer_id)

    def ask(self, contents: RecordContents | MessageContents) -> None:
        """About all records."""
        if isinstance(contents, RecordContents):
            self._ask_about_records(contents)
            return
        record, of = self._record, contents
        while of.read_next():
            record.fill(of.index, of.timestamp, of.key, of.value, of.headers, of.key_size, of.value_size)
            if record.value is not None:
                self._allowance.check_at_once(of.value_size)
            self._ask_about(record)

    def _ask_about_records(self, of: RecordContents) -> None:
        """The same of magic 2, where C knows what everything is."""
        record = self._record
        while of.read_next():
            record.fill(of.index, of.timestamp, of.key, of.value, of.headers, of.key_size, of.value_size)
            if of.header_count > _MOST_HEADERS and self._of_headers is not None:
                words = f"{of.header_count} headers, more than rules look at ({MOST_HEADERS})"
                self._note(self._of_headers, record, words)
            if record.value is not None:  # a rule reads it whole, without giving way
                self._allowance.check_at_once(of.value_size)
            self._ask_about(record)

    def _ask_about(self, record: RuledRecord) -> None:
        for complaint, named, reads_key, reads_value in self._asked:
            steps = min(named.rule.steps(record), _MOST_STEPS)
            self._allowance.check_at_once(steps * _STEP_WORK)
            work = _QUESTION_WORK + steps * _STEP_WORK
            if reads_key and record.key_size > 0:
                work += record.key_size
            if reads_value and record.value_size > 0:
                work += record.value_size
            try:
                words = complaint(record)
            except Outage as outage:
                self._rule_is_out(named, outage)
            except SchemaError as error:
                self._schema_fails(named, record, error)
            else:
                if words is not None:
                    self._note(named, record, self._explained(named, record, words))
            self._allowance.worked(work)

    def _explained(self, named: NamedRule, record: RuledRecord, words: str) -> str:
        """What is noted of a complaint: of each rule the first of a batch is explained."""
        if id(named) in self._has_explained:
            return words
        self._has_explained.add(id(named))
        return named.rule.explanation(record) or words

    def _note(self, named: NamedRule, record: RuledRecord, words: str) -> None:
        found = self.rejecting if named.mode is Mode.REJECT else self.observing
        found.note(record.index, record.timestamp, named.name, words)

    def _schema_fails(self, named: NamedRule, record: RuledRecord, error: SchemaError) -> None:
        """Other records may name another schema, and are asked about."""
        if named.on_schema_error is OnSchemaError.REJECT:
            self._note(named, record, str(error))
        elif named.mode is Mode.REJECT and named.on_schema_error is OnSchemaError.RETRIABLE:
            self.rejecting.note_schema_error(named, error)
        else:
            self.observing.note_schema_error(named, error)

    def _rule_is_out(self, named: NamedRule, outage: Outage) -> None:
        """It is not asked about the records behind this one."""
        rejects = named.mode is Mode.REJECT and named.on_outage is not OnOutage.FORWARD
        (self.rejecting if rejects else self.observing).note_outage(named, outage)
        self._asked = [asked for asked in self._asked if asked[1] is not named]
