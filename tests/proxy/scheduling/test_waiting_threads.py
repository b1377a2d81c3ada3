"""A request with a pending look-up waits for a limited time, while all other requests are validated."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotInTime
from time import monotonic

import pytest

from sluicegate.protocol.produce_request import ProduceRequest, walk_produce_request
from sluicegate.proxy.responses.dispatch import Dispatch, dispatch_of
from sluicegate.proxy.responses.log_starts import LogStarts
from sluicegate.proxy.scheduling.fair_sharing import Account
from sluicegate.proxy.scheduling.scheduler import Scheduler
from sluicegate.proxy.scheduling.validation_thread import Job
from sluicegate.proxy.scheduling.wait_budget import WaitBudget, WaitBudgetExceeded
from sluicegate.proxy.scheduling.waiting_threads import MOST_THREADS
from sluicegate.validation.in_force import RulesInForce
from sluicegate.validation.policy import TopicPolicy, ValidationLimits
from sluicegate.validation.rulebook import FilePolicies, Rulebook
from sluicegate.validation.rules.rule import Client, NamedRule, Outage, Part, RuledRecord
from sluicegate.validation.rules.rule_set import RuleSet
from sluicegate.validation.validated_request import ValidatedRequest
from tests.broker.eventually import eventually
from tests.validation.rules.inline_rule import InlineRule
from tests.wire.batches import NONE, Rec, batch
from tests.wire.raw_client import produce_body, topic_data

NOW = 1_800_000_000_000
SECONDS = 30.0


class LookUpRule(InlineRule):
    """A rule that looks up values that begin with `?`; the test provides the results."""

    parts = Part.VALUE
    is_slow = True

    def __init__(self, wait_budget: WaitBudget) -> None:
        self.wait_budget = wait_budget
        self.answers: dict[bytes, Future[str | None]] = {}
        self.asked: list[bytes] = []

    def answer_for(self, value: bytes) -> "Future[str | None]":
        return self.answers.setdefault(value, Future())

    def fault(self, record: RuledRecord) -> str | None:
        value = record.value or b""
        if not value.startswith(b"?"):
            return None
        self.asked.append(value)
        try:
            return self.wait_budget.wait(self.answer_for(value), SECONDS)
        except (NotInTime, WaitBudgetExceeded) as error:
            raise Outage(type(error).__name__) from error


@pytest.fixture
def rule() -> LookUpRule:
    return LookUpRule(WaitBudget())


@pytest.fixture
def scheduler(rule: LookUpRule) -> Iterator[Scheduler]:
    def prepare_dispatch(
        request: ProduceRequest, validated: ValidatedRequest, give_way: Callable[[], None]
    ) -> Dispatch:
        return dispatch_of(request, validated, LogStarts(), NOW, give_way)

    policy = TopicPolicy(rules=RuleSet([NamedRule("looked-up", rule)]))
    rules = RulesInForce(Rulebook(FilePolicies(policy, ())))
    made = Scheduler(
        {}, rules, ValidationLimits(), lambda: NOW, prepare_dispatch, lambda _: None, wait_budget=rule.wait_budget
    )
    yield made
    made.close()


def submit_request(scheduler: Scheduler, *values: bytes, client: Client | None = None) -> Job:
    """Submit a request as from a separate connection."""
    data = batch([Rec(NOW, value=value) for value in values], NONE)
    request = walk_produce_request(bytearray(produce_body(9, [topic_data("t", (0, data))])), 9, 0, 10)
    return scheduler.submit(request, Account(), client)


def text_of(job: Job) -> str | None:
    rejected = job.future.result(timeout=SECONDS).validated.rejected
    return None if not rejected else str(rejected[0, 0])


def test_pending_look_up_does_not_delay_other_requests(scheduler: Scheduler, rule: LookUpRule) -> None:
    waiting = [submit_request(scheduler, b"?%d" % i) for i in range(3 * MOST_THREADS)]

    for _ in range(50):
        assert text_of(submit_request(scheduler, b"plain")) is None
    assert not any(job.future.done() for job in waiting)

    for i in range(3 * MOST_THREADS):
        rule.answer_for(b"?%d" % i).set_result(None if i % 2 else "it is odd")
    for i, job in enumerate(waiting):
        assert ("it is odd" in str(text_of(job))) is (i % 2 == 0)
    assert text_of(submit_request(scheduler, b"?0")) is not None, "cached results need no wait"


def waiting_threads() -> int:
    return sum(thread.name == "validate that waits" for thread in threading.enumerate())


def test_client_with_many_connections_leaves_waiting_threads_for_others(scheduler: Scheduler, rule: LookUpRule) -> None:
    many = [submit_request(scheduler, b"?%d" % i, client=Client(f"10.0.0.1:{i}")) for i in range(3 * MOST_THREADS)]
    eventually(lambda: waiting_threads() == MOST_THREADS // 2)

    rule.answer_for(b"?mine").set_result(None)
    for client in (Client("10.0.0.2:1"), Client("10.0.0.1:9", principal="User:alice")):
        assert text_of(submit_request(scheduler, b"plain", b"?mine", client=client)) is None
    other = submit_request(scheduler, b"?ours", client=Client("10.0.0.2:2"))
    eventually(lambda: waiting_threads() == MOST_THREADS // 2 + 1, what="a place for another client")
    rule.answer_for(b"?ours").set_result("it is bad")
    assert "it is bad" in str(text_of(other))
    assert not any(job.future.done() for job in many)

    for i in range(len(many)):
        rule.answer_for(b"?%d" % i).set_result(None)
    assert {text_of(job) for job in many} == {None}
    eventually(lambda: waiting_threads() == 0)


def test_all_waits_of_a_request_share_one_wait_budget(
    scheduler: Scheduler, rule: LookUpRule, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sluicegate.proxy.scheduling.waiting_threads.WAIT_BUDGET_SECONDS", 0.5)
    values = [b"?%d" % i for i in range(100)]
    began = monotonic()
    job = submit_request(scheduler, *values)
    answering = threading.Thread(target=_response_slowly, args=(rule, values, job))
    answering.start()

    assert "WaitBudgetExceeded" in str(text_of(job))
    assert monotonic() - began < 10
    answering.join()
    assert 2 < len(set(rule.asked)) < 100


def _response_slowly(rule: LookUpRule, values: list[bytes], job: Job) -> None:
    pause = threading.Event()
    for value in values:
        if job.future.done():
            return
        pause.wait(0.1)
        rule.answer_for(value).set_result(None)


def test_validation_is_cancelled_when_its_client_closes(scheduler: Scheduler, rule: LookUpRule) -> None:
    job = submit_request(scheduler, b"?1")
    while not rule.asked:
        threading.Event().wait(0.001)
    scheduler.abandon(job)
    rule.answer_for(b"?1").set_result(None)

    while not job.future.done():
        threading.Event().wait(0.001)
    assert job.future.cancelled()


def test_wait_outside_of_a_job_lasts_the_requested_timeout() -> None:
    with pytest.raises(NotInTime):
        WaitBudget().wait(Future(), 0.01)
