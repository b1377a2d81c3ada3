"""Where requests are judged: on the event loop, or in a thread when it may take more than a few milliseconds."""

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

from protocol.produce_request import ProduceRequest
from protocol.records.compression import Decompressor
from protocol.records.record_batch import CODEC_MASK, HEADER_BYTES, attributes_low_byte
from validation.policy import JudgementLimits, TopicPolicy
from validation.produce import JudgedRequest, judge_request

_THREADS = 2
_HEAVY_COMPRESSED_BYTES = 512 * 1024
_HEAVY_PLAIN_BYTES = 4 * 1024 * 1024


class Judges:
    """Judges requests by one proxy's policies. Every thread has a Decompressor of its own."""

    def __init__(
        self,
        names: Mapping[bytes, str],
        policy_of: Callable[[str], TopicPolicy],
        limits: JudgementLimits,
        now_ms: Callable[[], int],
    ) -> None:
        self._names = names
        self._policy_of = policy_of
        self._limits = limits
        self._now_ms = now_ms
        self._decompressor = Decompressor()
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="judge")
        self._of_thread = threading.local()

    def judge(self, request: ProduceRequest) -> JudgedRequest:
        """The verdict on a request that is not heavy; only for the event loop's thread."""
        return judge_request(request, self._names, self._policy_of, self._limits, self._now_ms, self._decompressor)

    def submit(self, request: ProduceRequest) -> "Future[JudgedRequest]":
        """Judge it in a thread."""
        return self._threads.submit(self._judge_in_thread, request)

    def close(self) -> None:
        """Begin nothing more."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _judge_in_thread(self, request: ProduceRequest) -> JudgedRequest:
        decompressor = getattr(self._of_thread, "decompressor", None)
        if decompressor is None:
            decompressor = self._of_thread.decompressor = Decompressor()
        return judge_request(request, self._names, self._policy_of, self._limits, self._now_ms, decompressor)


def is_heavy(request: ProduceRequest) -> bool:
    """Whether judging may take more than a few milliseconds: much to decompress, or very much to scan."""
    if len(request.frame) <= _HEAVY_COMPRESSED_BYTES:
        return False
    view = memoryview(request.frame)
    compressed = plain = 0
    for topic in request.topics:
        for partition in topic.partitions:
            size = partition.records_end - partition.records_at
            if partition.records_at < 0 or size < HEADER_BYTES:
                continue
            if attributes_low_byte(view, partition.records_at) & CODEC_MASK:
                compressed += size
            else:
                plain += size
    return compressed > _HEAVY_COMPRESSED_BYTES or plain > _HEAVY_PLAIN_BYTES
