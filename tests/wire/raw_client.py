"""Provides a Kafka client that sends arbitrary frames and returns the raw responses."""

import socket
import struct
from types import TracebackType
from typing import Self

from sluicegate.protocol.api import APIS
from sluicegate.protocol.headers import build_request_header, response_body_at
from sluicegate.protocol.messages.cluster import METADATA_REQUEST, METADATA_RESPONSE
from sluicegate.protocol.messages.fetch import FETCH_REQUEST
from sluicegate.protocol.messages.handshake import API_VERSIONS_RESPONSE
from sluicegate.protocol.messages.produce import PRODUCE_REQUEST, PRODUCE_RESPONSE
from sluicegate.protocol.messages.schema import MessageSchema, Value
from tests.wire.fetch_response import FETCH_RESPONSE
from tests.wire.unparsed_messages import API_VERSIONS_REQUEST

CLOSED = "closed"
SILENCE = "silence"
PRODUCE, FETCH, METADATA, API_VERSIONS = 0, 1, 3, 18
_FETCH_VERSION = 11  # the second-to-last version with topic names


class RawClient:
    """One connection; `source` is its local address, if set."""

    def __init__(self, address: str, timeout: float = 10, source: str = "") -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout, (source, 0) if source else None)
        self.correlation_id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()

    def send(self, key: int, version: int, body: bytes, client_id: str = "raw") -> int:
        """Send one request and return its correlation id."""
        self.correlation_id += 1
        header = build_request_header(
            key, version, self.correlation_id, client_id, APIS[key].request_header_version(version)
        )
        self.send_frame(header + body)
        return self.correlation_id

    def send_frame(self, frame: bytes) -> None:
        self.socket.sendall(struct.pack(">i", len(frame)) + frame)

    def receive(self, timeout: float = 10) -> bytes | str:
        """Return one frame without its size, CLOSED, or SILENCE if none arrived in time."""
        self.socket.settimeout(timeout)
        try:
            size = self._exactly(4)
            return size if isinstance(size, str) else self._exactly(struct.unpack(">i", size)[0])
        except TimeoutError:
            return SILENCE
        except ConnectionError:
            return CLOSED

    def call(self, key: int, version: int, schema: MessageSchema, body: bytes) -> Value | str:
        """Send a request and return its response; the correlation ids must match."""
        asked = self.send(key, version, body)
        return self.response_to(asked, key, version, schema)

    def response_to(
        self, correlation_id: int, key: int, version: int, schema: MessageSchema, timeout: float = 10
    ) -> Value | str:
        frame = self.receive(timeout)
        if isinstance(frame, str):
            return frame
        assert struct.unpack_from(">i", frame)[0] == correlation_id
        return schema.parse(frame[response_body_at(frame, APIS[key].response_header_version(version)) :], version)

    def produce(
        self, version: int, topics: list[Value], acks: int = -1, transactional_id: str | None = None
    ) -> Value | str:
        """Send a Produce request and return its response; `topics` are values of the schema."""
        return self.call(PRODUCE, version, PRODUCE_RESPONSE, produce_body(version, topics, acks, transactional_id))

    def api_versions(self, version: int = 0) -> Value | str:
        names = {"client_software_name": "raw", "client_software_version": "1"} if version >= 3 else {}
        return self.call(API_VERSIONS, version, API_VERSIONS_RESPONSE, API_VERSIONS_REQUEST.build(names, version))

    def metadata(self, *topics: str, version: int = 12) -> Value:
        body = METADATA_REQUEST.build({"topics": [{"name": topic} for topic in topics]}, version)
        answer = self.call(METADATA, version, METADATA_RESPONSE, body)
        assert not isinstance(answer, str), answer
        return answer

    def log_of(self, topic: str, partition: int) -> bytes:
        """Return the complete log of a partition, unchanged."""
        entry = self._fetch(topic, partition)
        assert entry["error_code"] == 0
        return bytes(entry["records"] or b"")

    def fetch_error(self, topic: str, partition: int) -> int:
        """Return the error code of a fetch from a partition's start."""
        code: int = self._fetch(topic, partition)["error_code"]
        return code

    def send_fetch_that_waits(self, topic: str, milliseconds: int) -> int:
        """Send a fetch with a wait time; the broker responds after it, or when records arrive."""
        return self.send(FETCH, _FETCH_VERSION, fetch_body(topic, 0, milliseconds))

    def _fetch(self, topic: str, partition: int) -> Value:
        answer = self.call(FETCH, _FETCH_VERSION, FETCH_RESPONSE, fetch_body(topic, partition, 0))
        assert not isinstance(answer, str), answer
        entry: Value = answer["responses"][0]["partitions"][0]
        return entry

    def _exactly(self, size: int) -> bytes | str:
        data = b""
        while len(data) < size:
            part = self.socket.recv(size - len(data))
            if not part:
                return CLOSED
            data += part
        return data


def fetch_body(topic: str, partition: int, max_wait_ms: int) -> bytes:
    wanted = {"partition": partition, "fetch_offset": 0, "partition_max_bytes": 100_000_000}
    body: Value = {"replica_id": -1, "max_wait_ms": max_wait_ms, "min_bytes": 1}
    body["topics"] = [{"topic": topic, "partitions": [wanted]}]
    return FETCH_REQUEST.build(body, _FETCH_VERSION)


def produce_body(version: int, topics: list[Value], acks: int = -1, transactional_id: str | None = None) -> bytes:
    value: Value = {"acks": acks, "timeout_ms": 10_000, "topic_data": topics}
    if version >= 3:
        value["transactional_id"] = transactional_id
    return PRODUCE_REQUEST.build(value, version)


def topic_data(topic: str | bytes, *partitions: tuple[int, bytes | None]) -> Value:
    """Return one topic of a Produce request, by id if `topic` is bytes."""
    key = {"topic_id": topic} if isinstance(topic, bytes) else {"name": topic}
    return {**key, "partition_data": [{"index": index, "records": records} for index, records in partitions]}
