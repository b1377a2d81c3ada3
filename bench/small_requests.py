"""Generates loads of requests with one record each. Raw sockets make the client cheap and every request the same."""

import selectors
import socket
import struct
import time
from collections import deque
from collections.abc import Sequence

from bench.streams import Run, percentiles
from bench.targets import Target
from sluicegate.protocol.headers import build_request_header
from sluicegate.protocol.messages.produce import PRODUCE_REQUEST
from tests.wire.batches import NONE, Rec, batch

_VERSION = 9  # this version contains topic names, so one request fits all targets
_VALUE_BYTES = 100


def closed_loop(target: Target, topic: str, connections: int, requests: int) -> Run:
    """Run a closed loop: each connection sends its next request after the previous response (acks=all)."""
    sockets = connect(target, connections)
    request = _request(topic)
    exchange(sockets, request, max(200, requests // 10))
    cpu, started = target.usage().cpu_seconds, time.perf_counter()
    exchange(sockets, request, requests)
    seconds = time.perf_counter() - started
    usage = target.usage()
    for each in sockets:
        each.close()
    return Run(requests * _VALUE_BYTES / 2**20, seconds, requests, usage.cpu_seconds - cpu, usage.resident_bytes)


def at_fixed_rate(target: Target, topic: str, connections: int, per_second: int, seconds: float) -> Run:
    """Run an open loop: requests leave on schedule, over connections in turn.

    Latency (ms) is from schedule to response.
    """
    sockets = connect(target, connections)
    request = _request(topic)
    exchange(sockets, request, 500)
    selector = selectors.DefaultSelector()
    waiting: dict[socket.socket, deque[float]] = {each: deque() for each in sockets}
    unread = dict.fromkeys(sockets, b"")
    for each in sockets:
        each.setblocking(False)
        selector.register(each, selectors.EVENT_READ)
    latencies: list[float] = []
    total, sent = int(per_second * seconds), 0
    started = time.perf_counter()
    while len(latencies) < total:
        now = time.perf_counter()
        while sent < total and (due := started + sent / per_second) <= now:
            each = sockets[sent % connections]
            waiting[each].append(due)
            each.sendall(request)
            sent += 1
        pause = max(0.0, started + sent / per_second - time.perf_counter()) if sent < total else 1.0
        for key, _ in selector.select(pause):
            ready = key.fileobj
            assert isinstance(ready, socket.socket)
            answers, unread[ready] = _responses_in(unread[ready] + ready.recv(65536), 0)
            now = time.perf_counter()
            latencies += [(now - waiting[ready].popleft()) * 1000 for _ in range(answers)]
    elapsed = time.perf_counter() - started
    selector.close()
    for each in sockets:
        each.close()
    return Run(total * _VALUE_BYTES / 2**20, elapsed, total, latencies=percentiles(latencies[total // 5 :]))


def connect(target: Target, count: int) -> list[socket.socket]:
    host, _, port = target.leader.rpartition(":")
    sockets = []
    for _ in range(count):
        made = socket.create_connection((host, int(port)), 10)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sockets.append(made)
    return sockets


def exchange(sockets: Sequence[socket.socket], request: bytes, count: int, error_code: int = 0) -> None:
    """Run a closed loop that sends the same request `count` times. Each response must contain `error_code`."""
    selector = selectors.DefaultSelector()
    unread = dict.fromkeys(sockets, b"")
    sent = done = 0
    for each in sockets:
        selector.register(each, selectors.EVENT_READ)
        if sent < count:
            each.sendall(request)
            sent += 1
    while done < count:
        for key, _ in selector.select(10):
            ready = key.fileobj
            assert isinstance(ready, socket.socket)
            answers, unread[ready] = _responses_in(unread[ready] + ready.recv(65536), error_code)
            for _ in range(answers):
                done += 1
                if sent < count:
                    ready.sendall(request)
                    sent += 1
    selector.close()


def _responses_in(data: bytes, error_code: int) -> tuple[int, bytes]:
    """Return the number of complete responses and the bytes after them. Raises RuntimeError for another error code."""
    count = 0
    while len(data) >= 4 and len(data) >= 4 + (size := struct.unpack_from(">i", data)[0]):
        answer, data = data[4 : 4 + size], data[4 + size :]
        value = _error_code(answer)
        if value != error_code:
            raise RuntimeError(f"answered with {value}, not with {error_code}")
        count += 1
    return count, data


def _error_code(answer: bytes) -> int:
    """Return the error code of the only partition in a response to `request_of`.

    The code follows the header, the topic's name and the index.
    """
    name_at = 6
    code: int = struct.unpack_from(">h", answer, name_at + answer[name_at] + 5)[0]
    return code


def _request(topic: str) -> bytes:
    return request_of(topic, [Rec(int(time.time() * 1000), b"key", b"v" * _VALUE_BYTES)], NONE)


def request_of(topic: str, records: Sequence[Rec], codec: int) -> bytes:
    """Return a request with one batch for one partition, with its size prefix."""
    body = {
        "transactional_id": None,
        "acks": -1,
        "timeout_ms": 30_000,
        "topic_data": [{"name": topic, "partition_data": [{"index": 0, "records": batch(records, codec)}]}],
    }
    frame = build_request_header(0, _VERSION, 7, "bench", 2) + PRODUCE_REQUEST.build(body, _VERSION)
    return struct.pack(">i", len(frame)) + frame
