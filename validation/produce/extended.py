"""Validates partitions if their policies require fixes, marks, masks, rehearsals, rules, or samples."""

from collections.abc import Iterator
from dataclasses import replace

from sluicegate.protocol.produce_versions import ONE_BATCH_SINCE
from sluicegate.protocol.records.codecs.decompression import Decompressor
from sluicegate.protocol.records.codecs.decompression_budget import DecompressionBudget, OverLimit
from sluicegate.protocol.records.record_batch import (
    MAGIC_2,
    NO_PRODUCER_ID,
    magic_at,
)
from sluicegate.validation.dispositions.fixes import Previous, fix_times
from sluicegate.validation.dispositions.marks import mark_bad_records
from sluicegate.validation.dispositions.masking import OF_READABLE_BATCHES, mask
from sluicegate.validation.dispositions.rewritten import GrowthAllowance
from sluicegate.validation.evaluation import (
    RuleResult,
    check_may_run_here,
    evaluate_request_rules,
    evaluate_rules,
)
from sluicegate.validation.findings import finding_over_limit
from sluicegate.validation.policy import TimeFix, TopicPolicy, ValidationLimits
from sluicegate.validation.previous_times import PreviousTimes
from sluicegate.validation.produce.samples import Sampling
from sluicegate.validation.reading import Batch, ContentReader
from sluicegate.validation.requests.request_rule import SentBatch
from sluicegate.validation.rule_violations import MOST_BROKEN
from sluicegate.validation.rules.rule import Client, Mode
from sluicegate.validation.timestamps import rehearsal_of
from sluicegate.validation.validated_request import (
    FixedBatch,
    MarkedBatch,
    MaskedBatch,
    Place,
    ValidatedRequest,
    ValidationBasis,
)
from sluicegate.validation.validator import Submission, validate_partition
from sluicegate.validation.verdict import Accepted, Broken, Finding, Verdict

_ANY_SIZE = 1 << 50
# The maximum number of bad records (about 25 MB) that wait to be copied until all batches of the request are validated.
_MOST_BROKEN_OF_REQUEST = 4 * MOST_BROKEN
_NOBODY = Client("")
_WITHOUT_FIXES = frozenset({Mode.OBSERVE, Mode.MARK})


class ExtendedValidation:
    """The extended validation of a request's partitions. It adds the results to `validated`."""

    def __init__(
        self,
        validated: ValidatedRequest,
        limits: ValidationLimits,
        previous: Previous | None,
        decompressor: Decompressor,
        budget: DecompressionBudget,
        client: Client | None,
        acks: int,
    ) -> None:
        self._validated = validated
        self._limits = limits
        self._previous = previous if previous is not None else PreviousTimes()
        self._decompressor = decompressor
        self._budget = budget
        self._client = client if client is not None else _NOBODY
        self._acks = acks
        self._observed_errors = budget.record_errors
        self._observed_budget = DecompressionBudget(0, limits.max_record_errors, _go_on)
        self._sampling = Sampling(limits, decompressor, budget)
        self._growth = GrowthAllowance()
        self._broken_left = _MOST_BROKEN_OF_REQUEST
        self._fixed: dict[Place, FixedBatch] = {}
        self._marked: dict[Place, MarkedBatch] = {}
        self._masked: dict[Place, MaskedBatch] = {}
        self._recompressed: dict[Place, bytes] = {}
        self._rehearsed: dict[Place, tuple[int, ...]] = {}
        validated.marked = self._marked
        validated.masked = self._masked
        validated.recompressed = self._recompressed
        validated.fixed = self._fixed
        validated.rehearsed = self._rehearsed

    def validate(self, place: Place, submission: Submission, policy: TopicPolicy, now_ms: int) -> Verdict | None:
        """Return the verdict on one partition, after a fix if possible; None if its violations are only observed."""
        floor = policy.floor_of_others if policy.mode is Mode.OBSERVE else None
        if floor is None:
            return self._validated_by(policy, place, submission, now_ms)
        if self._is_rejected_by_floor(place, submission, floor, now_ms):
            return None
        # the floor's validation has already counted all bytes
        budget, self._budget = self._budget, self._budget.for_rereading()
        try:
            return self._validated_by(policy, place, submission, now_ms)
        finally:
            self._budget = budget

    def _validated_by(self, policy: TopicPolicy, place: Place, submission: Submission, now_ms: int) -> Verdict | None:
        budget = self._budget
        if policy.rules is not None:
            check_may_run_here(policy.rules, budget)
        if policy.sensitive is not None:
            check_may_run_here(policy.sensitive.values, budget)
        kept = budget.record_errors
        is_observed = policy.mode is Mode.OBSERVE
        if is_observed:  # no response contains its record errors
            budget.record_errors = self._observed_errors
        by_broker = self._as_a_broker(place, submission, policy, now_ms)
        if policy.mode is Mode.MARK:
            verdict = self._marked_or_rejected(place, submission, by_broker, policy, now_ms)
        else:
            verdict = self._rejected_or_copied(place, submission, by_broker, policy, now_ms)
        if is_observed:
            self._observed_errors = budget.record_errors
            budget.record_errors = kept
        if policy.fix is TimeFix.PREVIOUS and isinstance(verdict, Accepted) and verdict.has_time:
            if not self._validated.times:
                self._validated.times = {}
            self._validated.times[place] = (submission.topic, submission.partition), now_ms + verdict.ahead_ms
        if policy.samples:
            verdict = self._sampling.with_samples(place, submission, verdict, self._validated.observed, self._fixed)
        unreadable = by_broker.unreadable if isinstance(by_broker, Accepted) else None
        if unreadable is not None and (is_observed or isinstance(verdict, Accepted)):
            self._validated.report_unreadable(place, unreadable, ValidationBasis(policy, now_ms))
        if policy.sensitive is not None and self._is_unmaskable(place, submission, verdict, policy, now_ms):
            return None
        if isinstance(verdict, Accepted) and place in self._validated.observed:
            return None
        return verdict

    def _is_rejected_by_floor(self, place: Place, submission: Submission, floor: TopicPolicy, now_ms: int) -> bool:
        """Return whether the floor rejects the batch of a client to which `enforce` does not apply."""
        if floor.rules is not None:
            check_may_run_here(floor.rules, self._budget)
        by_broker = validate_partition(submission, floor, self._limits, now_ms, self._decompressor, self._budget)
        verdict = self._by_rules(place, submission, by_broker, floor, now_ms)
        if not isinstance(verdict, Finding):
            return False
        if floor.samples:
            verdict = self._sampling.sampled_finding(
                verdict, submission.topic, submission.partition, submission.records
            )
        self._validated.reject(place, verdict, ValidationBasis(floor, now_ms))
        return True

    def _is_unmaskable(
        self, place: Place, submission: Submission, verdict: Verdict, policy: TopicPolicy, now_ms: int
    ) -> bool:
        """Mask the batch if it would be forwarded. Return True if it was rejected because it cannot be masked.

        Such a batch is rejected even if the topic's violations are only observed.
        """
        is_forwarded = isinstance(verdict, Accepted) or policy.mode is Mode.OBSERVE
        records, sensitive = submission.records, policy.sensitive
        if records is None or sensitive is None or not is_forwarded:
            return False
        rejection: Finding | None = None
        if isinstance(verdict, Finding) and not verdict.bad_count and verdict.reason not in OF_READABLE_BATCHES:
            rejection = verdict
        elif verdict.records:  # a broker stores nothing if there is no complete message
            changed = self._validated.replacements().get(place)
            batch = records if changed is None else memoryview(changed)
            budget = self._budget
            known = (self._limits_of(place), self._decompressor, budget.for_rereading(), budget)
            where = (submission.topic, submission.partition, self._client)
            found: MaskedBatch | Finding | None
            try:
                is_ours = changed is not None
                found = mask(batch, where, sensitive, self._most_bytes(batch, policy), *known, is_ours=is_ours)
            except OverLimit as over:
                found = finding_over_limit(submission.topic, submission.partition, over, verdict.records)
            if isinstance(found, MaskedBatch):
                self._growth.spend(len(batch), len(found.records))
                if found.count:
                    self._masked[place] = found
                else:
                    self._recompressed[place] = found.records
            rejection = found if isinstance(found, Finding) else None
        if rejection is None:
            return False
        for replaced in (self._fixed, self._marked):
            replaced.pop(place, None)
        if place in self._validated.to_quarantine:
            del self._validated.to_quarantine[place]
        if isinstance(verdict, Finding) and verdict is not rejection:
            self._validated.observe(place, verdict, ValidationBasis(policy, now_ms))
        self._validated.reject(place, rejection, ValidationBasis(replace(policy, mode=Mode.REJECT), now_ms))
        return True

    def _as_a_broker(self, place: Place, submission: Submission, policy: TopicPolicy, now_ms: int) -> Verdict:
        """Return the verdict of a broker's checks, after a fix, and count violations of rehearsed bounds."""
        budget = self._budget
        kept = budget.record_errors
        rehearsal = rehearsal_of(policy)
        verdict = validate_partition(submission, policy, self._limits, now_ms, self._decompressor, budget, rehearsal)
        if rehearsal is not None and any(rehearsal.counts) and (isinstance(verdict, Accepted) or verdict.bad_count):
            self._rehearsed[place] = rehearsal.counts
            self._validated.basis[place] = ValidationBasis(policy, now_ms)
        if policy.fix is not None and policy.mode not in _WITHOUT_FIXES and isinstance(verdict, Finding):
            verdict = self._fix(place, submission, verdict, policy, now_ms)
            if isinstance(verdict, Accepted):
                budget.record_errors = kept
        return verdict

    def _marked_or_rejected(
        self, place: Place, submission: Submission, by_broker: Verdict, policy: TopicPolicy, now_ms: int
    ) -> Verdict:
        """Return an acceptance, with marks if the batch has bad records, or the finding if it cannot be marked.

        Rules are evaluated even if bounds are violated, so that a mark names all of a record's violations.
        """
        records = submission.records
        if records is None or by_broker.records == 0 or magic_at(records, 0) < MAGIC_2:
            return self._by_rules(place, submission, by_broker, policy, now_ms)
        if isinstance(by_broker, Finding) and not by_broker.bad_count:
            return by_broker
        as_accepted = Accepted(by_broker.records, 0) if isinstance(by_broker, Finding) else by_broker
        by_rules = self._by_rules(place, submission, as_accepted, policy, now_ms)
        findings = tuple(each for each in (by_broker, by_rules) if isinstance(each, Finding))
        if not all(each.bad_count for each in findings):
            return findings[0]
        known = (self._most_bytes(records, policy), self._limits, self._decompressor, self._budget.for_rereading())
        marked: MarkedBatch | Finding | None
        try:
            marked = mark_bad_records(records, findings, policy, now_ms, *known)
        except OverLimit as over:
            marked = finding_over_limit(submission.topic, submission.partition, over, by_broker.records)
        if isinstance(marked, Finding):
            return marked
        if findings:
            self._budget.record_errors += sum(len(each.bad_records) for each in findings)  # no response contains them
        if marked is not None:
            self._growth.spend(len(records), len(marked.records))
            reported = [self._reported(each) for each in marked.findings]
            if policy.samples:
                where = (submission.topic, submission.partition, records)
                reported = [self._sampling.sampled_finding(each, *where) for each in reported]
            self._marked[place] = replace(marked, findings=tuple(reported))
            self._validated.basis[place] = ValidationBasis(policy, now_ms)
        return as_accepted

    def _reported(self, finding: Finding) -> Finding:
        """Return a marked batch's finding with the details that events need.

        All observed batches of a request share the limit on listed records.
        """
        listed = finding.bad_records[: self._observed_errors]
        self._observed_errors -= len(listed)
        return replace(finding, bad_records=listed, broken=None)

    def _rejected_or_copied(
        self, place: Place, submission: Submission, by_broker: Verdict, policy: TopicPolicy, now_ms: int
    ) -> Verdict:
        """Return the verdict of bounds and, if no bound is violated, of rules.

        If copies of the bad records are written before the batch is forwarded, rules are evaluated even if a bound is
        violated. Otherwise, not all bad records would be copied.
        """
        records = submission.records
        is_copied = policy.mode is Mode.OBSERVE and policy.dead_letters is not None
        if isinstance(by_broker, Accepted) or not by_broker.bad_count or not is_copied:
            return self._by_rules(place, submission, by_broker, policy, now_ms)
        if records is None or magic_at(records, 0) < MAGIC_2:  # its records cannot be copied
            return by_broker
        by_rules = self._by_rules(place, submission, Accepted(by_broker.records, 0), policy, now_ms)
        if isinstance(by_rules, Finding):
            self._validated.reject(place, by_rules, ValidationBasis(policy, now_ms))
        return by_broker

    def _by_rules(
        self, place: Place, submission: Submission, verdict: Verdict, policy: TopicPolicy, now_ms: int
    ) -> Verdict:
        """Return the verdict of the operator's rules on a batch, or on its fixed version.

        A broker's checks have already accepted the batch.
        """
        if isinstance(verdict, Finding) or submission.records is None or not policy.has_rules:
            return verdict
        if verdict.records == 0:  # an old request without a complete message; a broker stores nothing
            return verdict
        records = memoryview(self._fixed[place].records) if place in self._fixed else submission.records
        batch = Batch(submission.topic, submission.partition, records, verdict.records)
        for result in self._results(batch, policy, self._limits_of(place)):
            if result.observing is not None:
                self._validated.observe(place, result.observing, ValidationBasis(policy, now_ms))
            if result.rejecting is not None:
                self._fixed.pop(place, None)
                return result.rejecting
        return verdict

    def _most_bytes(self, records: memoryview, policy: TopicPolicy) -> int:
        """Return the maximum size (bytes) of a batch that replaces `records`."""
        most = self._growth.most_bytes(len(records))
        return most if policy.max_message_bytes is None else min(most, policy.max_message_bytes)

    def _limits_of(self, place: Place) -> ValidationLimits:
        """Return the limits. A fixed or marked batch has no limit on its ratio, because the proxy compressed it."""
        is_ours = place in self._fixed or place in self._marked
        return self._limits if not is_ours else replace(self._limits, ratio_free_bytes=_ANY_SIZE)

    def _results(self, batch: Batch, policy: TopicPolicy, limits: ValidationLimits) -> Iterator[RuleResult]:
        """Yield the results, starting with that of the request rules. After a rejection, records are not read."""
        if policy.requests:
            sent = SentBatch(self._acks, batch.codec, batch.producer_id != NO_PRODUCER_ID, len(batch.records))
            yield evaluate_request_rules(policy.requests, sent, self._client, batch.record_count)
        if policy.rules is not None:
            reader = ContentReader(self._decompressor)
            broken: Broken | None = {} if policy.lists_all_bad_records else None
            # these records are kept until all batches are validated
            is_kept = broken is not None and policy.mode is not Mode.MARK
            most = min(MOST_BROKEN, self._broken_left) if is_kept else MOST_BROKEN
            observed = self._observed_budget
            result = evaluate_rules(
                policy.rules, batch, self._client, limits, reader, self._budget, observed, broken, most
            )
            self._broken_left -= len(broken) if broken is not None and is_kept else 0
            yield result

    def _fix(self, place: Place, submission: Submission, finding: Finding, policy: TopicPolicy, now_ms: int) -> Verdict:
        """Return the verdict on the fixed batch, or the finding if the batch cannot be fixed."""
        records = submission.records
        if records is None or submission.version < ONE_BATCH_SINCE:
            return finding
        where = (submission.topic, submission.partition)
        budget = self._budget.for_rereading()  # the first validation has already counted all bytes
        known = (self._limits, now_ms, self._previous, self._most_bytes(records, policy), self._decompressor, budget)
        fixed = fix_times(where, records, finding, policy, *known)
        if fixed is None:
            return finding
        again = Submission(submission.topic, submission.partition, memoryview(fixed.records), submission.version)
        limits = replace(self._limits, ratio_free_bytes=_ANY_SIZE)  # the decompressed size is unchanged
        verdict = validate_partition(again, policy, limits, now_ms, self._decompressor, budget)
        if isinstance(verdict, Finding):
            return finding
        self._growth.spend(len(records), len(fixed.records))
        self._fixed[place] = fixed
        self._validated.basis[place] = ValidationBasis(policy, now_ms)
        return verdict


def _go_on() -> None:
    """Do nothing. A budget that only counts record errors does no work."""
