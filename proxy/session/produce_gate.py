"""The way of a Produce request: walk it, name its topics, judge it, forward what is good and stand-ins for the rest.

Judging happens where the bytes arrive unless it may take long (`sluicegate.proxy.judgement.judging`); then a thread
does it, and the client's connection is not read meanwhile, so that nothing overtakes. Whatever goes wrong where
something was waited for ends the session, and a line says so: no client waits for ever.
"""

from collections.abc import Callable
from concurrent.futures import Future as ThreadFuture
from functools import partial
from struct import Struct
from typing import TYPE_CHECKING, Any

from sluicegate.protocol.framing import Parts, frame_of, size_prefix
from sluicegate.protocol.headers import CORRELATION_ID_BYTES, response_body_at
from sluicegate.protocol.log_start_question import log_starts_in
from sluicegate.protocol.log_start_question import question as log_start_question
from sluicegate.protocol.produce_request import ProduceRequest, walk_produce_request
from sluicegate.protocol.produce_response import tail_with_endpoints
from sluicegate.protocol.produce_versions import FLEXIBLE_SINCE, NODE_ENDPOINTS_SINCE, TOPIC_ID_SINCE
from sluicegate.protocol.topic_name import is_legal_topic_name
from sluicegate.proxy.answers.dispatch import Dispatch
from sluicegate.proxy.answers.produce_answers import PartlyRefused, Spot
from sluicegate.proxy.answers.topic_names import names_in, question
from sluicegate.proxy.judgement.judging import Job
from sluicegate.proxy.network.connection import Hold
from sluicegate.proxy.session.in_flight import Exchange, Finish
from sluicegate.validation.produce import VALID_ACKS
from sluicegate.validation.rules.rule import Client

if TYPE_CHECKING:
    from asyncio import Future

    from sluicegate.proxy.session.session import Session

_SIZE = Struct(">i")
_OUR_CORRELATION_ID = -1
# Up to this a copy costs less than a second buffer in a write.
_COPIED_BYTES = 8 * 1024
# Of answers to refused requests, for one connection, before it is read no further until one has gone out.
_MOST_KEPT_BYTES = 64 * 1024
# Partitions of one connection of which a broker's word is remembered, before all are forgotten.
_MOST_PROVEN = 100


class ProduceGate:
    """Takes the Produce requests of one session, one at a time."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._finish: Finish | None = None
        self._finish_version = -1
        self._job: Job | None = None
        self._requests = 0
        self._kept_bytes = 0
        self._proven: dict[tuple[Spot, int], int] = {}
        self.is_busy = False

    @property
    def busy_with(self) -> int | None:
        """The number of the request that is waited for; None: none is."""
        return self._requests if self.is_busy else None

    def abandon(self) -> None:
        """Nobody waits for a verdict any more."""
        if self._job is not None and not self._job.is_abandoned:
            self._session.context.tally.judgements_abandoned += 1
            self._session.context.judges.abandon(self._job)

    def end(self) -> None:
        """The session is over."""
        self.abandon()
        self._finish = None
        self._finish_version = -1

    def take(self, frame: bytearray, version: int, correlation_id: int, body_at: int) -> None:
        """A gathered Produce request, its body from `body_at` on. Raises SenderError when it cannot be walked."""
        self._requests += 1
        context = self._session.context
        request = walk_produce_request(frame, version, body_at, context.limits.max_request_partitions)
        if version >= TOPIC_ID_SINCE:
            ids = [topic.topic_id for topic in request.topics if topic.topic_id is not None]
            missing = context.names.missing(ids, context.now_ms())
            if missing:
                self._ask_names(missing, request, correlation_id)
                return
        self._named(request, correlation_id)

    def _ask_names(self, missing: list[bytes], request: ProduceRequest, correlation_id: int) -> None:
        """Ask the broker for topic ids that no answer has named yet, on this very connection and in its order."""

        def answered(answer: bytearray) -> None:
            context = self._session.context
            context.names.learn(names_in(answer))
            context.names.asked(missing, context.now_ms())
            self._go_on(Hold.ASKING, partial(self._named, request, correlation_id))

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
            self._go_on(Hold.SETTINGS, partial(self._judge, request, correlation_id))

        self.is_busy = True
        self._session.client.hold(Hold.SETTINGS)
        waiting.add_done_callback(known)

    @property
    def is_exempt(self) -> bool:
        """Whether this client is asked nothing, so that nobody has to look at what it sends."""
        client = self._who_asks()
        return client is not None and self._session.context.rules.rulebook.exempts(client)

    def _who_asks(self) -> Client | None:
        """Who the client is, where the rulebook asks for that."""
        session = self._session
        return session.identity.as_rules_see_it() if session.context.rules.rulebook.asks_who else None

    def _judge(self, request: ProduceRequest, correlation_id: int) -> None:
        context = self._session.context
        client = self._who_asks()
        dispatch = context.judges.judge(request, client)
        if dispatch is not None:
            self._judged(request, correlation_id, dispatch)
            return
        self.is_busy = True
        self._session.client.hold(Hold.JUDGING)
        self._job = context.judges.submit(request, self._session.account, client)
        self._job.future.add_done_callback(
            lambda done: context.call_soon(self._judged_in_thread, request, correlation_id, done)
        )

    def _judged_in_thread(self, request: ProduceRequest, correlation_id: int, future: ThreadFuture[Dispatch]) -> None:
        self._job = None

        def go_on() -> None:
            if not future.cancelled():
                self._judged(request, correlation_id, future.result())

        self._go_on(Hold.JUDGING, go_on)

    def _go_on(self, hold: Hold, step: Callable[[], None]) -> None:
        """What was waited for is there: take the next step, unless the broker has gone meanwhile."""
        session = self._session
        try:
            self.is_busy = False
            if not session.broker.closed:
                step()
            session.request_settled()
            session.client.release(hold)
        except Exception as error:  # ours, whatever it is: the client shall not wait for ever
            session.on_our_fault(session.client, error)

    def _judged(self, request: ProduceRequest, correlation_id: int, dispatch: Dispatch) -> None:
        """Forward it as it came, or with stand-ins for what was refused."""
        session = self._session
        session.context.observer.judged(session.identity, request, dispatch.judged)
        partly = dispatch.partly
        if partly is None:
            self._teach(request)
            finish = self.plain_finish(request.version)
            version = request.version if finish is not None else 0
            answered = request.acks != 0
            exchange = Exchange(correlation_id, finish, None, False, version) if answered else None
            if dispatch.parts:
                self._forward_parts(dispatch.parts, exchange)
            else:
                self.forward(request.frame, exchange)
            return
        if request.acks != 0:
            alone = partly.answer_alone(self._proven, correlation_id, session.context.now_ms())
            if alone is not None:
                session.answer_in_turn(Exchange(answer=alone))
                return
            self._ask_log_starts(partly)
            session.queue.add(
                Exchange(correlation_id, partial(self._finish_partly, partly, request.version, request.acks))
            )
            self._refusal_begins(partly)
        self._forward_parts(dispatch.parts, None)
        if request.acks == 0 and partly.refuses_anything:
            session.context.tally.closed_acks_0 += 1
            session.answer_in_turn(Exchange(closes=True))

    def forward(self, frame: bytearray, exchange: Exchange | None) -> None:
        """Send a request as it came; `exchange` awaits its answer, None: there will be none (acks=0)."""
        session = self._session
        if exchange is not None:
            session.queue.add(exchange)
        if len(frame) <= _COPIED_BYTES:
            session.broker.write(_SIZE.pack(len(frame)) + frame)
        else:
            session.broker.write_parts((_SIZE.pack(len(frame)), frame))
            session.frame_was_sent(frame)

    def _forward_parts(self, parts: list[bytes | memoryview], exchange: Exchange | None) -> None:
        """Send a request that is not as it came; `exchange` as for `forward`."""
        session = self._session
        if exchange is not None:
            session.queue.add(exchange)
        session.broker.write_parts((size_prefix(parts), *parts))

    def _teach(self, request: ProduceRequest) -> None:
        """The fast lane may take what comes for these topics from now on."""
        context = self._session.context
        if context.ordinary is None or request.acks not in VALID_ACKS:
            return
        policy_of = context.policy_memo.by(context.rules.rulebook)
        for topic in request.topics:
            name = topic.name if topic.name is not None else context.names.by_id.get(topic.topic_id or b"")
            if name is not None and is_legal_topic_name(name):
                key = topic.topic_id if topic.topic_id is not None else name.encode()
                policy = policy_of(name).ordinary
                if policy is not None:
                    context.ordinary.teach(key, topic.topic_id is not None, policy)

    def _ask_log_starts(self, partly: PartlyRefused) -> None:
        """On this very connection, so that the answer is there before that to the request."""
        by_id = self._session.context.names.by_id
        named: dict[tuple[str, int], Spot] = {}
        partitions: dict[str, list[int]] = {}
        for spot in partly.asked_log_starts:
            name = spot.topic if isinstance(spot.topic, str) else by_id.get(spot.topic)
            if name is not None and is_legal_topic_name(name):
                named[name, spot.partition] = spot
                partitions.setdefault(name, []).append(spot.partition)
        if not named:
            return

        def answered(answer: bytearray) -> None:
            now_ms = self._session.context.now_ms()
            for place, offset in log_starts_in(answer, len(named)).items():
                if place in named:
                    partly.log_start_told(named[place], offset, now_ms)

        self._session.queue.add(Exchange(_OUR_CORRELATION_ID, answered))
        self._session.broker.write(frame_of(log_start_question(partitions, _OUR_CORRELATION_ID)))

    def _refusal_begins(self, partly: PartlyRefused) -> None:
        """What clients are told is kept until the broker has answered: no more of it than a broker's answer or two."""
        self._kept_bytes += partly.kept_bytes
        if self._kept_bytes > _MOST_KEPT_BYTES:
            self._session.client.hold(Hold.REFUSALS)

    def _refusal_ends(self, partly: PartlyRefused) -> None:
        self._kept_bytes -= partly.kept_bytes
        if self._kept_bytes <= _MOST_KEPT_BYTES:
            self._session.client.release(Hold.REFUSALS)

    def plain_finish(self, version: int) -> Finish | None:
        """What a broker's answer to a request that was forwarded whole needs: addresses, from v10 on."""
        if version != self._finish_version:
            self._finish_version = version
            self._finish = partial(self._rewrite_endpoints, version) if version >= NODE_ENDPOINTS_SINCE else None
        return self._finish

    def _rewrite_endpoints(self, version: int, frame: bytearray) -> Parts:
        # The header's tags are nearly always none.
        body_at = (
            CORRELATION_ID_BYTES + 1
            if frame[CORRELATION_ID_BYTES : CORRELATION_ID_BYTES + 1] == b"\0"
            else response_body_at(frame, 1)
        )
        tail_at = tail_with_endpoints(frame, version, body_at)
        if tail_at < 0:
            return (frame,)
        view = memoryview(frame)
        return view[:tail_at], self._session.context.rewriter.produce_tail(view[tail_at:])

    def _finish_partly(self, partly: PartlyRefused, version: int, acks: int, frame: bytearray) -> Parts:
        context = self._session.context
        body_at = response_body_at(frame, 1 if version >= FLEXIBLE_SINCE else 0)
        answer = partly.finish(frame, body_at, context.rewriter)
        proven = partly.proven_spots[:_MOST_PROVEN]
        if len(self._proven) + len(proven) > _MOST_PROVEN:
            self._proven.clear()
        now_ms = context.now_ms()
        for spot in proven:
            self._proven[spot, acks] = now_ms
        for topic in partly.proven_topics:
            context.observer.learn(topic)
        self._refusal_ends(partly)
        return answer
