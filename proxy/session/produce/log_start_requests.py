"""Asks brokers for the log start offsets that responses to rejected requests include.

All requests that wait for the same partition share one query.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

from sluicegate.protocol.framing import Parts, frame_of
from sluicegate.protocol.log_start_request import log_start_request, log_starts_in
from sluicegate.protocol.topic_name import is_legal_topic_name
from sluicegate.proxy.responses.produce_responses import PartitionKey, StandInRequest
from sluicegate.proxy.session.in_flight import InFlightRequest

_OUR_CORRELATION_ID = -1


class LogStartRequest(NamedTuple):
    """A query for log start offsets.

    It consists of complete frames to send before the Produce request, and the request in flight. Both are empty if no
    query is needed.
    """

    frames: Parts
    in_flight: tuple[InFlightRequest, ...]


_ASKED_ALREADY = LogStartRequest((), ())


class LogStartRequests:
    """One session's queries. `names` maps topic ids to topic names, and `now_ms` returns the proxy's time."""

    def __init__(self, names: Mapping[bytes, str], now_ms: Callable[[], int]) -> None:
        self._names = names
        self._now_ms = now_ms
        self._waiting: dict[PartitionKey, list[StandInRequest]] = {}

    def about(self, stand_in_request: StandInRequest) -> LogStartRequest:
        """Return the frames to send directly before the Produce request, so that the response to the query arrives
        first.
        """
        named: dict[tuple[str, int], PartitionKey] = {}
        partitions: dict[str, list[int]] = {}
        for partition_key in stand_in_request.asked_log_starts:
            waiting = self._waiting.get(partition_key)
            if waiting is not None:
                waiting.append(stand_in_request)
                continue
            name = partition_key.topic if isinstance(partition_key.topic, str) else self._names.get(partition_key.topic)
            if name is not None and is_legal_topic_name(name):
                named[name, partition_key.partition] = partition_key
                partitions.setdefault(name, []).append(partition_key.partition)
                self._waiting[partition_key] = [stand_in_request]
        if not named:
            return _ASKED_ALREADY
        awaits = InFlightRequest(_OUR_CORRELATION_ID, partial(self._responded, named))
        return LogStartRequest((frame_of(log_start_request(partitions, _OUR_CORRELATION_ID)),), (awaits,))

    def end(self) -> None:
        """Clean up at the end of the session."""
        self._waiting.clear()

    def _responded(self, named: Mapping[tuple[str, int], PartitionKey], response: bytearray) -> None:
        starts = log_starts_in(response, len(named))
        now_ms = self._now_ms()
        for place, partition_key in named.items():
            waiting = self._waiting.pop(partition_key)
            if place in starts:
                for stand_in_request in waiting:
                    stand_in_request.learn_log_start(partition_key, starts[place], now_ms)
