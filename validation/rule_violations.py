"""Collects the rule violations in one batch, record by record, and builds the finding."""

from collections.abc import Mapping
from dataclasses import replace

from sluicegate.protocol.errors import ErrorCode
from sluicegate.protocol.records.codecs.decompression_budget import DecompressionBudget
from sluicegate.validation import wording
from sluicegate.validation.findings import TEXTS_AT_LEAST, finding_about_records
from sluicegate.validation.rules.rule import NamedRule, OnOutage, Outage, SchemaError
from sluicegate.validation.rules.schemas.registered_schema import RegistryOutage
from sluicegate.validation.verdict import BadRecord, Broken, Finding, Reason

_MOST_OF_A_RECORD = 8
_MOST_CHARACTERS = 300
# The maximum per batch. It is more than the default memory for quarantined records can hold.
MOST_BROKEN = 65_536


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_CHARACTERS else f"{text[: _MOST_CHARACTERS - 1]}…"


class RuleViolations:
    """The violations of all rejecting rules, or of all observing rules. Keeps the messages for `keep` records.

    A record that violates several rules counts as one bad record, and its message names up to eight of them. `broken`,
    if given, receives the first `most_broken` bad records.
    """

    def __init__(self, keep: int, broken: Broken | None = None, most_broken: int = MOST_BROKEN) -> None:
        self.count = 0
        self._keep = max(keep, TEXTS_AT_LEAST)
        self._kept: list[BadRecord] = []
        self._by_rule: dict[str, int] = {}
        self._broken = broken
        self._most_broken = most_broken
        self._index = -1
        self._outage: tuple[NamedRule, Outage] | None = None
        self._schema_error: tuple[NamedRule, SchemaError] | None = None

    def note(self, index: int, timestamp: int, rule: str, fault: str) -> None:
        """Add a record that violates a rule. Must be called in the order of records."""
        if index != self._index:
            self._index = index
            self.count += 1
            if self.count <= self._keep:
                text = wording.broken_rule(rule, _cut(fault))
                self._kept.append(BadRecord(index, timestamp, Reason.RULE_VIOLATED, text, rules=(rule,)))
        elif self.count <= self._keep and len(self._kept[-1].rules) < _MOST_OF_A_RECORD:
            last = self._kept[-1]
            text = f"{last.message}; {wording.broken_rule(rule, _cut(fault))}"
            rules = last.rules if rule in last.rules else (*last.rules, rule)
            self._kept[-1] = replace(last, message=text, rules=rules)
        self._by_rule[rule] = self._by_rule.get(rule, 0) + 1
        if self._broken is not None and self.count <= self._most_broken:
            known = self._broken.get(index, ())
            self._broken[index] = known if rule in known else (*known, rule)

    def note_outage(self, named: NamedRule, outage: Outage) -> None:
        """Note that a rule's dependency did not respond. Only the first outage is reported."""
        if self._outage is None:
            self._outage = (named, outage)

    def note_schema_error(self, named: NamedRule, error: SchemaError) -> None:
        """Note a schema that cannot be compiled or applied. This rejects no record.

        Only the first such schema is reported.
        """
        if self._schema_error is None:
            self._schema_error = (named, error)

    def finding(self, records: int, budget: DecompressionBudget) -> Finding | None:
        """Return the finding about a batch of `records` records; None if there are no violations.

        Bad records take precedence over an outage, because the batch would still be rejected after the outage.
        """
        if self.count:
            finding = finding_about_records(self._kept, self.count, None, records, budget)
            return replace(finding, rules=tuple(self._by_rule.items()), broken=self._broken)
        if self._outage is None:
            return self._schema_finding(records)
        named, outage = self._outage
        is_final = named.on_outage is OnOutage.REJECT
        code = ErrorCode.POLICY_VIOLATION if is_final else ErrorCode.REQUEST_TIMED_OUT
        text = wording.outage(named.name, _cut(str(outage)), is_final)
        waits_for = outage.registry if isinstance(outage, RegistryOutage) and not is_final else None
        return Finding(
            code, Reason.DEPENDENCY_UNAVAILABLE, text, records=records, rules=((named.name, 0),), waits_for=waits_for
        )

    def _schema_finding(self, records: int) -> Finding | None:
        if self._schema_error is None:
            return None
        named, error = self._schema_error
        text = wording.schema_error(named.name, _cut(str(error)))
        return Finding(
            ErrorCode.REQUEST_TIMED_OUT, Reason.SCHEMA_UNUSABLE, text, records=records, rules=((named.name, 0),)
        )

    @property
    def by_rule(self) -> Mapping[str, int]:
        """Return the number of records that violate each rule."""
        return self._by_rule
