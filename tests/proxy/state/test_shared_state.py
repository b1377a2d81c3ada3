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
def unread_shared_state() -> SharedState:
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
def test_unexpected_error_is_returned_for_each_topic_and_logged(unread_shared_state: SharedState) -> None:
    def raise_zero_division(*_: object) -> None:
        raise ZeroDivisionError("42")

    unread_shared_state.commit = raise_zero_division
    with capture_logs() as lines:
        failed = unread_shared_state.change_settings(CHANGES, REQUESTER, 1)

    assert failed == dict.fromkeys(("orders", "payments"), StoreFailure("internal error: ZeroDivisionError", False))
    (line,) = lines
    assert (line["log_level"], line["event"]) == ("error", "internal error: topic settings not stored")
    assert isinstance(line["exc_info"], ZeroDivisionError)


@pytest.mark.internal_error
def test_a_change_after_an_unexpected_error_is_stored(unread_shared_state: SharedState) -> None:
    """The lock for one call at a time is free again."""
    stored: list[Any] = []

    def fail_once(changes: Sequence[Any], _: float) -> None:
        unread_shared_state.commit = lambda changes, _: stored.extend(changes)
        raise ZeroDivisionError

    unread_shared_state.commit = fail_once
    unread_shared_state.change_settings(CHANGES, REQUESTER, 1)

    assert unread_shared_state.change_settings(CHANGES, REQUESTER, 1) == {}
    assert [change.operation.topic for change in stored] == ["orders", "payments"]


@pytest.mark.parametrize("is_temporary", [True, False])
def test_unwritable_state_topic_is_returned_as_reason_for_each_topic(
    unread_shared_state: SharedState, is_temporary: bool
) -> None:
    def raise_state_unwritable(*_: object) -> None:
        raise StateUnwritable("state.topic state cannot be written: no leader", is_temporary)

    unread_shared_state.commit = raise_state_unwritable

    failed = unread_shared_state.change_settings(CHANGES, REQUESTER, 1)

    why = StoreFailure("state.topic state cannot be written: no leader", is_temporary)
    assert failed == dict.fromkeys(("orders", "payments"), why)


def test_change_waits_for_concurrent_changes_for_a_limited_time(unread_shared_state: SharedState) -> None:
    begun, may_end = threading.Event(), threading.Event()

    def wait(*_: object) -> None:
        begun.set()
        assert may_end.wait(30)

    unread_shared_state.commit = wait
    first = threading.Thread(target=unread_shared_state.change_settings, args=(CHANGES, REQUESTER, 30))
    first.start()
    try:
        assert begun.wait(30)
        failed = unread_shared_state.change_settings(CHANGES, REQUESTER, 0.01)
    finally:
        may_end.set()
        first.join()

    assert [each.is_temporary for each in failed.values()] == [True, True]
    assert unread_shared_state.change_settings(CHANGES, REQUESTER, 1) == {}
