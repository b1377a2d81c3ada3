"""Plans the redrive of a dead-letter topic, and applies a plan that was printed before."""

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sluicegate.dead_letters.at_least_once_writer import AtLeastOnceWriter
from sluicegate.dead_letters.cluster import Cluster, present_ranges
from sluicegate.dead_letters.formats import read_letter
from sluicegate.dead_letters.letter import ReadLetter
from sluicegate.dead_letters.mark_topic import DEFAULT_MARKS, create_marks, read_marks, topic_id_of
from sluicegate.dead_letters.plan import PlannedRecord, Planner, PlanSummary
from sluicegate.dead_letters.redriving import LetterWriter, Origin, Pace, Redrive, Redriven, decisions
from sluicegate.dead_letters.repairs import LetterRepair
from sluicegate.dead_letters.selection import LetterSelection
from sluicegate.dead_letters.transactional_writer import TransactionalWriter
from sluicegate.dead_letters.verdicts import LetterValidator, own_time
from sluicegate.validation.policy import TimeFix

_NO_LIMITS = Pace()


class PlanChanged(Exception):
    """Raised if the current plan differs from the plan to apply. `digest` is that of the current plan.

    Nothing was written.
    """

    def __init__(self, digest: str) -> None:
        super().__init__(f"the plan has changed (its digest is {digest}); print it again")
        self.digest = digest


class DifferentClusters(Exception):
    """Raised if a transaction is required, but the original topics and the dead letters are in different clusters."""


@dataclass(frozen=True, slots=True)
class RedriveRequest:
    """The letters to redrive and the options for redriving them.

    - `topic`: the dead-letter topic. `selection`: the letters; None selects all letters in the topic at planning time.
    - `fix`: the timestamp correction, or None for the policy's. `repairs`: changes before validation, in order.
    - `keeps_partition`: whether records go to their original partitions. If not, their keys select the partitions.
    - `most_attempts`: records that were already redriven this often stay in the dead-letter topic.
    - `marks`: the marks topic, which is in the cluster of the dead letters.
    - `is_at_least_once`: whether to write without transactions, which is required if the target is another cluster.
    - `read_letter`: returns the letter in a record; by default, only formats of known writers are read.
    """

    topic: str
    selection: LetterSelection | None = None
    fix: TimeFix | None = None
    repairs: Sequence[LetterRepair] = ()
    keeps_partition: bool = True
    most_attempts: int = 3
    marks: str = DEFAULT_MARKS
    is_at_least_once: bool = False
    read_letter: ReadLetter = read_letter


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan: the selected letters with all their offsets, and what happens to each of them."""

    selection: LetterSelection
    summary: PlanSummary

    @property
    def digest(self) -> str:
        """Return the digest, which is the same for equal plans."""
        return self.summary.digest


class RedriveJob:
    """A job that redrives letters from one topic.

    `source` is the cluster of the dead letters and their marks. `validator` validates records against the policies of
    their original topics. `target` is the cluster of the original topics, if it is another one. Raises
    DifferentClusters and ClusterUnavailable.
    """

    def __init__(
        self, source: Cluster, request: RedriveRequest, validator: LetterValidator, target: Cluster | None = None
    ) -> None:
        self._source = source
        self._target = source if target is None else target
        self._request = request
        self._validator = validator
        self._other_cluster = self._id_of_other_cluster()
        self._topic_id = topic_id_of(source, request.topic)

    def plan(self) -> Plan:
        """Return the plan. Writes nothing. Raises ClusterUnavailable."""
        return self._planned(self._planner(), "")

    def apply(self, digest: str, actor: str, pace: Pace = _NO_LIMITS) -> Redriven:
        """Write the records of the plan with this digest, and marks that name the person `actor`.

        Resumes if an earlier run of the same plan ended early. Raises PlanChanged, Fenced and ClusterUnavailable.
        """
        request = self._request
        create_marks(self._source, request.marks)
        writer = self._writer()  # fences an earlier run first, so that it adds no marks while they are read
        planner = self._planner()
        plan = self._planned(planner, digest)
        if plan.digest != digest:
            raise PlanChanged(plan.digest)
        redrive = Redrive(writer, Origin(request.topic, self._topic_id, digest, actor), pace, _now_ms)
        return redrive.run(self._decisions(plan.selection, planner, ""))

    def _planned(self, planner: Planner, digest: str) -> Plan:
        selection = self._request.selection or LetterSelection(present_ranges(self._source, self._request.topic))
        summary = PlanSummary(self._terms(selection))
        for decision in self._decisions(selection, planner, digest):
            summary.add(decision)
        return Plan(selection, summary)

    def _decisions(self, selection: LetterSelection, planner: Planner, done_by: str) -> Iterator[PlannedRecord | str]:
        """Yield the decisions about the letters, ignoring marks by the plan `done_by`."""
        request = self._request
        return decisions(self._source, request.topic, selection, planner, done_by, request.read_letter)

    def _planner(self) -> Planner:
        request = self._request
        return Planner(
            self._validator,
            read_marks(self._source, request.marks, request.topic, self._topic_id),
            self._target.topics(),
            request.fix,
            request.most_attempts,
            request.keeps_partition,
            request.repairs,
        )

    def _terms(self, selection: LetterSelection) -> str:
        """Return what a plan depends on in addition to the letters and the policies."""
        request = self._request
        fix = None if request.fix is None else request.fix.value
        has_own_time = self._validator.time_of is own_time
        repairs = [repair.identity for repair in request.repairs]
        options = [has_own_time, fix, request.keeps_partition, repairs]
        return json.dumps([request.topic, self._topic_id, self._other_cluster, selection.text(), *options])

    def _writer(self) -> LetterWriter:
        request = self._request
        if request.is_at_least_once:
            return AtLeastOnceWriter(self._target, self._source, request.marks)
        return TransactionalWriter(self._target, request.topic, request.marks)

    def _id_of_other_cluster(self) -> str | None:
        """Return the id of the original topics' cluster, or None if it is also that of the dead letters."""
        if self._target is self._source:
            return None
        source, target = self._source.cluster_id(), self._target.cluster_id()
        if source == target:
            return None
        if not self._request.is_at_least_once:
            raise DifferentClusters(
                f"{self._request.topic} is in the cluster {source}, and the original topics are in {target}. One "
                "transaction cannot include both clusters; with --at-least-once, records may be written twice after a "
                "crash"
            )
        return target


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
