"""Validates requests on the event loop if that takes little time, otherwise in a thread.

The loop's time for validation between two polls is limited for all connections together. If a request exceeds the
limit, a thread validates it again (`sluicegate.proxy.scheduling.validation_thread`).
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import Any

from sluicegate.protocol.produce_request import ProduceRequest
from sluicegate.protocol.produce_versions import ONE_BATCH_SINCE
from sluicegate.protocol.records.codecs.decompression import Decompressor
from sluicegate.protocol.records.codecs.decompression_budget import DecompressionBudget, OutOfTime
from sluicegate.protocol.records.record_batch import CODEC_MASK, HEADER_BYTES, attributes_low_byte
from sluicegate.protocol.records.record_limit import check_record_count
from sluicegate.proxy.responses.dispatch import Dispatch
from sluicegate.proxy.scheduling.extraction import QuarantineMemory, extract_bad_records
from sluicegate.proxy.scheduling.fair_sharing import Account
from sluicegate.proxy.scheduling.validation_thread import ANY_SIZE, MOST_HELD_BYTES, Job, ValidationThread, settle
from sluicegate.proxy.scheduling.wait_budget import CpuTimeAllowance, WaitBudget, WaitNotAllowed
from sluicegate.proxy.scheduling.waiting_threads import MOST_COSTLY_THREADS, WaitingThreads
from sluicegate.validation.dispositions.fixes import Previous
from sluicegate.validation.in_force import PolicyMemo, RulesInForce
from sluicegate.validation.policy import TopicPolicy, ValidationLimits
from sluicegate.validation.previous_times import PreviousTimes
from sluicegate.validation.produce.conversion import convert_request
from sluicegate.validation.produce.request import validate_request
from sluicegate.validation.rules.rule import Client
from sluicegate.validation.validated_request import Place, ValidatedRequest
from sluicegate.validation.verdict import Verdict

_HEAVY_PARTITIONS = 200
_LIGHT_BYTES = 1024  # a request up to this size cannot name more partitions
_HEAVY_COMPRESSED_BYTES = 512 * 1024
_HEAVY_PLAIN_BYTES = 4 * 1024 * 1024


def is_heavy(request: ProduceRequest) -> bool:
    """Return whether a request has many partitions, much to decompress or much to scan."""
    size = len(request.frame)
    if size <= _LIGHT_BYTES:
        return False
    if sum(len(topic.partitions) for topic in request.topics) > _HEAVY_PARTITIONS:
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


# This number is limited, because building many rejections takes time too.
_MOST_REJECTED_ON_THE_LOOP = 20
# The loop validates this many bytes, including decompressed ones, before it polls its sockets again.
_LOOP_TURN_BYTES = 8 * 1024 * 1024
_LOOP_REQUEST_BYTES = 4 * 1024 * 1024
# The number of bytes that are validated without interruption.
_LOOP_AT_ONCE_BYTES = 64 * 1024
# The time limit for one request on the loop.
_LOOP_REQUEST_SECONDS = 0.003
# The time limit for building a dispatch on the loop.
_LOOP_MAKING_SECONDS = 0.03

Prepare = Callable[[ProduceRequest, ValidatedRequest, Callable[[], None]], Dispatch]
"""Builds the dispatch for a verdict with rejections. The last argument is a function that yields to other threads."""


class Scheduler:
    """Validates each request by the rules in force when its validation starts.

    `call_soon` runs a function after the loop has polled its sockets. `room` is the memory for bad records.
    `wait_budget` limits the waits of rules that look something up. If `converts_legacy` is true, a thread converts
    requests of Produce v0 to v2 to v3 before it validates them.
    """

    def __init__(
        self,
        names: Mapping[bytes, str],
        rules: RulesInForce,
        limits: ValidationLimits,
        now_ms: Callable[[], int],
        prepare: Prepare,
        call_soon: Callable[[Callable[[], None]], Any],
        room: QuarantineMemory | None = None,
        wait_budget: WaitBudget | None = None,
        seconds: Callable[[], float] = monotonic,
        converts_legacy: bool = False,
    ) -> None:
        self._names = names
        self._seconds = seconds
        self.converts_legacy = converts_legacy
        self._rules = rules
        self._limits = limits
        self._now_ms = now_ms
        self._prepare = prepare
        self._call_soon = call_soon
        self._room = room if room is not None else QuarantineMemory(0)
        self._wait_budget = wait_budget = wait_budget if wait_budget is not None else WaitBudget()
        self._decompressor = Decompressor()
        self._memo = PolicyMemo()
        self.previous = PreviousTimes()
        self._loop_left = _LOOP_TURN_BYTES
        self._loop_most = min(_LOOP_REQUEST_BYTES, limits.max_decompressed_bytes)
        self._loop_turn_ends = False
        self._large_room: WaitingThreads[Job] = WaitingThreads(
            self._validate_large, wait_budget, CpuTimeAllowance.REST, 1
        )
        self._costly_room: WaitingThreads[Job] = WaitingThreads(
            self._validate_costly, wait_budget, CpuTimeAllowance.REST, MOST_COSTLY_THREADS
        )
        self._waiting_room: WaitingThreads[Job] = WaitingThreads(
            self._validate_waiting, wait_budget, CpuTimeAllowance.SLICE
        )
        self._thread = ValidationThread(self._validate_whole, self._waiting_room.add, wait_budget)

    def validate(
        self, request: ProduceRequest, client: Client | None = None, previous: Previous | None = None
    ) -> Dispatch | None:
        """Return a request's dispatch, or None if it needs a thread. Only for the event loop's thread.

        `client` is the sender, if the rulebook depends on it. `previous` contains the partitions' previous times. If it
        is None, all known times are used. Raises PreviousTimeInFlight, as does the future of `submit`.
        """
        size = len(request.frame)
        if self._loop_left < size or is_heavy(request) or self.must_convert(request):
            return None
        most = min(self._loop_left - size, self._loop_most)
        until = _Until(self._seconds, _LOOP_REQUEST_SECONDS)
        limits = self._limits
        budget = DecompressionBudget(
            most,
            limits.max_record_errors,
            until,
            _LOOP_AT_ONCE_BYTES,
            limits.max_request_headers,
            _LOOP_AT_ONCE_BYTES,
        )
        validated: ValidatedRequest | None = None
        with suppress(OutOfTime, WaitNotAllowed), self._wait_budget.never_waiting():
            validated = validate_request(
                request,
                self._names,
                self._policy_of(self._memo, client),
                limits,
                self._now_ms,
                self._decompressor,
                budget,
                previous if previous is not None else self.previous,
                client,
            )
        self._loop_left -= size + most - budget.plain_left
        if self._loop_left < _LOOP_TURN_BYTES // 2 and not self._loop_turn_ends:
            self._loop_turn_ends = True
            self._call_soon(self._next_loop_turn)
        if validated is None or budget.exhausted or len(validated.rejected) > _MOST_REJECTED_ON_THE_LOOP:
            return None
        if validated.to_quarantine:
            return None
        with suppress(OutOfTime):
            return self._dispatch(request, validated, _Until(self._seconds, _LOOP_MAKING_SECONDS))
        return None

    def submit(
        self,
        request: ProduceRequest,
        account: Account,
        client: Client | None = None,
        previous: Previous | None = None,
    ) -> Job:
        """Validate a request in a thread. `client` and `previous` have the same meaning as for `validate`."""
        job = Job(request, account, client, previous)
        self._thread.add(job)
        return job

    def abandon(self, job: Job) -> None:
        """Cancel a job. A waiting job never starts, and a running job ends soon."""
        self._thread.abandon(job)

    def close(self) -> None:
        """Start no more jobs, and end those that are running."""
        self._thread.close()
        self._waiting_room.close()
        self._costly_room.close()
        self._large_room.close()

    def _next_loop_turn(self) -> None:
        self._loop_left = _LOOP_TURN_BYTES
        self._loop_turn_ends = False

    def _validate_waiting(self, job: Job, give_way: Callable[[], None]) -> None:
        """Validate a job in a waiting thread.

        A job whose rules need more than a slice of CPU time moves to another thread, so that it does not delay others.
        """
        try:
            self._validate_costly(job, give_way)
        except WaitNotAllowed:
            self._costly_room.add(job)

    def _validate_costly(self, job: Job, give_way: Callable[[], None]) -> None:
        """Validate a costly job.

        Jobs with large records are validated one at a time, so that memory holds only one such record.
        """
        try:
            self._settle(job, give_way, MOST_HELD_BYTES)
        except OutOfTime:
            self._large_room.add(job)

    def _validate_large(self, job: Job, give_way: Callable[[], None]) -> None:
        self._settle(job, give_way, ANY_SIZE)

    def _settle(self, job: Job, give_way: Callable[[], None], most_held: int) -> None:
        settle(job, partial(self._validate_whole, job, Decompressor(), PolicyMemo(), give_way, most_held))

    def _validate_whole(
        self,
        job: Job,
        decompressor: Decompressor,
        memo: PolicyMemo,
        give_way: Callable[[], None],
        most_held: int,
    ) -> Dispatch:
        """Validate a whole job in a thread, with at most `most_held` bytes of one record in memory.

        Raises Abandoned, and OutOfTime if a record is larger.
        """
        limits = self._limits
        budget = DecompressionBudget(
            limits.max_decompressed_bytes,
            limits.max_record_errors,
            give_way,
            most_headers=limits.max_request_headers,
            most_held=most_held,
        )
        request, conversion = job.request, None
        settled: Mapping[Place, Verdict] = {}
        policy_of = self._policy_of(memo, job.client)
        if self.must_convert(request):
            conversion = convert_request(request, policy_of, limits, self._now_ms, decompressor, budget)
            request, settled = conversion.request, conversion.settled
            check_record_count(request, limits.max_request_records)
        previous = job.previous if job.previous is not None else self.previous
        validated = validate_request(
            request, self._names, policy_of, limits, self._now_ms, decompressor, budget, previous, job.client, settled
        )
        give_way()
        dispatch = self._dispatch(request, validated, give_way)
        dispatch.conversion = conversion
        if validated.to_quarantine:
            dispatch.dead_letters = extract_bad_records(
                request, validated, self._names, limits, decompressor, give_way, self._room
            )
        return dispatch

    def must_convert(self, request: ProduceRequest) -> bool:
        """Return whether a request must be converted to a version that newer brokers accept."""
        return self.converts_legacy and request.version < ONE_BATCH_SINCE

    def _policy_of(self, memo: PolicyMemo, client: Client | None) -> Callable[[str], TopicPolicy]:
        """Return a function that maps topics to policies for this client, by the current rulebook."""
        rulebook = self._rules.rulebook
        policy_of = memo.policies_by(rulebook)
        if client is not None and rulebook.exempts(client):
            return lambda topic: policy_of(topic).for_exempt()
        if client is None or not rulebook.in_file.varies_by_client:
            return policy_of
        return lambda topic: policy_of(topic).for_client(client)

    def _dispatch(self, request: ProduceRequest, validated: ValidatedRequest, give_way: Callable[[], None]) -> Dispatch:
        if validated.rejected or validated.to_quarantine:
            return self._prepare(request, validated, give_way)
        if changed := validated.replacements():
            return Dispatch(validated, None, partial(request.with_records, changed))
        return Dispatch(validated, None, None)


class _Until:
    """Ends a validation on the loop at its time limit. The validation then starts again in a thread."""

    def __init__(self, seconds: Callable[[], float], limit: float) -> None:
        self._seconds = seconds
        self._end = seconds() + limit

    def __call__(self) -> None:
        if self._seconds() > self._end:
            raise OutOfTime
