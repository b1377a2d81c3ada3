"""Runs a session without sockets, to measure the cost of a Produce request and its response between two reads."""

import asyncio
import struct
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any
from unittest.mock import patch

from sluicegate.config.files.source import Source
from sluicegate.config.loading import load
from sluicegate.config.values.address import HostPort
from sluicegate.protocol.framing import frame_of
from sluicegate.protocol.headers import build_request_header
from sluicegate.protocol.messages.fetch import LIST_OFFSETS_RESPONSE
from sluicegate.protocol.messages.produce import PRODUCE_REQUEST, PRODUCE_RESPONSE
from sluicegate.protocol.messages.schema import MessageSchema
from sluicegate.proxy.reporting.metrics.counters import Counters
from sluicegate.proxy.responses.broker_addresses import AddressBook
from sluicegate.proxy.scheduling import scheduler as validating
from sluicegate.proxy.server.assembly import Runtime, assemble_proxy
from sluicegate.proxy.session.connection import Connection
from sluicegate.proxy.session.handlers.arrival import Route
from sluicegate.proxy.session.handlers.session import Session
from sluicegate.proxy.session.opening.loop_detection import LoopDetection
from sluicegate.proxy.session.outlets import PeerInfo
from sluicegate.validation.from_keys import rulebook_of
from sluicegate.validation.in_force import RulesInForce
from tests.wire.batches import Rec, batch

_VERSION = 13
_TOPIC_ID = b"sixteen bytes id"
_ENDPOINTS = [{"node_id": 2, "host": "b2", "port": 9092, "rack": None}]
_TRANSACTIONAL = 0x10
_OURS = HostPort("127.0.0.1", 9)
_CONFIG = {
    "SLUICEGATE__UPSTREAM__BOOTSTRAP": "['127.0.0.1:9']",
    "SLUICEGATE__UPSTREAM__TOPIC_SETTINGS": "false",
    "SLUICEGATE__LISTEN__BOOTSTRAP": "127.0.0.1:9",
    "SLUICEGATE__DEFAULTS__MESSAGE_TIMESTAMP_BEFORE_MAX_MS": "86400000",
}

_VALUE = b'{"order":1234567,"customer":"somebody","lines":[{"sku":"a-1","count":2.5},{"sku":"b-2","count":1}]}'
_NO_DEFAULTS: Mapping[str, str] = {}


class _Transport(asyncio.Transport):
    """A transport that accepts all bytes at once."""

    def __init__(self) -> None:
        super().__init__()
        self.taken = 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.taken += len(data)

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        self.taken += sum(map(len, list_of_data))

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


class OneSession:
    """Passes one request and its response through a session again and again."""

    def __init__(self, defaults: Mapping[str, str] = _NO_DEFAULTS) -> None:
        """Take `defaults`, additional keys for the configuration section `defaults`, in the environment's form."""
        runtime = Runtime(
            call_soon=_at_once,
            call_later=_never,
            from_thread=_at_once,
            dial=_never,
            describe_client=lambda _: PeerInfo("bench:1", "bench:2"),
            describe_broker=lambda _: PeerInfo("bench:3", "bench:4"),
            why_lost=lambda _: None,
        )
        book = AddressBook({}, lambda _node_id: _OURS)  # opens no port
        own = {f"SLUICEGATE__DEFAULTS__{key}": value for key, value in defaults.items()}
        config = load(Source("bench"), _CONFIG | own).config
        parts = assemble_proxy(
            config, runtime, RulesInForce(rulebook_of(config)), Counters(), book, LoopDetection(1), None
        )
        parts.names.learn([(_TOPIC_ID, "bench")])
        self._session = Session(parts.dependencies, lambda _name: Route("bench", lambda _: ()))
        self._to_client, self._to_broker = _Transport(), _Transport()
        self._session.client.connection_made(self._to_client)
        self._request, self._response = produce_request(int(time.time() * 1000)), produce_response()
        _arrive(self._session.client, self._request)
        self._session.broker.connection_made(self._to_broker)
        _arrive(self._session.broker, self._response)

    def pass_one(self, request: bytes, answer: bytes) -> None:
        """Pass a request, and the broker's response to the forwarded request."""
        _arrive(self._session.client, request)
        _arrive(self._session.broker, answer)

    def pass_rejected(self, request: bytes, answer: bytes) -> None:
        """Pass a rejected request. The broker then only receives a request for the log's start, or nothing."""
        _arrive(self._session.client, request)
        if len(self._session.queue) > 1:
            _arrive(self._session.broker, log_start_response())
        if len(self._session.queue) > 0:
            _arrive(self._session.broker, answer)

    def run(self, requests: int) -> None:
        """Pass an accepted request repeatedly.

        Raises AssertionError unless every request and every response was forwarded whole.
        """
        self._run(self._request, requests)

    def run_observed(self, requests: int) -> None:
        """Pass requests with one record that violates a policy in the mode `observe`."""
        self._run(produce_request(timestamp_ms=1), requests)

    def _run(self, request: bytes, requests: int) -> None:
        before = self._to_broker.taken, self._to_client.taken
        for _ in range(requests):
            self.pass_one(request, self._response)
        assert self._to_broker.taken - before[0] == requests * len(request)
        assert self._to_client.taken - before[1] == requests * len(self._response)

    def run_rejected(self, requests: int) -> None:
        """Pass transactional requests with one bad record.

        For these, the proxy always sends a request to the broker. Raises AssertionError if it did not do so each time.
        """
        validating._LOOP_REQUEST_SECONDS = validating._LOOP_MAKING_SECONDS = 60.0  # independent of the machine's speed
        request, answer = produce_request(timestamp_ms=1, flags=_TRANSACTIONAL), produce_response(code=2)
        before = self._to_broker.taken
        log_start_response()
        for _ in range(requests):
            self.pass_rejected(request, answer)
        assert self._to_broker.taken - before > requests * len(request) // 2


async def schemas_used(requests: int) -> int:
    """Return how often a schema reads or writes anything while Produce requests and their responses pass.

    There are `requests` requests of each kind: good requests; good requests with a response that reports a moved leader
    (KIP-951); rejected requests; and rejected transactional requests, for which the proxy always sends a request to the
    broker.
    """
    session = OneSession()
    log_start_response()  # built once from the schema
    now_ms = int(time.time() * 1000)
    cases = (
        (session.pass_one, produce_request(now_ms), produce_response()),
        (session.pass_one, produce_request(now_ms), produce_response(code=6, endpoints=_ENDPOINTS)),
        (session.pass_rejected, produce_request(timestamp_ms=1), produce_response(code=2)),
        (session.pass_rejected, produce_request(timestamp_ms=1, flags=_TRANSACTIONAL), produce_response(code=2)),
    )
    used = 0

    def counted(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal used
            used += 1
            return original(*args, **kwargs)

        return call

    parse, build = counted(MessageSchema.parse), counted(MessageSchema.build)
    with patch.object(MessageSchema, "parse", parse), patch.object(MessageSchema, "build", build):
        for do_pass, request, answer in cases:
            for _ in range(requests):
                do_pass(request, answer)
    return used


class _Nothing:
    """A handle for a scheduled call that never happens."""

    def cancel(self) -> None: ...


def _at_once(step: Callable[..., object], *arguments: object) -> None:
    """Call the step at once. There is no event loop with sockets here, so nothing is ever late."""
    step(*arguments)


def _never(*_arguments: object) -> _Nothing:
    return _Nothing()


def _arrive(connection: Connection, data: bytes) -> None:
    view = connection.get_buffer(-1)
    view[: len(data)] = data
    connection.buffer_updated(len(data))


def produce_request(timestamp_ms: int, flags: int = 0) -> bytes:
    """Return a request with one record at `timestamp_ms`, with its size prefix."""
    records = batch([Rec(timestamp_ms, b"key", _VALUE)], flags=flags)
    topic = {"topic_id": _TOPIC_ID, "partition_data": [{"index": 0, "records": records}]}
    body = {"transactional_id": None, "acks": -1, "timeout_ms": 30_000, "topic_data": [topic]}
    return frame_of(build_request_header(0, _VERSION, 7, "bench", 2), PRODUCE_REQUEST.build(body, _VERSION))


def produce_response(code: int = 0, endpoints: Sequence[dict[str, object]] = ()) -> bytes:
    """Return a broker's response, with its size prefix."""
    entry = {"index": 0, "error_code": code, "base_offset": 5, "log_append_time_ms": -1, "log_start_offset": 0}
    topic = {"topic_id": _TOPIC_ID, "partition_responses": [entry]}
    body = {"responses": [topic], "throttle_time_ms": 0, "node_endpoints": list(endpoints)}
    return frame_of(struct.pack(">i", 7), b"\0", PRODUCE_RESPONSE.build(body, _VERSION))


@cache
def log_start_response() -> bytes:
    """Return a broker's response to a ListOffsets request for a log's start, with its size prefix."""
    partition = {"partition_index": 0, "error_code": 0, "timestamp": -1, "offset": 0}
    body = LIST_OFFSETS_RESPONSE.build({"topics": [{"name": "bench", "partitions": [partition]}]}, 1)
    return frame_of(struct.pack(">i", -1), body)
