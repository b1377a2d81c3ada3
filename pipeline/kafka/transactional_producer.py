"""A transactional producer that writes records as bytes (KIP-98), so records that client libraries cannot write, such
as header names that are not UTF-8, stay unchanged.

Blocking, one request at a time. A retry after a lost connection has the same sequence, so a broker stores the batch
once.
"""

from collections.abc import Iterator

from sluicegate.pipeline.kafka.cluster import KafkaCluster, Retry, TopicPartition, TopicTrouble, check_code, named
from sluicegate.pipeline.kafka.connection import BrokerConnection
from sluicegate.protocol.api import ApiKey
from sluicegate.protocol.messages.produce import PRODUCE_REQUEST, PRODUCE_RESPONSE
from sluicegate.protocol.messages.schema import MessageSchema, Value
from sluicegate.protocol.messages.transactions import (
    ADD_OFFSETS_TO_TXN_REQUEST,
    ADD_OFFSETS_TO_TXN_RESPONSE,
    ADD_PARTITIONS_TO_TXN_REQUEST,
    ADD_PARTITIONS_TO_TXN_RESPONSE,
    END_TXN_REQUEST,
    END_TXN_RESPONSE,
    INIT_PRODUCER_ID_REQUEST,
    INIT_PRODUCER_ID_RESPONSE,
    TXN_OFFSET_COMMIT_REQUEST,
    TXN_OFFSET_COMMIT_RESPONSE,
)
from sluicegate.protocol.records.codecs.codec import Codec
from sluicegate.protocol.records.record_batch import TRANSACTIONAL
from sluicegate.protocol.records.writing import NewRecord, write_batch

_TRANSACTION, _GROUP = 1, 0
"""Types of coordinators."""
_TIMEOUT_MS = 60_000
_ALL_REPLICAS = -1
_PRODUCE_VERSION = 8
_SEQUENCES = 1 << 31
_DUPLICATE_SEQUENCE = 46
_CONCURRENT_TRANSACTIONS = 51
_COORDINATOR_RETRIABLE = frozenset({7, 14, 15, 16, _CONCURRENT_TRANSACTIONS})
_FENCED = frozenset({47, 90})
"""INVALID_PRODUCER_EPOCH and PRODUCER_FENCED."""


class ProducerFenced(TopicTrouble):
    """Another producer started with the same transactional id."""


class TransactionalProducer:
    """Aborts the transaction that an earlier producer of the same id left open. A transaction begins with its first
    request. Every call may raise TopicTrouble (such as ProducerFenced) and BrokerUnreachable.
    """

    def __init__(self, cluster: KafkaCluster, transactional_id: str, codec: Codec) -> None:
        self._cluster = cluster
        self._id = transactional_id
        self._attributes = TRANSACTIONAL | codec
        self._sequences: dict[TopicPartition, int] = {}
        self._added: set[TopicPartition] = set()
        self._is_open = False
        body = {"transactional_id": transactional_id, "transaction_timeout_ms": _TIMEOUT_MS}
        found = self._ask(ApiKey.INIT_PRODUCER_ID, INIT_PRODUCER_ID_REQUEST, INIT_PRODUCER_ID_RESPONSE, body)
        self._producer = {name: found[name] for name in ("producer_id", "producer_epoch")}

    def send(self, to: TopicPartition, records: list[NewRecord]) -> int:
        """Write one batch in the open transaction; return the offset of its last record."""
        self._is_open = True
        if to not in self._added:
            topics = [{"name": to.topic, "partitions": [to.partition]}]
            fields = self._body() | {"topics": topics}
            body = {f"v3_and_below_{name}": value for name, value in fields.items()}
            schemas = (ADD_PARTITIONS_TO_TXN_REQUEST, ADD_PARTITIONS_TO_TXN_RESPONSE)
            self._ask(ApiKey.ADD_PARTITIONS_TO_TXN, *schemas, body)
            self._added.add(to)
        sequence = self._sequences.get(to, 0)
        producer = (self._producer["producer_id"], self._producer["producer_epoch"], sequence)
        data = write_batch(records, producer, self._attributes)
        body = {
            "transactional_id": self._id,
            "acks": _ALL_REPLICAS,
            "timeout_ms": _TIMEOUT_MS // 2,
            "topic_data": [{"name": to.topic, "partition_data": [{"index": to.partition, "records": data}]}],
        }

        def produce_batch(broker: BrokerConnection) -> int:
            response = broker.call(ApiKey.PRODUCE, PRODUCE_REQUEST, PRODUCE_RESPONSE, body, _PRODUCE_VERSION)
            (entry,) = response["responses"][0]["partition_responses"]
            code = entry["error_code"]
            if code in _FENCED:
                raise self._trouble(ApiKey.PRODUCE, code)
            if code != _DUPLICATE_SEQUENCE:
                check_code(to, code)
            base: int = entry["base_offset"]
            return base

        base = self._cluster.ask_leader(to, produce_batch)
        self._sequences[to] = (sequence + len(records)) % _SEQUENCES
        return base + len(records) - 1

    def commit(self, group_id: str, of: TopicPartition, offset: int, metadata: str) -> None:
        """Commit the group's offset and the open transaction."""
        self._is_open = True
        schemas = (ADD_OFFSETS_TO_TXN_REQUEST, ADD_OFFSETS_TO_TXN_RESPONSE)
        self._ask(ApiKey.ADD_OFFSETS_TO_TXN, *schemas, self._body(group_id=group_id))
        committed = {"partition_index": of.partition, "committed_offset": offset, "committed_metadata": metadata}
        body = self._body(group_id=group_id, topics=[{"name": of.topic, "partitions": [committed]}])
        schemas = (TXN_OFFSET_COMMIT_REQUEST, TXN_OFFSET_COMMIT_RESPONSE)
        self._ask(ApiKey.TXN_OFFSET_COMMIT, *schemas, body, (group_id, _GROUP))
        self._end(committed=True)

    def abort(self) -> None:
        """Abort the open transaction, if any."""
        if self._is_open:
            self._end(committed=False)

    def _end(self, *, committed: bool) -> None:
        self._ask(ApiKey.END_TXN, END_TXN_REQUEST, END_TXN_RESPONSE, self._body(committed=committed))
        self._added.clear()
        self._is_open = False

    def _body(self, **more: object) -> Value:
        return {"transactional_id": self._id, **self._producer, **more}

    def _ask(
        self,
        key: ApiKey,
        request: MessageSchema,
        response: MessageSchema,
        body: Value,
        of: tuple[str, int] | None = None,
    ) -> Value:
        """Send a request to the transaction's coordinator, or to that of `of` (key and type)."""

        def ask(broker: BrokerConnection) -> Value:
            found = broker.call(key, request, response, body)
            for code in _codes_in(found):
                if code in _COORDINATOR_RETRIABLE:
                    raise Retry(f"{self._id}: {named(code)}")
                if code:
                    raise self._trouble(key, code)
            return found

        return self._cluster.ask_coordinator(*(of or (self._id, _TRANSACTION)), ask)

    def _trouble(self, key: ApiKey, code: int) -> TopicTrouble:
        kind = ProducerFenced if code in _FENCED else TopicTrouble
        return kind(f"{self._id}: {key.name} failed with {named(code)}")


def _codes_in(response: Value) -> Iterator[int]:
    """Yield all error codes of a response, at any depth."""
    for name, value in response.items():
        if name.endswith("error_code"):
            yield value
        elif isinstance(value, list):
            for item in value:
                yield from _codes_in(item)
