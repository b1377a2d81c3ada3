"""The way of a Produce request: walk it, name its topics, judge it, forward what is good and stand-ins for the rest.

Judging happens where the bytes arrive unless it may take long (`_is_heavy`); then a thread does it, and the client's
connection is not read meanwhile, so that nothing overtakes.
"""

from functools import partial
from struct import Struct
from typing import TYPE_CHECKING, Any

from protocol.framing import frame_of
from protocol.headers import RequestHeader, response_body_at
from protocol.produce_request import ProduceRequest, walk_produce_request
from protocol.produce_response import walk_produce_answer
from protocol.records.record_batch import CODEC_MASK, HEADER_BYTES, attributes_low_byte
from proxy.connection import Hold
from proxy.in_flight import Exchange
from proxy.produce_answers import PartlyRefused
from proxy.topic_names import names_in, question
from validation.produce import JudgedRequest, judge_request

if TYPE_CHECKING:
    from asyncio import Future
    from concurrent.futures import Future as ThreadFuture

    from proxy.session import Session

_SIZE = Struct(">i")
_NODE_ENDPOINTS_SINCE = 10
_FLEXIBLE_SINCE = 9
_OUR_CORRELATION_ID = -1
_HEAVY_COMPRESSED_BYTES = 512 * 1024
_HEAVY_PLAIN_BYTES = 4 * 1024 * 1024


class ProduceGate:
    """Takes the Produce requests of one session, one at a time."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self.is_busy = False

    def take(self, frame: bytearray, header: RequestHeader) -> None:
        """A gathered Produce request. Raises MalformedMessage when it cannot be walked."""
        request = walk_produce_request(frame, header.api_version, header.body_at)
        ids = [topic.topic_id for topic in request.topics if topic.topic_id is not None]
        missing = self._session.context.names.missing(ids)
        if missing:
            self._ask_names(missing, request, header)
        else:
            self._named(request, header)

    def _ask_names(self, missing: list[bytes], request: ProduceRequest, header: RequestHeader) -> None:
        """Ask the broker for topic ids that no answer has named yet, on this very connection and in its order."""

        def answered(answer: bytearray) -> None:
            self._session.context.names.learn(names_in(answer))
            self.is_busy = False
            self._named(request, header)
            self._settled(Hold.ASKING)

        self.is_busy = True
        self._session.client.hold(Hold.ASKING)
        self._session.queue.add(Exchange(_OUR_CORRELATION_ID, answered))
        self._session.send_to_broker(frame_of(question(missing, _OUR_CORRELATION_ID)))

    def _named(self, request: ProduceRequest, header: RequestHeader) -> None:
        """Every topic has its name, as far as anybody knows it."""
        settings = self._session.context.topic_settings
        if settings is None:
            self._judge(request, header)
            return
        by_id = self._session.context.names.by_id
        names = (t.name if t.name is not None else by_id.get(t.topic_id or b"") for t in request.topics)
        waiting = settings.known_soon(name for name in names if name is not None)
        if waiting is None:
            self._judge(request, header)
        else:
            self._await_settings(waiting, request, header)

    def _await_settings(self, waiting: "Future[Any]", request: ProduceRequest, header: RequestHeader) -> None:
        """The cluster is being asked what topics are set to, on a connection of the proxy's own."""

        def known(_done: "Future[Any]") -> None:
            self.is_busy = False
            if not self._session.broker.closed:
                self._judge(request, header)
            self._settled(Hold.SETTINGS)

        self.is_busy = True
        self._session.client.hold(Hold.SETTINGS)
        waiting.add_done_callback(known)

    def _judge(self, request: ProduceRequest, header: RequestHeader) -> None:
        context = self._session.context
        judge = partial(
            judge_request, request, context.names.by_id, context.policies.of, context.judgement_limits, context.now_ms
        )
        if not _is_heavy(request):
            try:
                judged = judge()
            except Exception as error:  # ours, whatever it is: the client shall not wait for ever
                self._failed(error)
            else:
                self._judged(request, header, judged)
            return
        self.is_busy = True
        self._session.client.hold(Hold.JUDGING)
        future = context.judges.submit(judge)
        future.add_done_callback(lambda done: context.call_soon(self._judged_in_thread, request, header, done))

    def _judged_in_thread(
        self, request: ProduceRequest, header: RequestHeader, future: "ThreadFuture[JudgedRequest]"
    ) -> None:
        self.is_busy = False
        error = future.exception()
        if error is not None:
            self._failed(error)
            return
        if not self._session.broker.closed:
            self._judged(request, header, future.result())
        self._settled(Hold.JUDGING)

    def _failed(self, error: BaseException) -> None:
        self._session.context.log.judgement_failed(self._session.identity, error)
        self._session.close_now()

    def _settled(self, hold: Hold) -> None:
        self._session.request_settled()
        self._session.client.release(hold)

    def _judged(self, request: ProduceRequest, header: RequestHeader, judged: JudgedRequest) -> None:
        """Forward it as it came, or with stand-ins for what was refused."""
        session = self._session
        session.context.observer.judged(session.identity, request, judged)
        if not judged.refused:
            if request.acks != 0:
                session.queue.add(Exchange(header.correlation_id, self._finish_plain(request.version)))
            session.send_to_broker(_SIZE.pack(len(request.frame)), request.frame)
            return
        partly = PartlyRefused(request, judged, session.context.log_starts, session.context.now_ms())
        if request.acks != 0:
            session.queue.add(Exchange(header.correlation_id, partial(self._finish_partly, partly, request.version)))
        parts = request.with_records(partly.stand_ins)
        session.send_to_broker(_SIZE.pack(sum(map(len, parts))), *parts)
        if request.acks == 0 and partly.refuses_anything:
            session.context.tally.closed_acks_0 += 1
            session.answer_in_turn(Exchange(closes=True))

    def _finish_plain(self, version: int) -> "partial[bytes | bytearray] | None":
        """What a broker's answer to a request that was forwarded whole needs: addresses, from v10 on."""
        return partial(self._rewrite_endpoints, version) if version >= _NODE_ENDPOINTS_SINCE else None

    def _rewrite_endpoints(self, version: int, frame: bytearray) -> bytes | bytearray:
        answer = walk_produce_answer(frame, version, response_body_at(frame, 1))
        if not answer.has_node_endpoints:
            return frame
        return answer.with_entries({}, self._session.context.rewriter.produce_tail(answer.tail, version))

    def _finish_partly(self, partly: PartlyRefused, version: int, frame: bytearray) -> bytes:
        context = self._session.context
        body_at = response_body_at(frame, 1 if version >= _FLEXIBLE_SINCE else 0)
        return partly.finish(frame, body_at, context.rewriter, context.now_ms())


def _is_heavy(request: ProduceRequest) -> bool:
    """Whether judging may take more than a few milliseconds: much to decompress, or very much to scan."""
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
