"""The way of a Produce request: walk it, name its topics, judge it, forward what is good and stand-ins for the rest.

Judging happens where the bytes arrive unless it may take long (`sluicegate.proxy.scheduling.scheduler`); then a thread
does it. Whatever a request waits for, names, settings or that thread, it waits for in one way
(`sluicegate.proxy.session.waiting`).
"""

from collections.abc import Callable, Sequence
from functools import partial
from struct import Struct
from typing import TYPE_CHECKING

from sluicegate.protocol.api import ApiKey
from sluicegate.protocol.errors import SenderError
from sluicegate.protocol.framing import Parts, frame_of, size_prefix
from sluicegate.protocol.headers import CORRELATION_ID_BYTES, response_body_at
from sluicegate.protocol.produce_request import ProduceRequest, walk_produce_request
from sluicegate.protocol.produce_response import tail_with_endpoints
from sluicegate.protocol.produce_versions import FLEXIBLE_SINCE, NODE_ENDPOINTS_SINCE, TOPIC_ID_SINCE
from sluicegate.protocol.records.counting import check_record_count
from sluicegate.protocol.topic_name import is_legal_topic_name
from sluicegate.proxy.responses.dispatch import Dispatch
from sluicegate.proxy.responses.produce_responses import MOST_ALONE, PartlyRefused, Spot
from sluicegate.proxy.responses.topic_names import names_in, question
from sluicegate.proxy.scheduling.job import Job, Judgement
from sluicegate.proxy.session.dependencies import OnInternalError, ProduceDependencies
from sluicegate.proxy.session.in_flight import Exchange, Finish
from sluicegate.proxy.session.log_start_questions import LogStartQuestions
from sluicegate.proxy.session.metering import Standing
from sluicegate.proxy.session.pause_reason import PauseReason
from sluicegate.proxy.session.quarantining import Quarantining
from sluicegate.proxy.session.stored_times import StoredTimes
from sluicegate.proxy.session.waiting import Tell, Waiting
from sluicegate.validation.previous_times import PreviousUnderWay
from sluicegate.validation.produce import VALID_ACKS
from sluicegate.validation.rules.rule import Client

if TYPE_CHECKING:
    from sluicegate.proxy.session.session import Session

_SIZE = Struct(">i")
_PRODUCE = ApiKey.PRODUCE.value
_OUR_CORRELATION_ID = -1
# Up to this a copy costs less than a second buffer in a write.
_COPIED_BYTES = 8 * 1024
# Of answers to refused requests, for one connection, before it is read no further until one has gone out.
_MOST_KEPT_BYTES = 64 * 1024
# Partitions of one connection of which a broker's word is remembered, before all are forgotten.
_MOST_PROVEN = MOST_ALONE


class ProduceHandler:
    """Takes the Produce requests of one session, one at a time."""

    def __init__(self, session: "Session", dependencies: ProduceDependencies) -> None:
        self._session = session
        self._dependencies = dependencies
        self._waiting = Waiting(session)
        self._finish: Finish | None = None
        self._finish_version = -1
        self._job: Job | None = None
        self._requests = 0
        self._came = 0.0
        self._kept_bytes = 0
        self._proven: dict[tuple[Spot, int], int] = {}
        self._log_starts = LogStartQuestions(session, dependencies)
        self._stored_times = StoredTimes(dependencies.judges.previous)

    @property
    def is_busy(self) -> bool:
        """Whether a request waits for something."""
        return self._waiting.is_under_way

    @property
    def busy_with(self) -> int | None:
        """The number of the request that is waited for; None: none is, or one waits for its quota."""
        return self._requests if self.is_busy and not self._waiting.is_for(PauseReason.QUOTA_TURN) else None

    def abandon(self) -> None:
        """Nobody waits for a verdict any more. A request that waits for its quota is dropped, as a broker drops what it
        has not read.
        """
        if self._waiting.is_for(PauseReason.QUOTA_TURN):
            self._waiting.give_up()
        if self._job is not None and not self._job.is_abandoned:
            self._dependencies.counts.judgements_abandoned += 1
            self._dependencies.judges.abandon(self._job)

    def end(self) -> None:
        """The session is over."""
        self.abandon()
        self._finish = None
        self._finish_version = -1
        self._log_starts.end()

    def wait_for_turn(self, ask: Callable[[Callable[[], None]], None], go_on: Callable[[], None]) -> None:
        """`go_on` when the session's turn under a quota has come; `ask` is handed what to call then."""

        def asks(tell: Tell[None]) -> None:
            ask(partial(tell, None))

        self._waiting.until(PauseReason.QUOTA_TURN, asks, lambda _: go_on())

    def take(self, frame: bytearray, version: int, correlation_id: int, body_at: int, came: float) -> None:
        """A Produce request that has come whole at `came` (seconds, monotonic), its body from `body_at` on. Raises
        SenderError when it cannot be walked.
        """
        self._requests += 1
        self._came = came
        request = walk_produce_request(frame, version, body_at, self._dependencies.max_request_partitions)
        check_record_count(request, self._dependencies.max_request_records)
        if version >= TOPIC_ID_SINCE:
            ids = [topic.topic_id for topic in request.topics if topic.topic_id is not None]
            missing = self._dependencies.names.missing(ids, self._dependencies.now_ms())
            if missing:
                self._ask_names(missing, request, correlation_id)
                return
        self._named(request, correlation_id)

    def _ask_names(self, missing: list[bytes], request: ProduceRequest, correlation_id: int) -> None:
        """Ask the broker for topic ids that no answer has named yet, on this very connection and in its order."""

        def ask(tell: Tell[None]) -> None:
            session = self._session
            session.queue.add(Exchange(_OUR_CORRELATION_ID, partial(self._names_answered, missing, tell)))
            session.broker.write(frame_of(question(missing, _OUR_CORRELATION_ID)))

        self._waiting.until(PauseReason.ASKING, ask, lambda _: self._named(request, correlation_id))

    def _names_answered(self, missing: list[bytes], tell: Tell[None], answer: bytearray) -> None:
        names = self._dependencies.names
        names.learn(names_in(answer))
        names.asked(missing, self._dependencies.now_ms())
        tell(None)

    def _named(self, request: ProduceRequest, correlation_id: int) -> None:
        """Every topic has its name, as far as anybody knows it."""
        settings = self._dependencies.settings
        if settings is None:
            self._judge(request, correlation_id)
            return
        by_id = self._dependencies.names.by_id
        names = (t.name if t.name is not None else by_id.get(t.topic_id or b"") for t in request.topics)
        told = settings.known_soon(name for name in names if name is not None)
        if told is None:
            self._judge(request, correlation_id)
            return
        # The cluster is being asked what topics are set to, on a connection of the proxy's own.
        self._waiting.until(
            PauseReason.SETTINGS, told.add_done_callback, lambda _: self._judge(request, correlation_id)
        )

    @property
    def rules_generation(self) -> int:
        """Another one where other rules hold."""
        return self._dependencies.rules.generation

    @property
    def names_principals(self) -> bool:
        """Whether a policy depends on the principal that a client logs in as."""
        return self._dependencies.rules.rulebook.in_file.names_principals

    @property
    def is_exempt(self) -> bool:
        """Whether this client is asked nothing, so that nobody has to look at what it sends."""
        client = self._who_asks()
        return client is not None and self._dependencies.rules.rulebook.exempts(client)

    def _who_asks(self) -> Client | None:
        """Who the client is, where the rulebook asks for that."""
        return self._session.identity.as_rules_see_it() if self._dependencies.rules.rulebook.asks_who else None

    def _judge(self, request: ProduceRequest, correlation_id: int) -> None:
        rulebook = self._dependencies.rules.rulebook
        if not rulebook.in_file.has_topic_quotas:
            self._judge_now(request, correlation_id)
            return
        metering, size = self._session.metering, len(request.frame)
        policy_of = self._dependencies.policy_memo.by(rulebook)
        shares = metering.shares_of_topics(request, policy_of, self._dependencies.names.by_id)

        def go_on() -> None:
            metering.take_of_topics(shares)
            self._judge_now(request, correlation_id)

        match metering.must_hold(shares, size):
            case Standing.STAYS:
                go_on()
            case Standing.WAITS:
                self.wait_for_turn(partial(metering.hold, shares, size), go_on)
            case Standing.TURNED_AWAY:
                self._session.delivery.in_turn(Exchange(closes=True))

    def _judge_now(self, request: ProduceRequest, correlation_id: int) -> None:
        client = self._who_asks()
        try:
            dispatch = self._dependencies.judges.judge(request, client, self._stored_times.previous)
        except PreviousUnderWay:
            self._judge_later(request, correlation_id)
            return
        except Exception as error:
            self._not_judged(request, correlation_id, error)
            return
        if dispatch is not None:
            self._judged(request, correlation_id, dispatch)
        else:
            self._waiting.until(
                PauseReason.JUDGING,
                partial(self._judge_in_thread, request, client),
                partial(self._judged_in_thread, request, correlation_id),
            )

    def _judge_later(self, request: ProduceRequest, correlation_id: int) -> None:
        """When the broker has responded to what was sent before: a record's time depends on what it stored of that."""
        again = partial(self._judge_now, request, correlation_id)
        self._waiting.until(PauseReason.ASKING, self._stored_times.when_settled, lambda _: again())

    def _judge_in_thread(self, request: ProduceRequest, client: Client | None, tell: Tell[Judgement]) -> None:
        self._job = self._dependencies.judges.submit(
            request, self._session.account, client, self._stored_times.previous
        )
        # Not the job, which would hold itself by this, and what it has found.
        self._job.future.add_done_callback(partial(self._dependencies.from_thread, tell))

    def _judged_in_thread(self, request: ProduceRequest, correlation_id: int, judgement: Judgement) -> None:
        self._job = None
        if judgement.cancelled():
            return
        error = judgement.exception()
        if isinstance(error, PreviousUnderWay):
            self._judge_later(request, correlation_id)
        elif error is not None:
            self._not_judged(request, correlation_id, error)
        else:
            self._judged(request, correlation_id, judgement.result())

    def _not_judged(self, request: ProduceRequest, correlation_id: int, error: BaseException) -> None:
        """A fault of ours, before anything of the request was sent. Raises it again where nothing may pass unjudged."""
        is_ours = isinstance(error, Exception) and not isinstance(error, SenderError)
        if not is_ours or self._dependencies.on_internal_error is OnInternalError.CLOSE:
            raise error
        self._session.goes_unjudged(error)
        exchange = self._plain_exchange(request, correlation_id)
        self.forward(request.frame, exchange)
        self._dependencies.clock.sent(_PRODUCE, self._came, exchange)

    def _judged(self, request: ProduceRequest, correlation_id: int, dispatch: Dispatch) -> None:
        if dispatch.dead_letters:
            then = partial(self._send, request, correlation_id, dispatch)
            kept = Quarantining(self._session, self._waiting, self._dependencies, self._proven, self._note_proven)
            kept.keep(request, correlation_id, dispatch, then)
        else:
            self._send(request, correlation_id, dispatch)

    def _send(self, request: ProduceRequest, correlation_id: int, dispatch: Dispatch) -> None:
        """Forward it as it came, or with stand-ins for what was refused."""
        identity = self._session.identity
        self._dependencies.judgements.judged(identity, request, dispatch.judged)
        awaited = self._sent(request, correlation_id, dispatch)
        self._dependencies.clock.sent(_PRODUCE, self._came, awaited)
        traces = self._dependencies.traces
        if traces is not None:
            traces.sent(identity, request, dispatch.judged, self._came, self._dependencies.clock.now(), awaited)
        partly = dispatch.partly
        if request.acks == 0 and partly is not None and partly.refuses_anything:
            self._dependencies.counts.closed_acks_0 += 1
            self._session.delivery.in_turn(Exchange(closes=True))

    def _sent(self, request: ProduceRequest, correlation_id: int, dispatch: Dispatch) -> Exchange | None:
        """It has left, or was answered here; what waits for the broker's answer."""
        session = self._session
        partly = dispatch.partly
        if partly is None:
            self._teach(request)
            exchange = self._plain_exchange(request, correlation_id)
            if exchange is not None:
                self._stored_times.expect(exchange, request, dispatch.judged)
            if dispatch.parts is not None:
                self._forward_parts(dispatch.parts(), exchange)
            else:
                self.forward(request.frame, exchange)
            return exchange
        assert dispatch.parts is not None
        if request.acks != 0:
            alone = partly.answer_alone(self._proven, correlation_id, self._dependencies.now_ms())
            if alone is not None:
                session.delivery.in_turn(session.metering.told(Exchange(answer=alone), request.version))
                return None
            question = self._log_starts.ask_for(partly)
            exchange = Exchange(correlation_id, partial(self._finish_partly, partly, request.version, request.acks))
            session.queue.add(session.metering.told(exchange, request.version))
            self._stored_times.expect(exchange, request, dispatch.judged)
            self._refusal_begins(partly)
            parts = dispatch.parts()
            session.broker.write_parts((*question, size_prefix(parts), *parts))
            return exchange
        self._forward_parts(dispatch.parts(), None)
        return None

    def _plain_exchange(self, request: ProduceRequest, correlation_id: int) -> Exchange | None:
        """What awaits the answer to a request of which nothing is refused; None: acks=0 gets none."""
        if request.acks == 0:
            return None
        finish = self.plain_finish(request.version)
        version = request.version if finish is not None else 0
        return self._session.metering.told(Exchange(correlation_id, finish, None, False, version), request.version)

    def forward(self, frame: bytearray, exchange: Exchange | None) -> None:
        """Send a request as it came; `exchange` awaits its answer, None: there will be none (acks=0)."""
        session = self._session
        if exchange is not None:
            session.queue.add(exchange)
        if len(frame) <= _COPIED_BYTES:
            session.broker.write(_SIZE.pack(len(frame)) + frame)
        else:
            session.broker.write_parts((_SIZE.pack(len(frame)), frame))
            session.sent_frames.add(frame)

    def _forward_parts(self, parts: list[bytes | memoryview], exchange: Exchange | None) -> None:
        """Send a request that is not as it came; `exchange` as for `forward`."""
        session = self._session
        if exchange is not None:
            session.queue.add(exchange)
        session.broker.write_parts((size_prefix(parts), *parts))

    def _teach(self, request: ProduceRequest) -> None:
        """The fast lane may take what comes for these topics from now on."""
        dependencies = self._dependencies
        if dependencies.ordinary is None or request.acks not in VALID_ACKS:
            return
        policy_of = dependencies.policy_memo.by(dependencies.rules.rulebook)
        for topic in request.topics:
            name = topic.name if topic.name is not None else dependencies.names.by_id.get(topic.topic_id or b"")
            if name is not None and is_legal_topic_name(name):
                key = topic.topic_id if topic.topic_id is not None else name.encode()
                policy = policy_of(name).ordinary
                if policy is not None:
                    dependencies.ordinary.teach(key, topic.topic_id is not None, policy)

    def _refusal_begins(self, partly: PartlyRefused) -> None:
        """What clients are told is kept until the broker has answered: no more of it than a broker's answer or two."""
        self._kept_bytes += partly.kept_bytes
        if self._kept_bytes > _MOST_KEPT_BYTES:
            self._session.client.pause(PauseReason.REFUSALS)

    def _refusal_ends(self, partly: PartlyRefused) -> None:
        self._kept_bytes -= partly.kept_bytes
        if self._kept_bytes <= _MOST_KEPT_BYTES:
            self._session.client.resume(PauseReason.REFUSALS)

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
        return view[:tail_at], self._dependencies.rewriter.produce_tail(view[tail_at:])

    def _finish_partly(self, partly: PartlyRefused, version: int, acks: int, frame: bytearray) -> Parts:
        body_at = response_body_at(frame, 1 if version >= FLEXIBLE_SINCE else 0)
        answer = partly.finish(frame, body_at, self._dependencies.rewriter)
        self._note_proven(partly.proven_spots, acks)
        for topic in partly.proven_topics:
            self._dependencies.judgements.learn(topic)
        self._refusal_ends(partly)
        return answer

    def _note_proven(self, spots: Sequence[Spot], acks: int) -> None:
        """A broker has just complained of nothing but a stand-in about these."""
        proven = spots[:_MOST_PROVEN]
        if len(self._proven) + len(proven) > _MOST_PROVEN:
            self._proven.clear()
        now_ms = self._dependencies.now_ms()
        for spot in proven:
            self._proven[spot, acks] = now_ms
