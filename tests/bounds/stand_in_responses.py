"""Builds the responses of a broker that accepts everything, as far as clients and the proxy need them."""

import struct
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from sluicegate.protocol.api import APIS
from sluicegate.protocol.headers import parse_request_header
from sluicegate.protocol.integers import read_unsigned_varint
from sluicegate.protocol.messages.cluster import (
    DESCRIBE_CONFIGS_REQUEST,
    DESCRIBE_CONFIGS_RESPONSE,
    METADATA_REQUEST,
    METADATA_RESPONSE,
)
from sluicegate.protocol.messages.handshake import (
    API_VERSIONS_RESPONSE,
    SASL_AUTHENTICATE_RESPONSE,
    SASL_HANDSHAKE_RESPONSE,
)
from sluicegate.protocol.messages.schema import MessageSchema
from tests.bounds.frames import int16, int32, sized_frame, uvarint
from tests.wire.fetch_response import FETCH_RESPONSE
from tests.wire.share_messages import SHARE_ACKNOWLEDGE_RESPONSE, SHARE_FETCH_RESPONSE
from tests.wire.unparsed_messages import DESCRIBE_CLUSTER_RESPONSE, FIND_COORDINATOR_REQUEST, FIND_COORDINATOR_RESPONSE

PRODUCE, FETCH, METADATA, FIND_COORDINATOR, SASL_HANDSHAKE = 0, 1, 3, 10, 17
API_VERSIONS, INIT_PRODUCER_ID, DESCRIBE_CONFIGS, SASL_AUTHENTICATE, DESCRIBE_CLUSTER = 18, 22, 32, 36, 60
SHARE_FETCH, SHARE_ACKNOWLEDGE = 78, 79
_LARGE = 2_000_000
_OUR_IDS = b"stand-in"
_UNKNOWN_TOPIC = 3
_LONGEST_NAME = 32_767
INVENTED = b"invented"
"""A part of the name of a topic that does not exist."""
_INT16, _INT32 = struct.Struct(">h"), struct.Struct(">i")
ResponseBody = Callable[[int, bytes, int], bytes | None]
"""Returns a response's body, or None for no response. The arguments are the version, the frame and the offset of its
body."""


def topic_id_of(name: str) -> bytes:
    return _OUR_IDS + name.encode()[:8].ljust(8, b"\0")


class StandInResponses:
    """One broker of a stand-in cluster. `nodes`: all brokers by id. `logs_in`: whether it accepts logins.
    `fetched_bytes`: the size of the records in each Fetch response (versions 4 to 12).
    """

    def __init__(self, nodes: Mapping[int, tuple[str, int]]) -> None:
        self.logs_in = True
        self.fetched_bytes = 0
        self._brokers = [{"node_id": node, "host": host, "port": port} for node, (host, port) in nodes.items()]
        self._responses: dict[int, ResponseBody] = {
            PRODUCE: lambda version, frame, at: produce_response(frame, version, at),
            METADATA: self._metadata,
            API_VERSIONS: _versions,
            DESCRIBE_CONFIGS: _configs,
            FIND_COORDINATOR: self._coordinator,
            DESCRIBE_CLUSTER: self._cluster,
            SASL_HANDSHAKE: lambda version, _frame, _at: SASL_HANDSHAKE_RESPONSE.build(
                {"error_code": 0, "mechanisms": ["PLAIN", "SCRAM-SHA-256", "OAUTHBEARER"]}, version
            ),
            SASL_AUTHENTICATE: self._login,
            FETCH: lambda version, _frame, _at: _fetch(version, self.fetched_bytes),
            INIT_PRODUCER_ID: _producer_id,
            SHARE_FETCH: _shared(SHARE_FETCH_RESPONSE),
            SHARE_ACKNOWLEDGE: _shared(SHARE_ACKNOWLEDGE_RESPONSE),
        }

    def response(self, frame: bytes) -> bytes | None:
        """Return the response with its size, or None if there is none (acks=0)."""
        key, version, correlation_id = struct.unpack_from(">hhi", frame)
        api = APIS[key]
        make = self._responses.get(key)
        at = parse_request_header(frame, api.request_header_version(version)).body_at
        body = b"\0" * 8 if make is None else make(version, frame, at)
        if body is None:
            return None
        tags = b"\0" if api.response_header_version(version) else b""
        return sized_frame(int32(correlation_id) + tags + body)

    def _login(self, version: int, frame: bytes, at: int) -> bytes:
        if version >= 2:
            _read(frame, at, fields=1)
        code, text = (0, None) if self.logs_in else (58, "Authentication failed: Invalid username or password")
        value = {"error_code": code, "error_message": text, "auth_bytes": b"", "session_lifetime_ms": 0}
        return SASL_AUTHENTICATE_RESPONSE.build(value, version)

    def _metadata(self, version: int, frame: bytes, at: int) -> bytes:
        asked = METADATA_REQUEST.parse(frame[at:], version)["topics"] if len(frame) < _LARGE else []
        partitions = [
            {"error_code": 0, "partition_index": i, "leader_id": 1, "leader_epoch": 0, "replica_nodes": [1]}
            | {"isr_nodes": [1], "offline_replicas": []}
            for i in range(3)
        ]
        topics = [_topic_entry(topic, partitions) for topic in asked or []]
        value = {"brokers": self._brokers, "cluster_id": "stand-in", "controller_id": 1, "topics": topics}
        return METADATA_RESPONSE.build(value, version)

    def _coordinator(self, version: int, frame: bytes, at: int) -> bytes:
        ours = {"error_code": 0, "error_message": None, **self._brokers[0]}
        if version < 4:
            return FIND_COORDINATOR_RESPONSE.build(ours, version)
        asked = FIND_COORDINATOR_REQUEST.parse(frame[at:], version)["coordinator_keys"] if len(frame) < _LARGE else []
        return FIND_COORDINATOR_RESPONSE.build({"coordinators": [{"key": key, **ours} for key in asked]}, version)

    def _cluster(self, version: int, _frame: bytes, _at: int) -> bytes:
        brokers = [
            {"broker_id": b["node_id"], "host": b["host"], "port": b["port"], "rack": None} for b in self._brokers
        ]
        value = {"error_code": 0, "error_message": None, "cluster_id": "stand-in", "controller_id": 1}
        return DESCRIBE_CLUSTER_RESPONSE.build({**value, "brokers": brokers}, version)


def _topic_entry(asked: Mapping[str, Any], partitions: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the metadata of a topic: any name exists, and the ids that this broker assigned."""
    name = asked.get("name")
    if name is not None and INVENTED.decode() in name:
        return {"error_code": _UNKNOWN_TOPIC, "name": name, "is_internal": False, "partitions": []}
    if name is None:
        topic_id = bytes(asked["topic_id"])
        if not topic_id.startswith(_OUR_IDS):
            return {"error_code": 100, "name": None, "topic_id": topic_id, "is_internal": False, "partitions": []}
        name = topic_id.removeprefix(_OUR_IDS).rstrip(b"\0").decode()
    return {
        "error_code": 0,
        "name": name,
        "topic_id": topic_id_of(name),
        "is_internal": False,
        "partitions": partitions,
    }


@cache
def _read(frame: bytes, at: int, fields: int) -> None:
    """Read compact fields and the count of their tags as a broker does. Raises an error to close the connection."""
    for _ in range(fields):
        size, at = read_unsigned_varint(frame, at)
        at += size - 1
        assert size > 0 and at <= len(frame), "a field is null or incomplete"
    read_unsigned_varint(frame, at)


def _versions(version: int, frame: bytes, at: int) -> bytes:
    if version > 4:
        version = 0
    elif version >= 3:
        _read(frame, at, fields=2)
    keys = [{"api_key": api.key, "min_version": 0, "max_version": api.max_version} for api in APIS.values()]
    return API_VERSIONS_RESPONSE.build({"error_code": 0, "api_keys": keys}, version)


def _configs(version: int, frame: bytes, at: int) -> bytes | None:
    asked = DESCRIBE_CONFIGS_REQUEST.parse(frame[at:], version)["resources"]
    if any(len(entry["resource_name"]) > _LONGEST_NAME for entry in asked):
        return None  # like a real broker, which cannot encode a response
    results = [
        {"error_code": 0, "error_message": None, "resource_type": 2, "resource_name": entry["resource_name"]}
        | {"configs": []}
        for entry in asked
    ]
    return DESCRIBE_CONFIGS_RESPONSE.build({"throttle_time_ms": 0, "results": results}, version)


@cache
def _fetch(version: int, size: int) -> bytes:
    partition = {"partition_index": 0, "error_code": 0, "high_watermark": 1, "records": bytes(size)}
    responses = [{"topic": "fetched", "partitions": [partition]}] if size else []
    return FETCH_RESPONSE.build({"error_code": 0, "session_id": 0, "responses": responses}, version)


def _producer_id(version: int, _frame: bytes, _at: int) -> bytes:
    return int32(0) + int16(0) + struct.pack(">qh", 1000, 0) + (b"\0" if version >= 2 else b"")


def _shared(schema: MessageSchema) -> ResponseBody:
    return lambda version, _frame, _at: schema.build(
        {"throttle_time_ms": 0, "error_code": 0, "error_message": None, "acquisition_lock_timeout_ms": 0}
        | {"responses": [], "node_endpoints": []},
        version,
    )


def produce_response(frame: bytes, version: int, at: int) -> bytes | None:
    """Report every partition as stored. This parser is independent of the proxy's."""
    flexible = version >= 9
    position = at

    def read_length() -> int:
        nonlocal position
        if not flexible:
            position += 4
            return int(_INT32.unpack_from(frame, position - 4)[0])
        value = shift = 0
        while True:
            byte = frame[position]
            position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value - 1
            shift += 7

    if version >= 3:
        if flexible:
            size = read_length()
            position += max(0, size)
        else:
            position += 2 + max(0, _INT16.unpack_from(frame, position)[0])
    acks = _INT16.unpack_from(frame, position)[0]
    position += 6
    if acks == 0:
        return None
    stored = (
        struct.pack(">q", 0)
        + (struct.pack(">q", -1) if version >= 2 else b"")
        + (struct.pack(">q", 0) if version >= 5 else b"")
        + ((b"\1\0" if flexible else int32(0) + int16(-1)) if version >= 8 else b"")
        + (b"\0" if flexible else b"")
    )
    stored, unknown = int16(0) + stored, int16(_UNKNOWN_TOPIC) + stored
    tags = 1 if flexible else 0
    topics = read_length()
    out = [uvarint(topics + 1) if flexible else int32(topics)]
    for _ in range(topics):
        key_at = position
        if version >= 13:
            position += 16
        elif flexible:
            size = read_length()
            position += size
        else:
            position += 2 + _INT16.unpack_from(frame, position)[0]
        out.append(frame[key_at:position])
        entry = unknown if INVENTED in frame[key_at:position] else stored
        partitions = read_length()
        out.append(uvarint(partitions + 1) if flexible else int32(partitions))
        for _ in range(partitions):
            out += (frame[position : position + 4], entry)
            position += 4
            size = read_length()
            position += max(0, size) + tags
        position += tags
        if flexible:
            out.append(b"\0")
    if version >= 1:
        out.append(int32(0))
    if flexible:
        out.append(b"\0")
    return b"".join(out)
