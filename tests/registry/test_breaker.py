"""A registry that keeps failing gets fewer requests, and this is logged. An internal error counts as an outage too."""

import pytest

from sluicegate.proxy.registry.breaker import Breaker
from sluicegate.proxy.registry.http import RegistryFailed
from sluicegate.proxy.registry.schema_registry import SchemaRegistry
from sluicegate.validation.rules.rule import Outage, StepBudget
from tests.broker.eventually import eventually
from tests.clock import Clock
from tests.registry.test_schema_registry import LONG, ScriptedRegistry


class RecordedReports:
    """Stores all reports."""

    def __init__(self) -> None:
        self.failures = 0
        self.lines: list[str] = []
        self.faults: list[Exception] = []

    def failed(self, registry: str) -> None:
        self.failures += 1

    def backoff_started(self, registry: str, failures: int, reason: str) -> None:
        self.lines.append(f"{registry} backed off after {failures}: {reason}")

    def recovered(self, registry: str, seconds: float) -> None:
        self.lines.append(f"{registry} recovered after {seconds:g} s")

    def changed(self, registry: str, schema_id: str, *, is_absent: bool) -> None:
        self.lines.append(f"{registry} has {'no schema' if is_absent else 'another schema'} {schema_id}")

    def count_encrypted(self, registry: str, part: str) -> None:
        self.lines.append(f"{registry} has {part}")

    def fault(self, registry: str, error: Exception) -> None:
        self.faults.append(error)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def recorded_reports() -> RecordedReports:
    return RecordedReports()


def seconds_until_allowed(breaker: Breaker, clock: Clock) -> float:
    """Let the pause for requests pass and return its length (s)."""
    began = clock.now
    while breaker.blocks_requests:
        clock.now += 0.125
    return clock.now - began


def test_breaker_backs_off_exponentially_and_logs_once(clock: Clock, recorded_reports: RecordedReports) -> None:
    breaker = Breaker("main", clock, recorded_reports)
    rests = []
    for _ in range(8):
        breaker.request_started()
        breaker.request_failed("connection rejected")
        rests.append(seconds_until_allowed(breaker, clock))
    assert rests == [1, 1, 2, 4, 8, 15, 15, 15]
    assert recorded_reports.failures == 8
    assert recorded_reports.lines == ["main backed off after 3: connection rejected"]

    breaker.request_started()
    breaker.request_succeeded()
    assert not breaker.has_last_failed
    assert recorded_reports.lines[1:] == [f"main recovered after {sum(rests):g} s"]

    breaker.request_started()
    breaker.request_failed("again")
    assert seconds_until_allowed(breaker, clock) == 1, "the count starts again"


def test_failed_look_up_for_many_waiting_records_counts_as_one_failure(
    clock: Clock, recorded_reports: RecordedReports
) -> None:
    breaker = Breaker("main", clock, recorded_reports)
    breaker.request_started()
    for _ in range(16):
        breaker.request_failed("no response within 2 s")
    breaker.request_failed("no response within 10 s")

    assert (recorded_reports.failures, recorded_reports.lines, seconds_until_allowed(breaker, clock)) == (1, [], 1)


def test_unavailable_registry_is_retried_rarely_until_it_recovers(
    clock: Clock, recorded_reports: RecordedReports
) -> None:
    http = ScriptedRegistry()
    registry = SchemaRegistry("main", http, 60, 30, clock, reports=recorded_reports)
    http.answers["/schemas/ids/1"] = RegistryFailed("connection rejected")

    for _ in range(600):  # ten minutes with one look-up per second
        with pytest.raises(Outage, match="registry main is unavailable: connection rejected"):
            registry.schema(1)
        eventually(lambda: registry._fetcher.is_idle)
        clock.now += 1
    assert 600 / 16 < len(http.asked) < 600 / 15 + 6
    assert len(http.asked) == recorded_reports.failures
    assert recorded_reports.lines == ["main backed off after 3: connection rejected"]

    http.answers["/schemas/ids/1"] = LONG
    clock.now += 15
    with pytest.raises(Outage):  # the response to this request counts for all others
        registry.schema(1)
    eventually(lambda: not registry._breaker.has_last_failed)
    assert registry.schema(1).content.fault(b"\x02", StepBudget()) is None
    assert "recovered" in recorded_reports.lines[-1]


@pytest.mark.parametrize(
    "bug", [KeyError("swordfish"), RecursionError(), OSError("x"), UnicodeDecodeError("a", b"", 0, 1, "b")]
)
def test_internal_error_in_a_look_up_raises_an_outage_that_hides_its_message(
    bug: Exception, clock: Clock, recorded_reports: RecordedReports
) -> None:
    http = ScriptedRegistry()
    registry = SchemaRegistry("main", http, 60, 30, clock, reports=recorded_reports)
    http.answers["/schemas/ids/1"] = http.answers["/schemas/ids/2/versions"] = bug

    with pytest.raises(Outage, match=rf"internal error in sluicegate \({type(bug).__name__} at \w+\.py:\d+\)") as told:
        registry.schema(1)
    assert "swordfish" not in str(told.value)
    clock.now += 1.1
    with pytest.raises(Outage):
        registry.is_registered_under(2, "orders-value")
    eventually(lambda: recorded_reports.faults == [bug, bug])
    assert http.asked == ["/schemas/ids/1", "/schemas/ids/2/versions"]

    http.answers["/schemas/ids/1"] = LONG
    clock.now += 1.1
    with pytest.raises(Outage):
        registry.schema(1)
    eventually(lambda: not registry._breaker.has_last_failed)
    assert registry.schema(1).content.fault(b"\x02", StepBudget()) is None


@pytest.mark.parametrize("part", ["_schemas", "_subjects", "_fetcher", "_wait_budget", "_breaker"])
def test_internal_error_in_any_registry_client_part_raises_an_outage(
    part: str, clock: Clock, recorded_reports: RecordedReports
) -> None:
    class BrokenRegistry:
        def __getattr__(self, name: str) -> object:
            raise ZeroDivisionError(name)

    registry = SchemaRegistry("main", ScriptedRegistry(), 60, 30, clock, reports=recorded_reports)
    setattr(registry, part, BrokenRegistry())

    outages = 0
    for ask in (lambda: registry.schema(1), lambda: registry.is_registered_under(1, "orders-value")):
        try:
            ask()
        except Outage as outage:
            outages += 1
            assert "internal error in sluicegate (ZeroDivisionError" in str(outage)
        except Exception as other:  # the only method that does not need this part
            assert type(other).__name__ == "UnknownSchema"
    assert outages == len(recorded_reports.faults) > 0
