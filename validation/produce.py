"""Judges a whole Produce request: what concerns all of it first, then partition by partition, as a broker does.

What a broker refuses because of several partitions together (transactional batches without a transactional id, or of
more than one producer) is left to it: it is sent every batch, or a stand-in that carries the same header.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from sluicegate.protocol.errors import ErrorCode
from sluicegate.protocol.produce_request import ProduceRequest
from sluicegate.protocol.records.allowance import Allowance
from sluicegate.protocol.records.compression import Decompressor
from sluicegate.protocol.records.record_batch import CorruptBatch, opens_transactional
from sluicegate.validation.judge import Submission, judge_partition
from sluicegate.validation.policy import JudgementLimits, Mode, TopicPolicy
from sluicegate.validation.rehearsals import rehearsal_of
from sluicegate.validation.verdict import Accepted, Reason, Refused, Stage, Verdict

Place = tuple[int, int]
"""A partition's place in a request: (topic position, partition position)."""

# What any partition costs, in bytes of work.
_PARTITION_WORK = 4096
VALID_ACKS = frozenset({-1, 0, 1})


class HeldTo(NamedTuple):
    """What a verdict was found by: the topic's policy as it was then, and the time its bounds are counted from (ms).

    Where a topic's id could not be resolved, the policy is that of topics that nothing is said of.
    """

    policy: TopicPolicy
    now_ms: int


class JudgedRequest:
    """The verdicts on one request. `accepted`, `refused` and `observed` together hold every partition that was judged.

    `observed`: what is wrong with those that are forwarded all the same, because their topic is only observed.
    `rehearsed`: how many records each bound that is only tried would refuse, where one does, in the policy's order.
    `held_to` says of all these what they were judged by. `unchecked`: how many partitions were left unjudged because
    their topic's policy says so.
    """

    def __init__(
        self, accepted: dict[Place, Accepted] | None = None, refused: dict[Place, Refused] | None = None
    ) -> None:
        self.accepted = accepted if accepted is not None else {}
        self.refused = refused if refused is not None else {}
        self.observed: dict[Place, Refused] = {}
        self.rehearsed: dict[Place, tuple[int, ...]] = {}
        self.held_to: dict[Place, HeldTo] = {}
        self.unchecked = 0
        self.record_errors_to_observe = 0

    def records_of(self, place: Place) -> int:
        """How many records a judged batch has, by its own count."""
        return next(found[place].records for found in (self.accepted, self.refused, self.observed) if place in found)


def judge_request(
    request: ProduceRequest,
    names: Mapping[bytes, str],
    policy_of: Callable[[str], TopicPolicy],
    limits: JudgementLimits,
    now_ms: Callable[[], int],
    decompressor: Decompressor,
    allowance: Allowance,
) -> JudgedRequest:
    """Judge every partition. `names` resolves topic ids; `now_ms` is read once a partition.

    `allowance` is what all of it may cost together: what goes beyond it is refused. Raises Abandoned where it does.
    A request whose acks no broker takes is left to the broker: nothing of it is judged or stored.
    """
    whole = _whole_request(request)
    judged = JudgedRequest()
    judged.record_errors_to_observe = allowance.record_errors
    if whole is None and request.acks not in VALID_ACKS:
        return judged
    for t, topic in enumerate(request.topics):
        name = topic.name if topic.name is not None else names.get(topic.topic_id or b"")
        policy = policy_of(name if name is not None else "")
        for p, partition in enumerate(topic.partitions):
            verdict: Verdict
            now = now_ms()
            allowance.worked(_PARTITION_WORK)
            if whole is not None:
                verdict = whole
            elif name is None:
                verdict = Refused(ErrorCode.UNKNOWN_TOPIC_ID, Reason.UNKNOWN_TOPIC_ID, stage=Stage.PARTITION)
            elif not policy.checked:
                judged.unchecked += 1
                continue
            else:
                submission = Submission(name, partition.index, request.records(t, p), request.version)
                if policy.is_plain:
                    verdict = judge_partition(submission, policy, limits, now, decompressor, allowance)
                else:
                    verdict = _judge_more(judged, (t, p), submission, policy, limits, now, decompressor, allowance)
            if isinstance(verdict, Refused):
                (judged.refused if policy.mode is Mode.REJECT else judged.observed)[t, p] = verdict
                judged.held_to[t, p] = HeldTo(policy, now)
            else:
                judged.accepted[t, p] = verdict
    return judged


def _judge_more(
    judged: JudgedRequest,
    place: Place,
    submission: Submission,
    policy: TopicPolicy,
    limits: JudgementLimits,
    now_ms: int,
    decompressor: Decompressor,
    allowance: Allowance,
) -> Verdict:
    """The verdict on a partition of a topic for which more is asked than what a broker would say."""
    rehearsal = rehearsal_of(policy)
    kept = allowance.record_errors
    if policy.mode is Mode.OBSERVE:  # they are in no answer, and take nobody's place in it
        allowance.record_errors = judged.record_errors_to_observe
    verdict = judge_partition(submission, policy, limits, now_ms, decompressor, allowance, rehearsal)
    if policy.mode is Mode.OBSERVE:
        judged.record_errors_to_observe = allowance.record_errors
        allowance.record_errors = kept
    if rehearsal is not None and any(rehearsal.counts) and (isinstance(verdict, Accepted) or verdict.bad_count):
        judged.rehearsed[place] = rehearsal.counts
        judged.held_to[place] = HeldTo(policy, now_ms)
    return verdict


def _whole_request(request: ProduceRequest) -> Refused | None:
    """A size or magic that cannot be: a broker looks at first batches, up to a transactional one, before all else."""
    try:
        for t, topic in enumerate(request.topics):
            for p in range(len(topic.partitions)):
                records = request.records(t, p)
                if records is not None and opens_transactional(records):
                    return None
    except CorruptBatch as error:
        return Refused(error.code, Reason.MAGIC, str(error), stage=Stage.REQUEST)
    return None
