"""Old connections are closed between two requests, so that clients connect again."""

import struct

from sluicegate.protocol.framing import frame_of
from sluicegate.protocol.headers import build_request_header
from sluicegate.proxy.session.deadlines import ConnectionAge
from tests.proxy.session.playbook import Playbook

_OLD = {"SLUICEGATE__LIMITS__MAX_CONNECTION_AGE_SECONDS": "100"}
_LIMIT = "limits.max_connection_age_seconds"


def test_an_old_connection_closes_after_the_requests_in_flight() -> None:
    play = Playbook(**_OLD)
    heartbeat = frame_of(build_request_header(12, 0, 7, "test", 1) + b"\0\1g\0\0\0\1\0\1m")
    play.from_client(heartbeat)
    play.session.check_deadlines(1000.0)
    play.session.check_deadlines(1100.0)
    assert play.client.is_read

    play.session.check_deadlines(1111.0)
    play.session.check_deadlines(1112.0)
    assert not play.client.is_read
    assert not play.client.closed
    play.from_broker(frame_of(struct.pack(">ih", 7, 0)))

    assert play.client.sent == frame_of(struct.pack(">ih", 7, 0))
    assert play.broker.has_ended_writing
    assert play.parts.counters.closed_by_limit[_LIMIT] == 1


def test_idle_old_connection_closes_at_once_only_if_an_age_limit_is_set() -> None:
    old, free = Playbook(**_OLD), Playbook()
    for play in (old, free):
        for now in (1000.0, 1111.0, 1e9):
            play.session.check_deadlines(now)

    assert old.client.closed
    assert not free.client.closed


def test_maximum_ages_of_connections_are_spread() -> None:
    early, late = ConnectionAge(100, lambda: 0.0), ConnectionAge(100, lambda: 1.0)

    ended = [next(now for now in range(130) if age.is_reached(now)) for age in (early, late)]

    assert ended == [101, 111]
