"""Validates a whole Produce request as a broker does: first the request itself, then each partition.

A broker rejects some requests because of several partitions together, such as transactional batches without a
transactional id, or from more than one producer. The proxy leaves this check to the broker, which receives each batch
or a stand-in with the same header.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from sluicegate.protocol.errors import ErrorCode
from sluicegate.protocol.produce_request import ProduceRequest
from sluicegate.protocol.records.codecs.decompression import Decompressor
from sluicegate.protocol.records.codecs.decompression_budget import DecompressionBudget
from sluicegate.protocol.records.record_batch import (
    CorruptBatch,
    opens_transactional,
)
from sluicegate.validation.dispositions.fixes import Previous
from sluicegate.validation.outcome import Waiver
from sluicegate.validation.policy import EXEMPT, TopicPolicy, ValidationLimits
from sluicegate.validation.produce.extended import ExtendedValidation
from sluicegate.validation.rules.rule import Client
from sluicegate.validation.validated_request import Place, ValidatedRequest
from sluicegate.validation.validator import Submission, validate_partition
from sluicegate.validation.verdict import FaultStage, Finding, Reason, Verdict

# The cost of each partition, in bytes of work.
_PARTITION_WORK = 4096
VALID_ACKS = frozenset({-1, 0, 1})
_NOTHING_SETTLED: Mapping[Place, Verdict] = MappingProxyType({})


def validate_request(
    request: ProduceRequest,
    names: Mapping[bytes, str],
    policy_of: Callable[[str], TopicPolicy],
    limits: ValidationLimits,
    now_ms: Callable[[], int],
    decompressor: Decompressor,
    budget: DecompressionBudget,
    previous: Previous | None = None,
    client: Client | None = None,
    settled: Mapping[Place, Verdict] = _NOTHING_SETTLED,
) -> ValidatedRequest:
    """Validate every partition.

    - `names`: resolves topic ids.
    - `now_ms`: called once per partition.
    - `budget`: the budget of the whole request. Batches beyond it are rejected.
    - `previous`: the timestamps for `fix: previous`.
    - `client`: the sender, for rules that depend on it.
    - `settled`: verdicts that are already known and apply in every mode (`sluicegate.validation.produce.conversion`).

    If no broker would accept the request's acks, the proxy leaves the whole request to the broker, and nothing is
    validated or stored. Raises Abandoned and PreviousTimeInFlight.
    """
    whole = None if settled else finding_about_request(request)
    validated = ValidatedRequest()
    extended = None
    if whole is None and request.acks not in VALID_ACKS:
        return waived_request(request, Waiver.INVALID_ACKS)
    for t, topic in enumerate(request.topics):
        name = topic.name_by(names)
        policy = policy_of(name if name is not None else "")
        for p, partition in enumerate(topic.partitions):
            verdict: Verdict | None
            now = now_ms()
            budget.worked(_PARTITION_WORK)
            if (t, p) in settled:
                validated.settle((t, p), settled[t, p], policy, now)
                continue
            if whole is not None:
                verdict = whole
            elif name is None:
                verdict = Finding(ErrorCode.UNKNOWN_TOPIC_ID, Reason.UNKNOWN_TOPIC_ID, stage=FaultStage.PARTITION)
            elif not policy.checked:
                validated.waive((t, p), Waiver.EXEMPT if policy is EXEMPT else Waiver.CHECKS_NONE)
                continue
            else:
                submission = Submission(name, partition.index, request.records(t, p), request.version)
                if policy.is_plain:
                    verdict = validate_partition(submission, policy, limits, now, decompressor, budget)
                else:
                    if extended is None:
                        extended = ExtendedValidation(
                            validated, limits, previous, decompressor, budget, client, request.acks
                        )
                    verdict = extended.validate((t, p), submission, policy, now)
            validated.add((t, p), verdict, policy, now)
    return validated


def waived_request(request: ProduceRequest, waiver: Waiver) -> ValidatedRequest:
    """Return the result for a request that is not validated."""
    validated = ValidatedRequest()
    for t, topic in enumerate(request.topics):
        for p in range(len(topic.partitions)):
            validated.waive((t, p), waiver)
    return validated


def finding_about_request(request: ProduceRequest) -> Finding | None:
    """Return the finding about an impossible size or magic in a partition's first batch, or None.

    Searches the partitions up to the first transactional batch.
    """
    try:
        for t, topic in enumerate(request.topics):
            for p in range(len(topic.partitions)):
                records = request.records(t, p)
                if records is not None and opens_transactional(records):
                    return None
    except CorruptBatch as error:
        return Finding(error.code, Reason.UNSUPPORTED_MAGIC, str(error), stage=FaultStage.REQUEST)
    return None
