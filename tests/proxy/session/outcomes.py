"""Returns the outcomes of validated requests, as if a broker had responded."""

from collections.abc import Mapping

from sluicegate.protocol.errors import ErrorCode
from sluicegate.protocol.produce_request import ProduceRequest
from sluicegate.proxy.responses.produce_responses import ClientError, PartitionKey, partition_at
from sluicegate.proxy.session.client.client_details import client_details
from sluicegate.proxy.session.client.identity import ClientIdentity
from sluicegate.proxy.session.produce.awaited_batches import AwaitedBatches
from sluicegate.proxy.session.produce.batch_outcome import RequestOutcome
from sluicegate.validation.validated_request import ValidatedRequest


def settled_outcome(
    identity: ClientIdentity,
    request: ProduceRequest,
    validated: ValidatedRequest,
    names: Mapping[bytes, str] | None = None,
    now_ms: int = 0,
    proxy_seconds: float = 0.0,
    upstream_seconds: float | None = None,
    errors: Mapping[PartitionKey, ClientError] | None = None,
) -> RequestOutcome:
    """Return the outcome: the client gets the proxy's errors, and success for the other batches, unless `errors` are
    given.
    """
    batches = AwaitedBatches(client_details(identity), request, validated, names or {}, now_ms, proxy_seconds, 10)
    return batches.settled(_errors(request, validated) if errors is None else errors, upstream_seconds)


def _errors(request: ProduceRequest, validated: ValidatedRequest) -> dict[PartitionKey, ClientError]:
    errors = {
        partition_at(request, (t, p)): ClientError(ErrorCode.NONE, is_ours=False)
        for t, topic in enumerate(request.topics)
        for p in range(len(topic.partitions))
    }
    for place, rejected in validated.rejected.items():
        errors[partition_at(request, place)] = ClientError(rejected.code, is_ours=True)
    for place in validated.to_retry:
        errors[partition_at(request, place)] = ClientError(ErrorCode.REQUEST_TIMED_OUT, is_ours=True)
    return errors
