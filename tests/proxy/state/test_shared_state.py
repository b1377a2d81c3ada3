"""Changes of topic settings always get a response, with the reason if they are not stored."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from structlog.testing import capture_logs

from sluicegate.config.loading import config_of
from sluicegate.proxy.reporting.write_health import WriteHealth
from sluicegate.proxy.session.topic_settings import Requester, SettingsChange, StoreFailure
from sluicegate.proxy.state.shared_state import SharedState
from sluicegate.proxy.state.state_topic import StateUnwritable
from sluicegate.proxy.status.status import Status

ID = bytes(range(16))
CHANGES = [SettingsChange(topic, ID, {"sluicegate.owner": "payments"}) for topic in ("orders", "payments")]
REQUESTER = Requester("terraform", "192.0.2.1:50000")


@pytest.fixture
def shared() -> SharedState:
    """Return the shared state of a proxy that has not started to read it."""
    config = config_of(
        {
            "upstream": {"bootstrap": "127.0.0.1:1"},
            "listen": {"bootstrap": "127.0.0.1:0", "broker_port_base": 29_000},
            "state": {"topic": "state"},
        }
    )
    assert config.state is not None
    nothing: Callable[..., Any] = lambda *_: None  # noqa: E731
    return SharedState(config.state, config.upstream, "a", nothing, Status(), WriteHealth(), nothing, nothing)


@pytest.mark.internal_error
def test_unexpected_error_is_returned_for_each_topic_and_logged(shared: SharedState) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("42")

    shared.commit = fail
    with capture_logs() as lines:
        failed = shared.change_settings(CHANGES, REQUESTER, 1)

    assert failed == dict.fromkeys(("orders", "payments"), StoreFailure("internal error: ZeroDivisionError", False))
    (line,) = lines
    assert (line["log_level"], line["event"]) == ("error", "internal error: topic settings not stored")
    assert isinstance(line["exc_info"], ZeroDivisionError)


@pytest.mark.internal_error
def test_a_change_after_an_unexpected_error_is_stored(shared: SharedState) -> None:
    """The lock for one call at a time is free again."""
    stored: list[Any] = []

    def fail_once(changes: Sequence[Any], _: float) -> None:
        shared.commit = lambda changes, _: stored.extend(changes)
        raise ZeroDivisionError

    shared.commit = fail_once
    shared.change_settings(CHANGES, REQUESTER, 1)

    assert shared.change_settings(CHANGES, REQUESTER, 1) == {}
    assert [change.operation.topic for change in stored] == ["orders", "payments"]


@pytest.mark.parametrize("is_temporary", [True, False])
def test_unwritable_state_topic_is_returned_as_reason_for_each_topic(shared: SharedState, is_temporary: bool) -> None:
    def refuse(*_: object) -> None:
        raise StateUnwritable("state.topic state cannot be written: no leader", is_temporary)

    shared.commit = refuse

    failed = shared.change_settings(CHANGES, REQUESTER, 1)

    why = StoreFailure("state.topic state cannot be written: no leader", is_temporary)
    assert failed == dict.fromkeys(("orders", "payments"), why)


def test_change_waits_for_concurrent_changes_for_a_limited_time(shared: SharedState) -> None:
    begun, may_end = threading.Event(), threading.Event()

    def wait(*_: object) -> None:
        begun.set()
        assert may_end.wait(30)

    shared.commit = wait
    first = threading.Thread(target=shared.change_settings, args=(CHANGES, REQUESTER, 30))
    first.start()
    try:
        assert begun.wait(30)
        failed = shared.change_settings(CHANGES, REQUESTER, 0.01)
    finally:
        may_end.set()
        first.join()

    assert [each.is_temporary for each in failed.values()] == [True, True]
    assert shared.change_settings(CHANGES, REQUESTER, 1) == {}
