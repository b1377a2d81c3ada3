"""A registry that does not respond is reported with the reason and the waiting clients, until it responds again."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from sluicegate.config.loading import config_of
from sluicegate.proxy.registry.failed_look_ups import FailedLookUps, LookUp
from sluicegate.proxy.registry.survey import SurveyResult
from sluicegate.proxy.registry.waiting_records import WaitingRecords
from sluicegate.proxy.reporting.waiting_clients import WaitingClients, WaitingNames
from sluicegate.proxy.server.registry_watch import RegistryWatch
from sluicegate.proxy.server.schema_watch import SchemaWatch
from sluicegate.proxy.status.condition import Condition
from sluicegate.proxy.status.status import Status
from tests.clock import Clock


class ScriptedRegistries:
    """Registries with the failures that a test sets."""

    def __init__(self) -> None:
        self.found: dict[str, dict[LookUp, str]] = {}
        self.repeated = 0

    def failing(self) -> dict[str, dict[LookUp, str]]:
        return {name: dict(kinds) for name, kinds in self.found.items()}

    def repeat_failed(self) -> None:
        self.repeated += 1


class ScriptedSurvey:
    def __init__(self) -> None:
        self.failures: dict[str, str] = {}


@pytest.fixture
def registries() -> ScriptedRegistries:
    return ScriptedRegistries()


@pytest.fixture
def waiting() -> WaitingRecords:
    return WaitingRecords()


@pytest.fixture
def survey() -> ScriptedSurvey:
    return ScriptedSurvey()


@pytest.fixture
def conditions_after_update(registries: Any, waiting: WaitingRecords, survey: Any) -> Callable[[], Mapping[str, str]]:
    """Return a function that updates the conditions and returns their texts by subject."""
    status = Status()
    status.end(Condition.STARTING)
    watch = RegistryWatch(registries, waiting, status, survey)

    def conditions_after_update() -> dict[str, str]:
        watch.update_conditions()
        return {each.subject: each.text for each in status.active()}

    return conditions_after_update


def waiting_client(name: str, topic: str) -> WaitingNames:
    return WaitingNames(frozenset({name}), frozenset({topic}))


def test_condition_names_failing_registry_reason_topics_and_waiting_clients(
    registries: ScriptedRegistries, waiting: WaitingRecords, conditions_after_update: Callable[[], Mapping[str, str]]
) -> None:
    registries.found = {"main": {LookUp.SCHEMA: "Connection refused"}}
    waiting.add("main", waiting_client("billing from 10.0.0.1", "orders"))
    waiting.add("main", waiting_client("shop from 10.0.0.2", "refunds"))
    waiting.add("main", waiting_client("billing from 10.0.0.1", "orders"))

    assert conditions_after_update() == {
        "main": "registry main has no usable response for schemas by id and their references: Connection refused; "
        "2 clients wait (billing from 10.0.0.1, shop from 10.0.0.2), topics orders, refunds"
    }
    assert registries.repeated == 1
    registries.found = {}
    assert conditions_after_update() == {}


def test_waiting_clients_are_forgotten_once_the_registry_responds(
    registries: ScriptedRegistries, waiting: WaitingRecords, conditions_after_update: Callable[[], Mapping[str, str]]
) -> None:
    registries.found = {"main": {LookUp.SCHEMA: "Connection refused"}}
    waiting.add("main", waiting_client("billing from 10.0.0.1", "orders"))
    conditions_after_update()
    registries.found = {}
    conditions_after_update()
    registries.found = {"main": {LookUp.SCHEMA: "Connection refused"}}

    assert conditions_after_update()["main"].endswith("; no client waits")


def test_condition_names_all_failing_kinds_of_look_ups(
    registries: ScriptedRegistries, survey: ScriptedSurvey, conditions_after_update: Callable[[], Mapping[str, str]]
) -> None:
    registries.found = {"main": {LookUp.SCHEMA: "Connection refused", LookUp.SUBJECT: "Connection refused"}}
    survey.failures = {"main": "the registry failed (HTTP 500)", "other": "the registry failed (HTTP 500)"}

    found = conditions_after_update()
    assert found["main"].startswith(
        "registry main has no usable response for schemas by id and their references and the subjects of a schema: "
        "Connection refused; the newest schemas of subjects: the registry failed (HTTP 500)"
    )
    assert found["other"].startswith("registry other has no usable response for the newest schemas of subjects: ")


def test_look_up_failure_is_reported_after_3_s_until_look_up_of_same_kind_succeeds() -> None:
    clock = Clock()
    failures = FailedLookUps(clock)
    failures.failed((LookUp.SCHEMA, 1), int, "Connection refused")
    clock.now += 2.9
    assert failures.lasting() == {}
    failures.failed((LookUp.SCHEMA, 2), int, "no response within 2 s")
    clock.now += 0.1

    assert failures.lasting() == {LookUp.SCHEMA: "no response within 2 s"}
    assert [wanted for wanted, _ in failures.look_ups()] == [(LookUp.SCHEMA, 2)]
    failures.succeeded(LookUp.SUBJECT)
    assert failures.lasting() == {LookUp.SCHEMA: "no response within 2 s"}
    failures.succeeded(LookUp.SCHEMA)
    assert failures.lasting() == {}


def test_client_without_a_retry_for_60_s_no_longer_counts_as_waiting() -> None:
    clock = Clock()
    clients = WaitingClients(clock)
    clients.add(waiting_client("billing", "orders"))
    clock.now += 30
    clients.add(waiting_client("shop", "orders"))
    clock.now += 31

    assert clients.now() == waiting_client("shop", "orders")
    clients.remove(waiting_client("shop", "orders"))
    assert str(clients.now()) == "no client waits"


def test_numbers_of_stored_and_of_named_waiting_clients_are_bounded() -> None:
    clients = WaitingClients(Clock())
    for number in range(2000):
        clients.add(waiting_client(f"client-{number}", "orders"))

    assert str(clients.now()) == (
        "1000 clients wait (client-1000, client-1001, client-1002 and 997 more), topic orders"
    )


def test_survey_failures_exclude_failures_of_the_rules_process() -> None:
    watch = SchemaWatch(
        config_of({"upstream": {"bootstrap": ["127.0.0.1:1"]}, "listen": {"bootstrap": "127.0.0.1:2"}}), Status()
    )
    watch.learn(
        [
            SurveyResult("main", 0, (), failure="registry main is unavailable: refused", unreachable="refused"),
            SurveyResult("other", 0, (), failure="the rules process is not available"),
        ]
    )
    assert watch.failures == {"main": "refused"}
