"""Collects a Produce request's verdicts by partition, with their bases and the batches that replace the client's."""

from collections.abc import Mapping, Set
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

from sluicegate.validation.outcome import Waiver
from sluicegate.validation.policy import TopicPolicy
from sluicegate.validation.previous_times import Partition
from sluicegate.validation.rules.rule import Mode
from sluicegate.validation.verdict import Accepted, Finding, Verdict

Place = tuple[int, int]
"""A partition's position in a request: (topic position, partition position)."""

_NONE: Any = MappingProxyType({})


class ValidationBasis(NamedTuple):
    """The basis of a verdict: the topic's policy at that time, and the time against which bounds were checked (ms).

    If a topic id could not be resolved, the policy is the default policy.
    """

    policy: TopicPolicy
    now_ms: int


@dataclass(frozen=True, slots=True)
class FixedBatch:
    """A fixed batch. `records` replaces the original.

    `finding` is the finding that would have rejected the batch, with the new timestamps of its records.
    """

    records: bytes
    finding: Finding


@dataclass(frozen=True, slots=True)
class MarkedBatch:
    """A batch with marks. `records` replaces the original.

    `findings` are about its bad records. It is empty if only the producer's own headers were renamed.
    """

    records: bytes
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class MaskedBatch:
    """A batch without sensitive values. `records` replaces the original; `count` of its records were changed.

    `count` is 0 if the batch was only recompressed. `rules` contains the names of the policies, and how many records
    each of them changed.
    """

    records: bytes
    count: int
    rules: tuple[tuple[str, int], ...]


class ValidatedRequest:
    """The verdicts on one request, by partition. Every validated partition is in `accepted`, `rejected` or `observed`.

    Verdicts:

    - `accepted`: partitions whose batch is good.
    - `rejected`: partitions whose batch is rejected with an error.
    - `observed`: findings that are only reported, because their batches are forwarded. The findings for which mode
      `reject` would reject the batch come first. A partition that is rejected for another reason may also be here.
    - `unreadable`: parts of forwarded batches that some clients cannot read (`framing: safe`). They are reported.

    Batches that replace those from the client:

    - `fixed`: batches with corrected timestamps, which are accepted after the correction.
    - `marked`: batches whose bad records have marks, or whose producers' own headers were renamed.
    - `masked`: batches whose sensitive fields are masked or hashed.
    - `recompressed`: batches that the proxy compressed again without masking anything, in topics with sensitive fields.

    Dead letters:

    - `to_quarantine`: findings that name bad records, by batch, if the topic has a dead-letter topic. The batch is in
      `rejected`, or in `observed` if only copies of its bad records are written.
    - `quarantined`, `to_retry`: the outcome, which is added later. The client retries a batch in `to_retry` because its
      bad records could not be written; the value gives the reason.

    More about partitions:

    - `times`: for topics with `fix: previous`, the partition and latest timestamp of each good batch. The timestamp
      takes effect after a broker has stored the batch.
    - `rehearsed`: how many records each rehearsed bound would reject, in the policy's order.
    - `basis`: the policy and the time on which all of these are based.
    - `waived`: why partitions were not validated.
    """

    def __init__(
        self, accepted: dict[Place, Accepted] | None = None, rejected: dict[Place, Finding] | None = None
    ) -> None:
        self.accepted = accepted if accepted is not None else {}
        self.rejected = rejected if rejected is not None else {}
        self.observed: dict[Place, tuple[Finding, ...]] = _NONE
        self.unreadable: dict[Place, Finding] = _NONE
        self.fixed: Mapping[Place, FixedBatch] = _NONE
        self.marked: Mapping[Place, MarkedBatch] = _NONE
        self.masked: Mapping[Place, MaskedBatch] = _NONE
        self.recompressed: Mapping[Place, bytes] = _NONE
        self.rehearsed: Mapping[Place, tuple[int, ...]] = _NONE
        self.times: dict[Place, tuple[Partition, int]] = _NONE
        self.basis: dict[Place, ValidationBasis] = {}
        self.to_quarantine: dict[Place, tuple[Finding, ...]] = _NONE
        self.quarantined: Set[Place] = frozenset()
        self.to_retry: Mapping[Place, str] = _NONE
        self.waived: dict[Place, Waiver] = _NONE

    def add(self, place: Place, verdict: Verdict | None, policy: TopicPolicy, now_ms: int) -> None:
        """Add the verdict on a partition. None means that the verdict was added before."""
        if isinstance(verdict, Finding):
            self.reject(place, verdict, ValidationBasis(policy, now_ms))
        elif verdict is not None:
            self.accepted[place] = verdict
            if verdict.unreadable is not None:
                self.report_unreadable(place, verdict.unreadable, ValidationBasis(policy, now_ms))

    def settle(self, place: Place, verdict: Verdict, policy: TopicPolicy, now_ms: int) -> None:
        """Add a verdict that applies in every mode of the topic."""
        if isinstance(verdict, Finding):
            self.basis[place] = ValidationBasis(policy, now_ms)
            self.rejected[place] = verdict
        else:
            self.accepted[place] = verdict

    def reject(self, place: Place, finding: Finding, basis: ValidationBasis) -> None:
        """Add a finding that rejects a batch, or that is only reported if the topic is observed."""
        if basis.policy.mode is Mode.OBSERVE:
            self.observe(place, finding, basis)
        else:
            self.basis[place] = basis
            self.rejected[place] = finding
        if basis.policy.dead_letters is not None and finding.bad_count:
            if not self.to_quarantine:
                self.to_quarantine = {}
            self.to_quarantine[place] = (finding, *self.to_quarantine.get(place, ()))

    def observe(self, place: Place, finding: Finding, basis: ValidationBasis) -> None:
        """Add a finding that is reported without a rejection. Insert it before earlier findings."""
        self.basis[place] = basis
        if not self.observed:
            self.observed = {}
        self.observed[place] = (finding, *self.observed.get(place, ()))

    def report_unreadable(self, place: Place, finding: Finding, basis: ValidationBasis) -> None:
        """Add a report that some clients cannot read a forwarded batch."""
        self.basis[place] = basis
        if not self.unreadable:
            self.unreadable = {}
        self.unreadable[place] = finding

    def waive(self, place: Place, waiver: Waiver) -> None:
        """Record that the validation of a partition is left to the broker."""
        if not self.waived:
            self.waived = {}
        self.waived[place] = waiver

    def replacements(self) -> dict[Place, bytes]:
        """Return the batches that replace the original ones."""
        fixed = {place: each.records for place, each in self.fixed.items()}
        marked = {place: each.records for place, each in self.marked.items()}
        masked = {place: each.records for place, each in self.masked.items()}
        return fixed | marked | dict(self.recompressed) | masked

    def is_marked(self, place: Place) -> bool:
        """Return whether a batch is forwarded with marks on its bad records."""
        return place in self.marked and bool(self.marked[place].findings)

    def is_copied(self, place: Place) -> bool:
        """Return whether a batch is forwarded after copies of its bad records were written to a dead-letter topic."""
        return place in self.quarantined and place not in self.rejected

    def records_of(self, place: Place) -> int:
        """Return how many records a validated batch contains, according to its header."""
        verdict = self.accepted.get(place) or self.rejected.get(place) or self.observed[place][0]
        return verdict.records
