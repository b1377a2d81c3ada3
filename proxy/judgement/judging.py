"""Where requests are judged: on the event loop while that takes a moment, else in a thread of its own, by turns.

What the loop may spend on judging between two looks at its sockets is bounded for all connections together; a request
that turns out to need more is judged again in a thread. There the longest wait is that for a turn: who was served least
lately goes first, and long work makes room for others in between.
"""

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from time import monotonic
from typing import Any

from sluicegate.protocol.produce_request import ProduceRequest
from sluicegate.protocol.records.allowance import Abandoned, Allowance, OutOfTime
from sluicegate.protocol.records.compression import Decompressor
from sluicegate.protocol.records.record_batch import CODEC_MASK, HEADER_BYTES, attributes_low_byte
from sluicegate.proxy.answers.dispatch import Dispatch
from sluicegate.proxy.judgement.quarantine_room import QuarantineRoom
from sluicegate.proxy.judgement.short_turns import ShortTurns
from sluicegate.proxy.judgement.taking_out import take_out
from sluicegate.proxy.judgement.turns import Account, Turns
from sluicegate.validation.in_force import RulesInForce
from sluicegate.validation.policy import EXEMPT, JudgementLimits, TopicPolicy
from sluicegate.validation.policy_memo import PolicyMemo
from sluicegate.validation.previous_times import PreviousTimes
from sluicegate.validation.produce import JudgedRequest, judge_request, records_of
from sluicegate.validation.rules.rule import Client

_HEAVY_PARTITIONS = 200
# Making what clients are told about more takes its time too.
_MOST_REFUSED_ON_THE_LOOP = 20
_LIGHT_BYTES = 1024  # no request this small names more
_HEAVY_COMPRESSED_BYTES = 512 * 1024
_HEAVY_PLAIN_BYTES = 4 * 1024 * 1024
# Bytes, decompressed ones included, that the loop judges before it looks at its sockets again.
_LOOP_TURN_BYTES = 8 * 1024 * 1024
_LOOP_REQUEST_BYTES = 4 * 1024 * 1024
# Of that, what cannot be interrupted.
_LOOP_AT_ONCE_BYTES = 64 * 1024
# And how long, whatever it is.
_LOOP_REQUEST_SECONDS = 0.003
# How long one request is judged in a thread before others are looked at.
_TURN_SECONDS = 0.01
# Requests that are judged in between, one within the other, in the thread.
_MOST_NESTED = 8
_END_SECONDS = 2.0

Prepare = Callable[[ProduceRequest, JudgedRequest, Callable[[], None]], Dispatch]
"""What it is given last lets others go on."""

Judgement = Future[Dispatch]
"""What a thread has found; cancelled where nobody wanted it any more."""

_NO_PARTS: list[bytes | memoryview] = []


class Job:
    """A request that a thread judges for the connection of `account`; `future` gets what is to be sent for it.

    `client`: who sent it, where that is asked.
    """

    def __init__(self, request: ProduceRequest, account: Account, client: Client | None) -> None:
        self.request = request
        self.client = client
        self.account = account
        self.future: Future[Dispatch] = Future()
        self.is_abandoned = False


class Judges:
    """Judges requests, each by the rules that are in force when its judgement begins.

    `prepare` turns a verdict that refuses something into what is sent. `call_soon` runs something when the loop has
    looked at its sockets again. `room` is the memory for bad records that are kept.
    """

    def __init__(
        self,
        names: Mapping[bytes, str],
        rules: RulesInForce,
        limits: JudgementLimits,
        now_ms: Callable[[], int],
        prepare: Prepare,
        call_soon: Callable[[Callable[[], None]], Any],
        room: QuarantineRoom | None = None,
    ) -> None:
        self._names = names
        self._rules = rules
        self._limits = limits
        self._now_ms = now_ms
        self._prepare = prepare
        self._call_soon = call_soon
        self._room = room if room is not None else QuarantineRoom(0)
        self._decompressor = Decompressor()
        self._memo = PolicyMemo()
        self._previous = PreviousTimes()
        self._loop_left = _LOOP_TURN_BYTES
        self._loop_turn_ends = False
        self._turns: Turns[Job] = Turns()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = False

    def judge(self, request: ProduceRequest, client: Client | None = None) -> Dispatch | None:
        """What is to be sent for a request; None when it is for a thread. Only for the event loop's thread.

        `client`: who sent it, where the rulebook asks for that.
        """
        size = len(request.frame)
        if self._loop_left < size or is_heavy(request):
            return None
        most = min(self._loop_left - size, _LOOP_REQUEST_BYTES)
        allowance = Allowance(
            most, self._limits.max_record_errors, _Until(monotonic() + _LOOP_REQUEST_SECONDS), _LOOP_AT_ONCE_BYTES
        )
        judged: JudgedRequest | None = None
        with suppress(OutOfTime):
            judged = judge_request(
                request,
                self._names,
                self._policy_of(self._memo, client),
                self._limits,
                self._now_ms,
                self._decompressor,
                allowance,
                self._previous,
                client,
            )
        self._loop_left -= size + most - allowance.plain_left
        if self._loop_left < _LOOP_TURN_BYTES // 2 and not self._loop_turn_ends:
            self._loop_turn_ends = True
            self._call_soon(self._next_loop_turn)
        if judged is None or allowance.exhausted or len(judged.refused) > _MOST_REFUSED_ON_THE_LOOP:
            return None
        if judged.to_quarantine:
            return None
        return self._dispatch(request, judged, _go_on)

    def submit(self, request: ProduceRequest, account: Account, client: Client | None = None) -> Job:
        """Have it judged in a thread; `client` as for `judge`."""
        job = Job(request, account, client)
        with self._changed:
            if self._closed:
                job.future.cancel()
                return job
            self._turns.add(job)
            if self._thread is None:
                self._thread = threading.Thread(target=_Judge(self).run, name="judge", daemon=True)
                self._thread.start()
            self._changed.notify()
        return job

    def abandon(self, job: Job) -> None:
        """Nobody wants it any more: what has not begun never does, what has ends soon."""
        job.is_abandoned = True
        with self._changed:
            if self._turns.remove(job):
                job.future.cancel()

    def close(self) -> None:
        """Begin nothing more, and end what has begun."""
        with self._changed:
            self._closed = True
            self._turns.clear()
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(_END_SECONDS)

    def _next_loop_turn(self) -> None:
        self._loop_left = _LOOP_TURN_BYTES
        self._loop_turn_ends = False

    def next_job(self) -> Job | None:
        """For a judging thread: what is next, once there is something; None when there will be nothing more."""
        with self._changed:
            while not self._turns and not self._closed:
                self._changed.wait()
            return None if self._closed else self._turns.pop(monotonic())

    def job_before(self, account: Account) -> Job | None:
        """For a judging thread in the middle of a job: what goes before more work for `account`. Raises Abandoned."""
        if self._closed:
            raise Abandoned
        if not self._turns:
            return None
        with self._changed:
            return self._turns.pop_before(account, monotonic())

    def judge_with(
        self, job: Job, decompressor: Decompressor, memo: PolicyMemo, give_way: Callable[[], None]
    ) -> Dispatch:
        """For a judging thread: the whole of one job. Raises Abandoned."""
        limits = self._limits
        allowance = Allowance(limits.max_decompressed_bytes, limits.max_record_errors, give_way)
        request = job.request
        policy_of = self._policy_of(memo, job.client)
        judged = judge_request(
            request, self._names, policy_of, limits, self._now_ms, decompressor, allowance, self._previous, job.client
        )
        give_way()
        dispatch = self._dispatch(request, judged, give_way)
        if judged.to_quarantine:
            dispatch.dead_letters = take_out(request, judged, self._names, limits, decompressor, give_way, self._room)
        return dispatch

    def _policy_of(self, memo: PolicyMemo, client: Client | None) -> Callable[[str], TopicPolicy]:
        """What gives topics' policies as they hold for a client, by the rulebook that is in force now."""
        rulebook = self._rules.rulebook
        if client is not None and rulebook.exempts(client):
            return _exempt
        return memo.by(rulebook)

    def _dispatch(self, request: ProduceRequest, judged: JudgedRequest, give_way: Callable[[], None]) -> Dispatch:
        if judged.refused:
            return self._prepare(request, judged, give_way)
        if judged.fixed:
            return Dispatch(judged, None, request.with_records(records_of(judged.fixed)))
        return Dispatch(judged, None, _NO_PARTS)


class _Judge:
    """The judging thread. A job whose time is up judges what goes before it, in its place, and then goes on."""

    def __init__(self, judges: Judges) -> None:
        self._judges = judges
        self._decompressors: list[Decompressor] = []
        self._memos: list[PolicyMemo] = []

    def run(self) -> None:
        while self._judge_next():
            pass

    def _judge_next(self) -> bool:
        """Nothing of a request is kept while there is no other; False: there will be none."""
        job = self._judges.next_job()
        if job is None:
            return False
        self._judge(job, 0)
        return True

    def _judge(self, job: Job, depth: int) -> None:
        if depth == len(self._decompressors):
            self._decompressors.append(Decompressor())
            self._memos.append(PolicyMemo())
        turn = _TurnOf(self, job, depth)
        try:
            dispatch = self._judges.judge_with(job, self._decompressors[depth], self._memos[depth], turn.give_way)
        except Abandoned:
            job.future.cancel()
        except BaseException as error:  # whoever waits for it is told
            job.future.set_exception(error)
        else:
            job.future.set_result(dispatch)
        turn.end()
        if depth > 0:
            del self._decompressors[depth:]
            del self._memos[depth:]

    def others(self, job: Job, depth: int) -> None:
        """Judge what goes before `job`. Raises Abandoned."""
        while (other := self._judges.job_before(job.account)) is not None:
            self._judge(other, depth + 1)


class _TurnOf:
    """The time that a job takes, without that of those it makes room for."""

    def __init__(self, judge: _Judge, job: Job, depth: int) -> None:
        self._judge = judge
        self._job = job
        self._depth = depth
        self._short_turns = ShortTurns()
        self._since = monotonic()

    def give_way(self) -> None:
        """Raises Abandoned."""
        if self._job.is_abandoned:
            raise Abandoned
        self._short_turns.give_way()
        now = monotonic()
        if now - self._since < _TURN_SECONDS:
            return
        self._job.account.add(now - self._since, now)
        if self._depth < _MOST_NESTED:
            self._judge.others(self._job, self._depth)
        self._since = monotonic()

    def end(self) -> None:
        """The job is done."""
        now = monotonic()
        self._job.account.add(now - self._since, now)


def is_heavy(request: ProduceRequest) -> bool:
    """Whether judging surely takes more than a few milliseconds: many partitions, much to decompress or to scan."""
    size = len(request.frame)
    if size <= _LIGHT_BYTES:
        return False
    partitions = 0
    for topic in request.topics:
        partitions += len(topic.partitions)
    if partitions > _HEAVY_PARTITIONS:
        return True
    return size > _HEAVY_COMPRESSED_BYTES and _is_heavy_by_size(request)


def _is_heavy_by_size(request: ProduceRequest) -> bool:
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


class _Until:
    """On the loop a judgement ends when its time is over, and is begun anew in a thread."""

    def __init__(self, end: float) -> None:
        self._end = end

    def __call__(self) -> None:
        if monotonic() > self._end:
            raise OutOfTime


def _exempt(_topic: str) -> TopicPolicy:
    return EXEMPT


def _go_on() -> None:
    """What is to be said about a few partitions is soon made."""
