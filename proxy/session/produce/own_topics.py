"""Rejects Produce requests with batches for the proxies' own topics (`state`).

The broker does not even get a stand-in. A transactional stand-in would make the broker add the partition to the
transaction (KIP-890). While that transaction is open, readers of committed records would not see later records.
"""

from collections.abc import Mapping, Set

from sluicegate.protocol.errors import ErrorCode
from sluicegate.protocol.produce_request import ProduceRequest
from sluicegate.validation.policy import TopicPolicy
from sluicegate.validation.validated_request import ValidatedRequest, ValidationBasis
from sluicegate.validation.verdict import FaultStage, Finding, Reason

_MESSAGE = "only sluicegate writes to this topic: it stores the shared state of this cluster's proxies"
_OF_OTHERS = (
    "not stored, because the request also has a batch for a topic to which only sluicegate writes: send it again"
)


def refused_request(
    request: ProduceRequest, own_topics: Set[str], names: Mapping[bytes, str], now_ms: int
) -> ValidatedRequest:
    """Return the rejections for a request that names one of `own_topics`. `names` maps topic ids to topic names."""
    validated = ValidatedRequest()
    basis = ValidationBasis(TopicPolicy(), now_ms)
    own = _rejected(ErrorCode.TOPIC_AUTHORIZATION_FAILED, _MESSAGE)
    others = _rejected(ErrorCode.REQUEST_TIMED_OUT, _OF_OTHERS)
    for t, topic in enumerate(request.topics):
        rejected = own if topic.name_by(names) in own_topics else others
        for p in range(len(topic.partitions)):
            validated.reject((t, p), rejected, basis)
    return validated


def _rejected(code: ErrorCode, message: str) -> Finding:
    return Finding(code, Reason.OWN_TOPIC, message, stage=FaultStage.PARTITION)
