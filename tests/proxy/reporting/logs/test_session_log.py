"""Log lines of connections are aggregated and cut; internal errors are logged in full, but rarely."""

import pytest
from structlog.testing import capture_logs

from sluicegate.protocol.errors import MalformedMessage
from sluicegate.proxy.reporting.logs.session_log import SessionLog
from sluicegate.proxy.session.client.identity import ClientIdentity, LoginFailure

ALICE = ClientIdentity("10.0.0.1:5000", "billing")


def caught_error(text: str) -> Exception:
    try:
        raise ValueError(text)
    except ValueError as error:
        return error


def test_login_failures_with_huge_names_are_logged_in_short_lines() -> None:
    log = SessionLog()
    with capture_logs() as lines:
        for i in range(200):
            failure = LoginFailure("PLAIN", f"User:{i}" + "x" * 500_000, "wrong password " + "y" * 500_000)
            log.login_rejected(ClientIdentity("10.0.0.1:5", "c" * 30_000), failure)
        log.flush()

    assert sum(len(str(line)) for line in lines) < 300_000
    assert "characters)" in lines[0]["principal"]


def test_excess_distinct_reasons_are_merged_into_one_line() -> None:
    log = SessionLog()
    with capture_logs() as lines:
        for i in range(5000):
            log.bad_client(ALICE, "bootstrap", MalformedMessage(f"a frame claims {i} bytes"))
        log.flush()

    assert len(lines) < 1100
    assert sum(line.get("times", 1) for line in lines) == 5000
    wide = [line for line in lines if line["reason"] == "many different"]
    assert {line["event"] for line in wide} == {"client connection closed"}
    assert sum(line.get("times", 1) for line in wide) == 4000


@pytest.mark.internal_error
def test_internal_error_is_logged_with_traceback_once_and_then_counted() -> None:
    log = SessionLog()
    with capture_logs() as lines:
        for _ in range(50):
            log.internal_error(ALICE, caught_error("unexpected"))
        log.flush()

    assert [line.get("times", 1) for line in lines] == [1, 49]
    assert lines[0]["log_level"] == "error"
    assert lines[0]["exception"].startswith("ValueError: unexpected\n  logs/test_session_log.py:")
    assert (lines[0]["client_address"], lines[0]["client_id"]) == ("10.0.0.1:5000", "billing")


def test_connection_limit_is_logged_once_a_minute_per_host() -> None:
    log = SessionLog()
    with capture_logs() as lines:
        for port in range(100):
            log.connection_limit_reached(f"10.0.0.1:{port}", "limits.max_connections_per_address", 10)
        log.connection_limit_reached("10.0.0.2:1", "limits.max_connections_per_address", 10)

    assert [line["client_address"] for line in lines] == ["10.0.0.1:0", "10.0.0.2:1"]
    assert lines[0]["limit"] == "limits.max_connections_per_address"
    assert "10" in lines[0]["reason"]


def test_log_names_limit_that_closed_the_connection() -> None:
    log = SessionLog()
    with capture_logs() as lines:
        for _ in range(100):
            log.closed_by_limit(
                ALICE, "bootstrap", "limits.frame_timeout_seconds", "a request has not arrived whole within 30 s"
            )
        log.closed_by_limit(ALICE, "bootstrap", "limits.idle_timeout_seconds", "nothing came for 900 s")

    assert [line["limit"] for line in lines] == ["limits.frame_timeout_seconds", "limits.idle_timeout_seconds"]
    assert {"client_address", "client_id", "listener", "reason"} <= lines[0].keys()


def test_repeated_upstream_failures_are_summarised_on_recovery() -> None:
    log = SessionLog()
    with capture_logs() as lines:
        for _ in range(3):
            log.upstream_unreachable("broker 1", "Connection refused")
            log.no_broker_reachable("Connection refused")
            log.proxy_login_rejected("wrong password")
        before = len(lines)
        log.upstream_responds()
        assert [(line["event"], line["times"]) for line in lines[before:]] == [
            ("broker unreachable", 2),
            ("no broker reachable", 2),
        ]
        log.proxy_login_accepted()
        after = len(lines)
        log.flush()
        assert len(lines) == after == before + 3
        log.upstream_unreachable("broker 1", "Connection refused")

    assert "times" not in lines[-1], "the next outage is logged at once"


def test_response_of_one_broker_flushes_only_its_lines() -> None:
    log = SessionLog()
    with capture_logs() as lines:
        for broker in ("broker 1", "broker 2") * 2:
            log.upstream_unreachable(broker, "Connection refused")
        log.broker_responds("broker 1")

    assert [(line["broker"], line.get("times", 1)) for line in lines] == [
        ("broker 1", 1),
        ("broker 2", 1),
        ("broker 1", 1),
    ]


def test_recovery_flushes_merged_line_kinds() -> None:
    log = SessionLog()
    with capture_logs() as lines:
        for i in range(1100):
            log.upstream_unreachable(f"broker {i}", "Connection refused")
        log.upstream_responds()
        told = len(lines)
        log.flush()

    assert len(lines) == told
    assert sum(line.get("times", 1) for line in lines) == 1100
