"""Learns the times of batches that a broker has stored, for topics with `fix: previous`.

Only a successful response counts, so a batch with a wrong sequence number or without permission sets no time. A request
with acks=0 gets no response, so it sets no time either.
"""

from collections import Counter
from collections.abc import Callable, Mapping

from sluicegate.protocol.errors import ErrorCode
from sluicegate.protocol.produce_request import ProduceRequest
from sluicegate.proxy.responses.produce_responses import ClientError, PartitionKey, key_of
from sluicegate.validation.previous_times import Partition, PreviousTimes, PreviousTimesInOrder
from sluicegate.validation.validated_request import ValidatedRequest

ExpectedTimes = Mapping[PartitionKey, tuple[Partition, int]]
"""The times (ms) of one request's batches."""


class StoredTimes:
    """One session's stored times. Responses arrive in the order of the requests."""

    def __init__(self, known: PreviousTimes) -> None:
        self._known = known
        self._under_way: Counter[Partition] = Counter()
        self._settled: Callable[[None], None] | None = None
        self.previous = PreviousTimesInOrder(known, self._under_way)

    def expect(self, request: ProduceRequest, validated: ValidatedRequest) -> ExpectedTimes:
        """Return the times of a request that is being forwarded, for `learn_from_response`."""
        times: dict[PartitionKey, tuple[Partition, int]] = {}
        for (t, p), (partition, time) in validated.times.items():
            topic = request.topics[t]
            times[PartitionKey(key_of(topic), topic.partitions[p].index)] = partition, time
        self._under_way.update(partition for partition, _ in times.values())
        return times

    def when_settled(self, callback: Callable[[None], None]) -> None:
        """Call `callback` when the broker has responded to all requests in flight."""
        if self._under_way:
            self._settled = callback
        else:
            callback(None)

    def learn_from_response(self, times: ExpectedTimes, client_errors: Mapping[PartitionKey, ClientError]) -> None:
        """Store the times of the batches that the broker has stored."""
        for partition_key, ((topic, index), time) in times.items():
            error = client_errors.get(partition_key)
            if error is not None and error.code == ErrorCode.NONE:
                self._known.note_stored(topic, index, time)
        for partition, _ in times.values():
            self._under_way[partition] -= 1
            if not self._under_way[partition]:
                del self._under_way[partition]
        if not self._under_way and self._settled is not None:
            settled, self._settled = self._settled, None
            settled(None)
