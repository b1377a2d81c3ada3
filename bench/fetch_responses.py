"""Compares the cost of offering Fetch v16 and later, which requires rewriting a buffered response, with streaming.

Run: .venv/bin/python -m bench.fetch_responses (from the root). Prints the CPU per MB of both ways in one run, and how
much of the response each of them buffers.
"""

import time
from collections.abc import Callable

from sluicegate.protocol.framing import Disposition, FrameReader, frame_of
from tests.wire.fetch_response import FETCH_RESPONSE

_MB = 1_000_000
_PARTITIONS = 50
_RECORDS_BYTES = 1 << 20
_READ_BYTES = 256 * 1024
_ROUNDS = 7
_VERSION = 17


class _Stream:
    """Forwards bytes as they arrive, and copies them once for the transport."""

    def on_head(self, size: int, head: bytes) -> Disposition:
        return Disposition.STREAM

    def on_pass(self, data: memoryview) -> None:
        bytes(data)

    def on_frame(self, frame: bytearray) -> None:
        raise AssertionError


class _Rewrite(_Stream):
    """Buffers the response, rewrites its node endpoints, and builds it again."""

    def on_head(self, size: int, head: bytes) -> Disposition:
        return Disposition.GATHER

    def on_frame(self, frame: bytearray) -> None:
        value = FETCH_RESPONSE.parse(memoryview(frame)[5:], _VERSION)
        for endpoint in value["node_endpoints"]:
            endpoint["port"] += 1
        FETCH_RESPONSE.build(value, _VERSION)


def _response() -> bytes:
    partition = {"error_code": 0, "high_watermark": 9, "records": bytes(_RECORDS_BYTES)}
    partitions = [{"partition_index": i, **partition} for i in range(_PARTITIONS)]
    value = {
        "responses": [{"topic_id": bytes(16), "partitions": partitions}],
        "node_endpoints": [{"node_id": 1, "host": "broker-1", "port": 9092, "rack": None}],
    }
    return frame_of(b"\0\0\0\1\0", FETCH_RESPONSE.build(value, _VERSION))


def _cpu_ms_per_mb(handler: Callable[[], _Stream], answer: bytes) -> float:
    best = float("inf")
    for _ in range(_ROUNDS):
        reader = FrameReader(handler(), 4, len(answer))
        started = time.process_time()
        position = 0
        while position < len(answer):
            view = reader.gathering_view()
            chunk = answer[position : position + _READ_BYTES]
            if view is None:
                reader.receive(memoryview(chunk))
            else:
                chunk = chunk[: len(view)]
                view[: len(chunk)] = chunk
                view.release()
                reader.gathered(len(chunk))
            position += len(chunk)
        best = min(best, time.process_time() - started)
    return best * 1000 / (len(answer) / _MB)


def main() -> None:
    """Print both figures and their ratio."""
    answer = _response()
    stream, rewrite = _cpu_ms_per_mb(_Stream, answer), _cpu_ms_per_mb(_Rewrite, answer)
    print(f"answer {len(answer) / _MB:.1f} MB of {_PARTITIONS} partitions")
    print(f"streamed through   {stream:.3f} ms/MB, holds {_READ_BYTES / 1024:.0f} KiB")
    print(f"held and rewritten {rewrite:.3f} ms/MB, holds {len(answer) / _MB:.0f} MB and as much again when built")
    print(f"ratio              {rewrite / stream:.1f}")


if __name__ == "__main__":
    main()
