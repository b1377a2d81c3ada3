"""The way of a Produce request: walk it, name its topics, judge it, forward what is good and stand-ins for the rest.

Judging happens where the bytes arrive unless it may take long (`is_heavy`); then a thread does it, and the client's
connection is not read meanwhile, so that nothing overtakes.
"""

from functools import partial
from struct import Struct
from typing import TYPE_CHECKING, Any

from protocol.framing import frame_of
from protocol.headers import CORRELATION_ID_BYTES, response_body_at
from protocol.produce_request import TOPIC_ID_SINCE, ProduceRequest, walk_produce_request
from protocol.produce_response import names_endpoints, walk_produce_answer
from proxy.connection import Hold
from proxy.in_flight import Exchange, Finish
from proxy.judging import is_heavy
from proxy.produce_answers import PartlyRefused
from proxy.topic_names import names_in, question
from validation.produce import JudgedRequest

if TYPE_CHECKING:
    from asyncio import Future
    from concurrent.futures import Future as ThreadFuture

    from proxy.session import Session

_SIZE = Struct(">i")
_NODE_ENDPOINTS_SINCE = 10
_FLEXIBLE_SINCE = 9
_OUR_CORRELATION_ID = -1
# Up to this a copy costs less than a second buffer in a write.
_COPIED_BYTES = 8 * 1024


class ProduceGate:
    """Takes the Produce requests of one session, one at a time."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._finish: Finish | None = None
        self._finish_version = -1
        self.is_busy = False

    def take(self, frame: bytearray, version: int, correlation_id: int, body_at: int) -> None:
        """A gathered Produce request, its body from `body_at` on. Raises MalformedMessage when it cannot be walked."""
        request = walk_produce_request(frame, version, body_at)
        if version >= TOPIC_ID_SINCE:
            ids = [topic.topic_id for topic in request.topics if topic.topic_id is not None]
            missing = self._session.context.names.missing(ids)
            if missing:
                self._ask_names(missing, request, correlation_id)
                return
        self._named(request, correlation_id)

    def _ask_names(self, missing: list[bytes], request: ProduceRequest, correlation_id: int) -> None:
        """Ask the broker for topic ids that no answer has named yet, on this very connection and in its order."""

        def answered(answer: bytearray) -> None:
            self._session.context.names.learn(names_in(answer))
            self.is_busy = False
            self._named(request, correlation_id)
            self._settled(Hold.ASKING)

        self.is_busy = True
        self._session.client.hold(Hold.ASKING)
        self._session.queue.add(Exchange(_OUR_CORRELATION_ID, answered))
        self._session.broker.write(frame_of(question(missing, _OUR_CORRELATION_ID)))

    def _named(self, request: ProduceRequest, correlation_id: int) -> None:
        """Every topic has its name, as far as anybody knows it."""
        settings = self._session.context.topic_settings
        if settings is None:
            self._judge(request, correlation_id)
            return
        by_id = self._session.context.names.by_id
        names = (t.name if t.name is not None else by_id.get(t.topic_id or b"") for t in request.topics)
        waiting = settings.known_soon(name for name in names if name is not None)
        if waiting is None:
            self._judge(request, correlation_id)
        else:
            self._await_settings(waiting, request, correlation_id)

    def _await_settings(self, waiting: "Future[Any]", request: ProduceRequest, correlation_id: int) -> None:
        """The cluster is being asked what topics are set to, on a connection of the proxy's own."""

        def known(_done: "Future[Any]") -> None:
            self.is_busy = False
            if not self._session.broker.closed:
                self._judge(request, correlation_id)
            self._settled(Hold.SETTINGS)

        self.is_busy = True
        self._session.client.hold(Hold.SETTINGS)
        waiting.add_done_callback(known)

    def _judge(self, request: ProduceRequest, correlation_id: int) -> None:
        context = self._session.context
        if not is_heavy(request):
            try:
                judged = context.judges.judge(request)
            except Exception as error:  # ours, whatever it is: the client shall not wait for ever
                self._failed(error)
            else:
                self._judged(request, correlation_id, judged)
            return
        self.is_busy = True
        self._session.client.hold(Hold.JUDGING)
        future = context.judges.submit(request)
        future.add_done_callback(lambda done: context.call_soon(self._judged_in_thread, request, correlation_id, done))

    def _judged_in_thread(
        self, request: ProduceRequest, correlation_id: int, future: "ThreadFuture[JudgedRequest]"
    ) -> None:
        self.is_busy = False
        error = future.exception()
        if error is not None:
            self._failed(error)
            return
        if not self._session.broker.closed:
            self._judged(request, correlation_id, future.result())
        self._settled(Hold.JUDGING)

    def _failed(self, error: BaseException) -> None:
        self._session.context.log.judgement_failed(self._session.identity, error)
        self._session.close_now()

    def _settled(self, hold: Hold) -> None:
        self._session.request_settled()
        self._session.client.release(hold)

    def _judged(self, request: ProduceRequest, correlation_id: int, judged: JudgedRequest) -> None:
        """Forward it as it came, or with stand-ins for what was refused."""
        session = self._session
        session.context.observer.judged(session.identity, request, judged)
        frame = request.frame
        if not judged.refused:
            if request.acks != 0:
                session.queue.add(Exchange(correlation_id, self._finish_plain(request.version)))
            if len(frame) <= _COPIED_BYTES:
                session.broker.write(_SIZE.pack(len(frame)) + frame)
            else:
                session.broker.write_parts((_SIZE.pack(len(frame)), frame))
                session.frames_sent.append(frame)
            return
        partly = PartlyRefused(request, judged, session.context.log_starts, session.context.now_ms())
        if request.acks != 0:
            session.queue.add(Exchange(correlation_id, partial(self._finish_partly, partly, request.version)))
        parts = request.with_records(partly.stand_ins)
        session.broker.write_parts((_SIZE.pack(sum(map(len, parts))), *parts))
        if request.acks == 0 and partly.refuses_anything:
            session.context.tally.closed_acks_0 += 1
            session.answer_in_turn(Exchange(closes=True))

    def _finish_plain(self, version: int) -> Finish | None:
        """What a broker's answer to a request that was forwarded whole needs: addresses, from v10 on."""
        if version != self._finish_version:
            self._finish_version = version
            self._finish = partial(self._rewrite_endpoints, version) if version >= _NODE_ENDPOINTS_SINCE else None
        return self._finish

    def _rewrite_endpoints(self, version: int, frame: bytearray) -> bytes | bytearray:
        # The header's tags are nearly always none.
        body_at = (
            CORRELATION_ID_BYTES + 1
            if frame[CORRELATION_ID_BYTES : CORRELATION_ID_BYTES + 1] == b"\0"
            else response_body_at(frame, 1)
        )
        if not names_endpoints(frame, version, body_at):
            return frame
        answer = walk_produce_answer(frame, version, body_at)
        return answer.with_entries({}, self._session.context.rewriter.produce_tail(answer.tail))

    def _finish_partly(self, partly: PartlyRefused, version: int, frame: bytearray) -> bytes:
        context = self._session.context
        body_at = response_body_at(frame, 1 if version >= _FLEXIBLE_SINCE else 0)
        return partly.finish(frame, body_at, context.rewriter, context.now_ms())
