"""Learns the times of batches that a broker has stored, for topics with `fix: previous`.

Only a successful response counts: a batch with a wrong sequence or without permission sets no time. Requests with
acks=0 get no response, so they set none either.
"""

from collections import Counter
from collections.abc import Callable
from functools import partial

from sluicegate.protocol.errors import ErrorCode
from sluicegate.protocol.framing import Parts
from sluicegate.protocol.produce_request import ProduceRequest
from sluicegate.protocol.produce_response import produce_body_at, walk_produce_response
from sluicegate.proxy.responses.produce_responses import Spot, key_of
from sluicegate.proxy.session.in_flight import Finish, InFlightRequest
from sluicegate.validation.previous_times import Partition, PreviousTimes, PreviousTimesInOrder
from sluicegate.validation.validated_request import ValidatedRequest

_Times = dict[Spot, tuple[Partition, int]]


class StoredTimes:
    """The stored times of one session, whose responses arrive in the order of its requests."""

    def __init__(self, known: PreviousTimes) -> None:
        self._known = known
        self._under_way: Counter[Partition] = Counter()
        self._settled: Callable[[None], None] | None = None
        self.previous = PreviousTimesInOrder(known, self._under_way)

    def expect(self, in_flight: InFlightRequest, request: ProduceRequest, validated: ValidatedRequest) -> None:
        """Learn times from the response to `in_flight`; its `finish` still applies."""
        if not validated.times:
            return
        times: _Times = {}
        for (t, p), (partition, time) in validated.times.items():
            topic = request.topics[t]
            times[Spot(key_of(topic), topic.partitions[p].index)] = partition, time
        self._under_way.update(partition for partition, _ in times.values())
        most = 2 * sum(1 + len(topic.partitions) for topic in request.topics)
        in_flight.finish_with(partial(self._responded, times, request.version, most, in_flight.finish))

    def when_settled(self, callback: Callable[[None], None]) -> None:
        """Call `callback` when the broker has responded to all requests in flight."""
        if self._under_way:
            self._settled = callback
        else:
            callback(None)

    def _responded(
        self, times: _Times, version: int, most: int, finish: Finish | None, frame: bytearray
    ) -> Parts | None:
        """Store the times of successful batches and finish the response. Raises MalformedMessage."""
        for entry in walk_produce_response(frame, version, produce_body_at(frame, version), most).entries:
            expected = times.get(Spot(entry.topic, entry.index))
            if expected is not None and entry.code == ErrorCode.NONE:
                (topic, index), time = expected
                self._known.stored(topic, index, time)
        for partition, _ in times.values():
            self._under_way[partition] -= 1
            if not self._under_way[partition]:
                del self._under_way[partition]
        made = (frame,) if finish is None else finish(frame)
        if not self._under_way and self._settled is not None:
            settled, self._settled = self._settled, None
            settled(None)
        return made
