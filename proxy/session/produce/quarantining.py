"""Stores a rejected request's bad records in dead-letter topics before the client gets a response.

A client without permission for a topic must not write to its dead-letter topic through the proxy's login. So if the
client's permission for a partition was not recently confirmed, the proxy first sends the broker a probe
(`sluicegate.proxy.responses.stand_ins`). If records cannot be stored, the proxy tells the client to retry. It does not
finally reject a batch before the batch's bad records are stored. With `quarantine` and `mode: observe` it forwards no
batch before copies of the batch's bad records are stored.
"""

from collections.abc import Callable, Mapping
from functools import partial

from sluicegate.protocol.produce_request import ProduceRequest
from sluicegate.protocol.produce_response import produce_body_at
from sluicegate.proxy.responses.dispatch import DeadLetters, Dispatch
from sluicegate.proxy.responses.produce_responses import (
    MOST_ALONE,
    PROVEN_MS,
    PartitionKey,
    StandInRequest,
    is_transactional,
    partition_at,
)
from sluicegate.proxy.responses.stand_ins import probe_request
from sluicegate.proxy.responses.topic_names import TopicNames
from sluicegate.proxy.session.effect import Steps
from sluicegate.proxy.session.produce.effects import AskBroker, ReportNotStored, StoreBadRecords
from sluicegate.validation.validated_request import Place

_BROKER_FIRST = "the broker itself would reject the batch"
# The number of confirmed partitions that one connection remembers. Beyond it, all of them are forgotten.
_MOST_PROVEN = MOST_ALONE


class ProvenPartitions:
    """The partitions for which the client's permission is confirmed, by acks.

    For such a partition the broker rejected only the stand-in. Each entry contains the time in ms.
    """

    def __init__(self, names: TopicNames, now_ms: Callable[[], int]) -> None:
        self._names = names
        self._now_ms = now_ms
        self.since: dict[tuple[PartitionKey, int], int] = {}

    def learn(self, stand_in_request: StandInRequest, acks: int) -> None:
        """Record the broker's response to a request with stand-ins."""
        proven = stand_in_request.proven_partitions[:_MOST_PROVEN]
        if len(self.since) + len(proven) > _MOST_PROVEN:
            self.since.clear()
        now_ms = self._now_ms()
        for partition_key in proven:
            self.since[partition_key, acks] = now_ms
        self._names.learn((None, topic) for topic in stand_in_request.proven_topics)


class Quarantining:
    """Quarantines the bad records in one session's requests."""

    def __init__(self, now_ms: Callable[[], int], proven: ProvenPartitions) -> None:
        self._now_ms = now_ms
        self._proven = proven

    def keep(self, request: ProduceRequest, correlation_id: int, dispatch: Dispatch) -> Steps[None]:
        """Probe the broker if necessary, then store all records that the client may write."""
        stand_in_request = dispatch.stand_in_request
        assert stand_in_request is not None
        partition_keys = {each.place: partition_at(request, each.place) for each in dispatch.dead_letters}
        to_probe = {
            partition_key
            for place, partition_key in partition_keys.items()
            if self._needs_probe(request, place, partition_key)
        }
        unproven: set[PartitionKey] = set()
        if to_probe:
            probe = probe_request(request, stand_in_request.stand_ins)
            unproven = to_probe - (
                yield from AskBroker(probe, correlation_id, partial(self._read, request, stand_in_request))
            )
        letters, unwritten = [], {}
        for each in dispatch.dead_letters:
            if partition_keys[each.place] in unproven:
                _quarantine_failed(stand_in_request, partition_keys, each, _BROKER_FIRST)
                unwritten[each.place] = _BROKER_FIRST
            else:
                letters.append(each)
        failures = {each.place: each.lacking for each in letters if each.lacking is not None}
        whole = [each for each in letters if each.lacking is None]
        if whole:
            failures.update((yield from StoreBadRecords(whole)))
        for each in letters:
            if each.place in failures:
                _quarantine_failed(stand_in_request, partition_keys, each, failures[each.place])
                yield from ReportNotStored(each, failures[each.place])
        dispatch.validated.quarantined = frozenset(each.place for each in letters) - failures.keys()
        dispatch.validated.to_retry = failures | unwritten
        dispatch.dead_letters = ()  # frees their memory while the broker responds

    def _needs_probe(self, request: ProduceRequest, place: Place, partition_key: PartitionKey) -> bool:
        """Return whether to probe the broker.

        A transaction is always probed. Other results are valid for one second.
        """
        since = self._now_ms() - self._proven.since.get((partition_key, request.acks), -PROVEN_MS)
        records = request.records(*place)
        return not 0 <= since < PROVEN_MS or (records is not None and is_transactional(records))

    def _read(self, request: ProduceRequest, stand_in_request: StandInRequest, frame: bytearray) -> set[PartitionKey]:
        found = stand_in_request.read_probe_response(frame, produce_body_at(frame, request.version))
        self._proven.learn(stand_in_request, request.acks)
        return found


def _quarantine_failed(
    stand_in_request: StandInRequest, partition_keys: Mapping[Place, PartitionKey], letters: DeadLetters, reason: str
) -> None:
    stand_in_request.quarantine_failed(
        letters.place,
        partition_keys[letters.place],
        f"The batch for {letters.source}-{letters.partition} has bad records, which could not be written to "
        f"{letters.topic}: {reason}. The batch is not stored; send it again.",
    )
