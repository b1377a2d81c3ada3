"""A request's data are freed as soon as the request has failed, without the cycle collector.

The frames in the traceback of an error that a future keeps must not refer to that future.
"""

import gc
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from sluicegate.proxy.registry.confluent_api import SchemaText
from sluicegate.proxy.registry.http import JsonResponse, RegistryFailed
from sluicegate.proxy.registry.schema_compiler import CompiledSchema
from sluicegate.proxy.registry.schema_registry import SchemaRegistry
from sluicegate.proxy.scheduling.wait_budget import WaitBudget
from sluicegate.validation.rules.rule import Outage
from tests.broker.eventually import eventually
from tests.registry.test_schema_registry import LONG, ScriptedRegistry


class ReadContents:
    """The data of a request."""


def fail_with_contents(request: Callable[[], object]) -> "weakref.ref[ReadContents]":
    contents = ReadContents()
    with suppress(Outage):
        request()
        raise AssertionError("it has not failed")
    return weakref.ref(contents)


def raise_outage(_text: SchemaText) -> CompiledSchema:
    raise Outage("the rules process is starting")


class RefusingRegistry(ScriptedRegistry):
    """A registry that raises a new error each time, which only the caller keeps."""

    def get(self, path: str) -> JsonResponse:
        raise RegistryFailed("connection refused")


def failing_look_up(_: ScriptedRegistry) -> Callable[[], object]:
    registry = SchemaRegistry("main", RefusingRegistry())
    return lambda: registry.schema(7)


def failing_subject_look_up(_: ScriptedRegistry) -> Callable[[], object]:
    registry = SchemaRegistry("main", RefusingRegistry())
    return lambda: registry.is_registered_under(7, "orders-value")


def late_look_up(http: ScriptedRegistry) -> Callable[[], object]:
    http.gate = threading.Event()
    registry = SchemaRegistry("main", http, wait_seconds=0.01)
    return lambda: registry.schema(7)


def evaluation_over_budget(http: ScriptedRegistry) -> Callable[[], object]:
    http.gate = threading.Event()
    budget = WaitBudget()
    registry = SchemaRegistry("main", http, wait_budget=budget)

    def request_over_budget() -> None:
        with budget.limit_waiting(0.01, held_lock(), "client"):
            registry.schema(7)

    return request_over_budget


def held_lock() -> threading.Lock:
    lock = threading.Lock()
    lock.acquire()
    return lock


def evaluation_with_fault(http: ScriptedRegistry) -> Callable[[], object]:
    http.answers["/schemas/ids/7"] = ZeroDivisionError()
    registry = SchemaRegistry("main", http)
    return lambda: registry.schema(7)


def failing_compilation(http: ScriptedRegistry) -> Callable[[], object]:
    http.answers["/schemas/ids/7"] = LONG
    registry = SchemaRegistry("main", http, compiler=raise_outage)
    return lambda: registry.schema(7)


@pytest.mark.parametrize(
    "make",
    [
        failing_look_up,
        failing_subject_look_up,
        late_look_up,
        evaluation_over_budget,
        evaluation_with_fault,
        failing_compilation,
    ],
)
def test_failed_look_up_keeps_no_reference_to_the_request(
    make: Callable[[ScriptedRegistry], Callable[[], object]],
) -> None:
    http = ScriptedRegistry()
    request = make(http)

    gc.disable()
    try:
        contents = fail_with_contents(request)
        if http.gate is not None:
            http.gate.set()
        eventually(lambda: contents() is None, seconds=5)
    finally:
        gc.enable()


def test_requests_that_wait_for_one_compiler_keep_no_reference_to_each_other() -> None:
    http = ScriptedRegistry()
    http.answers["/schemas/ids/7"] = LONG
    begun, going_on = threading.Event(), threading.Event()

    def compile_late(_text: SchemaText) -> CompiledSchema:
        begun.set()
        going_on.wait(30)
        raise Outage("the rules process is starting")

    registry = SchemaRegistry("main", http, compiler=compile_late)
    gc.disable()
    try:
        with ThreadPoolExecutor(2) as threads:
            first = threads.submit(fail_with_contents, lambda: registry.schema(7))
            begun.wait(30)
            second = threads.submit(fail_with_contents, lambda: registry.schema(7))
            eventually(lambda: len(http.asked) == 1)
            going_on.set()
            contents = [first.result(30), second.result(30)]
        assert [each() for each in contents] == [None, None]
    finally:
        gc.enable()
