"""Creates the responses to Produce requests that contain rejected batches.

The broker gets a stand-in for every rejected batch (`sluicegate.protocol.records.stand_in`), so its response has an
entry for each partition. If the broker rejects only the stand-in, the proxy's verdict replaces the entry. If the broker
rejects the whole request, or reports a condition that it checks before the content, its entry is kept.

After a broker has rejected only a stand-in, the proxy itself responds for one second to requests on the same connection
that are rejected as a whole (`response_alone`). So the broker's metrics do not count a corrupt batch for every rejected
one.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from sluicegate.protocol.api import APIS, ApiKey
from sluicegate.protocol.errors import ErrorCode
from sluicegate.protocol.framing import Parts
from sluicegate.protocol.headers import build_response_header
from sluicegate.protocol.produce_request import ProduceRequest, TopicData
from sluicegate.protocol.produce_response import (
    PartitionRejection,
    RecordError,
    TopicKey,
    WalkedResponse,
    encode_rejection,
    response_of,
    walk_produce_response,
    with_log_start,
)
from sluicegate.protocol.produce_versions import LOG_START_SINCE, ONE_BATCH_SINCE
from sluicegate.protocol.records.record_batch import (
    HEADER_BYTES,
    MAGIC_2,
    TRANSACTIONAL,
    attributes_low_byte,
    magic_at,
)
from sluicegate.protocol.records.stand_in import breaking_piece, stand_in
from sluicegate.proxy.responses.log_starts import LogStarts
from sluicegate.proxy.responses.rewriting import ResponseRewriter
from sluicegate.proxy.responses.stand_ins import rule_breaking_stand_in
from sluicegate.validation.validated_request import Place, ValidatedRequest
from sluicegate.validation.verdict import FaultStage, Finding

# The codes with which brokers respond to stand-ins. Success is among them, because a stand-in may contain nothing to
# store.
_STAND_IN_CODES = frozenset(
    {
        ErrorCode.NONE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.INVALID_FETCH_SIZE,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.INVALID_RECORD,
    }
)
_WHOLE_REQUEST_CODES = frozenset({ErrorCode.CORRUPT_MESSAGE, ErrorCode.UNKNOWN_SERVER_ERROR})
# If a request is rejected as a whole, all its partitions get the same code. Only success is replaced.
_REPLACED = {
    FaultStage.REQUEST: frozenset({ErrorCode.NONE}),
    FaultStage.PARTITION: _STAND_IN_CODES,
    FaultStage.LOG: _STAND_IN_CODES,
}
_NOTHING = memoryview(b"")
# The codes with which a partition's log rejects a stand-in. They show that the partition exists.
_LOG_CODES = frozenset({ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD})
# The codes for which a broker reports the log start offset.
_WITH_LOG_START = frozenset({ErrorCode.INVALID_RECORD, ErrorCode.INVALID_TIMESTAMP, ErrorCode.UNKNOWN_SERVER_ERROR})


MOST_ALONE = 100
"""The maximum number of partitions in a request to which the proxy itself responds."""
PROVEN_MS = 1000
"""The time for which a broker's rejection of a stand-in is reused, in ms."""

_USUAL_ACKS = (-1, 1)


class PartitionKey(NamedTuple):
    """A partition with its topic, as responses name the topic (by name or id)."""

    topic: TopicKey
    partition: int


class ClientError(NamedTuple):
    """The error code that the client receives for a partition.

    `is_ours` is true if the error comes from the proxy and not from the broker.
    """

    code: int
    is_ours: bool


@dataclass(slots=True)
class _Entry:
    """The encoded entry that replaces the broker's entry. The verdict itself is not kept.

    `asks_log_start` is true if the proxy must ask the broker for the log start offset.
    """

    stage: FaultStage
    code: ErrorCode
    encoded: bytes
    asks_log_start: bool


class StandInRequest:
    """A request that is forwarded with stand-ins, and its merged response.

    `kept_bytes` is the number of bytes kept until the response. `asked_log_starts` contains the partitions whose log
    start offset the proxy requests from the broker. `stand_ins` contains the stand-ins that differ from the result of
    `stand_in`. `withheld` contains batches that are neither rejected nor forwarded, because copies of their bad records
    could not be stored.

    After the response, `proven_topics` are known to exist, and for `proven_partitions` the broker has rejected only the
    stand-in. `client_errors` contains the errors that the client receives.
    """

    def __init__(
        self,
        request: ProduceRequest,
        validated: ValidatedRequest,
        log_starts: LogStarts,
        now_ms: int,
        give_way: Callable[[], None],
    ) -> None:
        self.kept_bytes = 0
        self.client_errors: dict[PartitionKey, ClientError] = {}
        self.proven_topics: set[str] = set()
        self.proven_partitions: list[PartitionKey] = []
        self.asked_log_starts: dict[PartitionKey, None] = {}  # a broker ignores repeated partitions
        self._acks = request.acks
        self._known_log_starts: dict[PartitionKey, int] = {}
        self._may_respond_alone = True
        self._version = request.version
        self._log_starts = log_starts
        self._entries: dict[PartitionKey, _Entry] = {}
        self._breaking: set[PartitionKey] = set()
        self._copied = {
            place: partition_at(request, place) for place in validated.to_quarantine.keys() - validated.rejected
        }
        self.withheld: set[Place] = set()
        self.stand_ins: dict[Place, bytes] = {}
        named = 0
        for t, topic in enumerate(request.topics):
            key = key_of(topic)
            named += len(topic.partitions)
            for p, partition in enumerate(topic.partitions):
                self._put(
                    request,
                    (t, p),
                    PartitionKey(key, partition.index),
                    validated.rejected.get((t, p)),
                    now_ms,
                    give_way,
                )
                give_way()
        self._max_entries = most_entries(request)
        if len(self._entries) != named or self._breaking or request.acks not in _USUAL_ACKS or named > MOST_ALONE:
            self._may_respond_alone = False

    @property
    def may_respond_alone(self) -> bool:
        """Whether the proxy may respond itself, because the broker would only repeat a recent response."""
        return self._may_respond_alone and not self.asked_log_starts

    @property
    def may_withhold(self) -> bool:
        """Whether some batches are forwarded only after copies of their bad records are stored."""
        return bool(self._copied)

    @property
    def rejects_anything(self) -> bool:
        """Whether a rejection has an effect.

        It has none if a later valid batch for the same partition replaces the rejected batch.
        """
        return bool(self._entries)

    def _put(
        self,
        request: ProduceRequest,
        place: Place,
        partition_key: PartitionKey,
        finding: Finding | None,
        now_ms: int,
        give_way: Callable[[], None],
    ) -> None:
        before = self._entries.get(partition_key)
        self._breaking.discard(partition_key)  # a broker uses only the last valid batch of a partition
        if finding is None:
            if before is not None and before.stage is FaultStage.LOG:
                del self._entries[partition_key]
            return
        records = request.records(*place) or _NOTHING
        if finding.stage is not FaultStage.LOG or is_transactional(records):
            self._may_respond_alone = False
        if finding.stage is not FaultStage.LOG:
            self.stand_ins[place] = rule_breaking_stand_in(records, finding.stage)
            self._entries[partition_key] = self._entry(partition_key[1], finding, -1)
            return
        # If a rejected batch's records could be read, it is a single, complete batch.
        is_complete = bool(finding.bad_count) and self._version >= ONE_BATCH_SINCE
        breaking = None if is_complete else breaking_piece(records, give_way)
        if breaking is not None:
            self.stand_ins[place] = stand_in(records) + breaking if self._version < ONE_BATCH_SINCE else breaking
            self._breaking.add(partition_key)
            self._entries[partition_key] = self._entry(partition_key[1], finding, -1)
            return
        start: int | None = -1
        if self._version >= LOG_START_SINCE and finding.code in _WITH_LOG_START:
            start = self._log_starts.offset_of(*partition_key, now_ms)
            if start is None:
                self.asked_log_starts[partition_key] = None
        if before is None or before.stage is FaultStage.LOG:
            self._entries[partition_key] = self._entry(partition_key[1], finding, start)

    def _entry(self, index: int, finding: Finding, log_start_offset: int | None) -> _Entry:
        """Create a rejected batch's entry. If `log_start_offset` is None, the broker is asked for it."""
        errors = tuple(RecordError(record.index, record.message) for record in finding.bad_records)
        start = -1 if log_start_offset is None else log_start_offset
        rejection = PartitionRejection(finding.code, finding.message, errors, start)
        encoded = encode_rejection(index, rejection, self._version)
        self.kept_bytes += len(encoded)
        return _Entry(finding.stage, finding.code, encoded, log_start_offset is None)

    def quarantine_failed(self, place: Place, partition_key: PartitionKey, message: str) -> None:
        """Tell the client to retry a batch whose bad records were not stored."""
        entry = self._entries.get(partition_key)
        if place in self._copied:
            self.withheld.add(place)
        if entry.stage is FaultStage.LOG if entry is not None else place in self._copied:
            rejection = PartitionRejection(ErrorCode.REQUEST_TIMED_OUT, message)
            encoded = encode_rejection(partition_key.partition, rejection, self._version)
            self.kept_bytes += len(encoded) - (0 if entry is None else len(entry.encoded))
            self._entries[partition_key] = _Entry(FaultStage.LOG, ErrorCode.REQUEST_TIMED_OUT, encoded, False)
            self.asked_log_starts.pop(partition_key, None)

    def read_probe_response(self, frame: bytearray, body_at: int) -> set[PartitionKey]:
        """Return the partitions with bad records for which the broker rejected only the stand-in.

        The result is empty if the broker rejected the whole request. Raises MalformedMessage.
        """
        copied = set(self._copied.values())
        response = walk_produce_response(frame, self._version, body_at, self._max_entries)
        found = set()
        for entry in response.entries:
            partition_key = PartitionKey(entry.topic, entry.index)
            if entry.code in _WHOLE_REQUEST_CODES and partition_key in self._breaking:
                return set()
            if (partition_key in self._entries or partition_key in copied) and entry.code in _STAND_IN_CODES:
                found.add(partition_key)
                self._note_proven(partition_key, entry.code)
        return found

    def _note_proven(self, partition_key: PartitionKey, code: int) -> None:
        if code in _LOG_CODES:
            self.proven_partitions.append(partition_key)
            if isinstance(partition_key.topic, str):
                self.proven_topics.add(partition_key.topic)

    def learn_log_start(self, partition_key: PartitionKey, log_start_offset: int, now_ms: int) -> None:
        """Store the log start offset that the broker returned."""
        self._known_log_starts[partition_key] = log_start_offset
        self._log_starts.learn(*partition_key, log_start_offset, now_ms)

    def response_alone(
        self, proven: Mapping[tuple[PartitionKey, int], int], correlation_id: int, now_ms: int
    ) -> bytes | None:
        """Return the client's response, or None if the proxy must ask the broker.

        `proven` contains, by partition and acks, the time (ms) when a broker last rejected only a stand-in.
        """
        if not self.may_respond_alone:
            return None
        for partition_key in self._entries:
            if not 0 <= now_ms - proven.get((partition_key, self._acks), -PROVEN_MS) < PROVEN_MS:
                return None
        return self.response_now(correlation_id)

    def response_now(self, correlation_id: int) -> bytes:
        """Return the client's response to a request that is rejected as a whole, without asking the broker."""
        topics: dict[TopicKey, list[bytes]] = {}
        for partition_key, entry in self._entries.items():
            topics.setdefault(partition_key.topic, []).append(entry.encoded)
        self.client_errors = {
            partition_key: ClientError(entry.code, is_ours=True) for partition_key, entry in self._entries.items()
        }
        header_version = APIS[ApiKey.PRODUCE].response_header_version(self._version)
        return build_response_header(correlation_id, header_version) + response_of(self._version, topics)

    def merged(self, response: WalkedResponse, rewriter: ResponseRewriter, client_id: str | None) -> Parts:
        """Merge the broker's response. Return the response for this client in parts. Raises MalformedMessage."""
        fails = any(e.code in _WHOLE_REQUEST_CODES for e in response.entries if (e.topic, e.index) in self._breaking)
        replaced = {}
        for position, entry in enumerate(response.entries):
            partition_key = PartitionKey(entry.topic, entry.index)
            ours = self._entries.get(partition_key)
            if ours is None or entry.code not in _REPLACED[FaultStage.REQUEST if fails else ours.stage]:
                self.client_errors[partition_key] = ClientError(entry.code, is_ours=False)
                continue
            replaced[position] = ours.encoded
            self.client_errors[partition_key] = ClientError(ours.code, is_ours=True)
            self._note_proven(partition_key, entry.code)
            if ours.asks_log_start and partition_key in self._known_log_starts:
                replaced[position] = with_log_start(ours.encoded, self._known_log_starts[partition_key])
        return response.with_entries(replaced, client_tail(response, rewriter, client_id))


def most_entries(request: ProduceRequest) -> int:
    """Return how many topics and partitions a response may contain.

    This is twice the number in the request, because a broker may group them differently.
    """
    return 2 * sum(1 + len(topic.partitions) for topic in request.topics)


def client_tail(response: WalkedResponse, rewriter: ResponseRewriter, client_id: str | None) -> bytes | memoryview:
    """Return the bytes after the topics, with the proxy's addresses in place of the brokers'."""
    tail = response.tail
    return rewriter.produce_tail(tail, client_id) if response.has_node_endpoints else tail


def is_transactional(records: memoryview) -> bool:
    """Return whether the batch belongs to a transaction.

    The broker checks the transaction's state before the content, and that state may change at any time.
    """
    is_whole = len(records) >= HEADER_BYTES and magic_at(records, 0) == MAGIC_2
    return is_whole and bool(attributes_low_byte(records, 0) & TRANSACTIONAL)


def partition_at(request: ProduceRequest, place: Place) -> PartitionKey:
    """Return the partition at a place of a request."""
    topic = request.topics[place[0]]
    return PartitionKey(key_of(topic), topic.partitions[place[1]].index)


def key_of(topic: TopicData) -> TopicKey:
    """Return how responses identify a topic: by name up to version 12, and by id from version 13 on."""
    return topic.name if topic.name is not None else topic.topic_id or b""
