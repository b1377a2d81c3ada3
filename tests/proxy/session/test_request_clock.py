"""Every request on the slow path is timed, and one in 128 of the others. The test sets the clock."""

from dataclasses import replace

import pytest

from sluicegate.protocol.api import ApiKey
from sluicegate.proxy.fastpath.paths import HAS_FAST_PATH, make_path_counts
from sluicegate.proxy.session.handlers.dependencies import SessionDependencies
from sluicegate.proxy.session.in_flight import InFlightRequest
from sluicegate.proxy.session.request_clock import RequestClock
from tests.bounds.frames import good_batch, int32, sized_frame, sized_produce_request, sized_request
from tests.proxy.session.playbook import NOW, Playbook, replace_produce_dependencies

METADATA, HEARTBEAT = 3, 12
Told = tuple[int, float, int]


class ScriptedClock:
    """A clock that the test sets, and a recorder of times."""

    def __init__(self) -> None:
        self.now = 100.0
        self.sent: list[Told] = []
        self.answered: list[Told] = []
        self.clock = RequestClock(lambda: self.now, self)

    def in_proxy(self, api_key: int, seconds: float, stands_for: int) -> None:
        self.sent.append((api_key, seconds, stands_for))

    def upstream(self, api_key: int, seconds: float, stands_for: int) -> None:
        self.answered.append((api_key, seconds, stands_for))

    def failed(self, _peer: str, error: Exception) -> None:
        raise error

    def hand_in(self, dependencies: SessionDependencies) -> SessionDependencies:
        return replace(
            replace_produce_dependencies(dependencies, clock=self.clock),
            path_counts=make_path_counts(self.clock, self.failed),
        )


def session_with_clock(watch: ScriptedClock, has_fast_path: bool) -> Playbook:
    """Return a session whose client has received its first response; the recorded times of it are removed."""
    made = Playbook(has_fast_path, change=watch.hand_in)
    made.from_client(sized_produce_request(3, {b"orders": [(0, good_batch(NOW))]}, -1, 1))
    send_response(made, 1)
    watch.sent.clear()
    watch.answered.clear()
    return made


def send_response(made: Playbook, correlation_id: int) -> None:
    made.from_broker(sized_frame(int32(correlation_id) + b"\0" * 8))


def test_every_slow_path_request_is_timed() -> None:
    watch = ScriptedClock()
    made = session_with_clock(watch, has_fast_path=False)

    for number in range(2, 5):
        made.from_client(sized_produce_request(3, {b"orders": [(0, good_batch(NOW))]}, -1, number))
        watch.now += 0.25
        send_response(made, number)

    assert watch.sent == [(ApiKey.PRODUCE, 0.0, 1)] * 3
    assert watch.answered == [(ApiKey.PRODUCE, 0.25, 1)] * 3


def test_a_streamed_request_has_an_upstream_time_only() -> None:
    watch = ScriptedClock()
    made = session_with_clock(watch, has_fast_path=False)

    made.from_client(sized_request(HEARTBEAT, 4, bytes(30), 2))
    watch.now += 3.0
    send_response(made, 2)

    assert (watch.sent, watch.answered) == ([], [(HEARTBEAT, 3.0, 1)])


def test_proxy_time_begins_when_a_request_is_complete() -> None:
    """The time in which a request arrives does not count."""
    watch = ScriptedClock()
    made = session_with_clock(watch, has_fast_path=False)
    frame = sized_produce_request(3, {b"orders": [(0, good_batch(NOW))]}, -1, 2)

    made.from_client(frame[:30])
    watch.now += 60.0
    made.from_client(frame[30:])

    assert watch.sent == [(ApiKey.PRODUCE, 0.0, 1)]


@pytest.mark.skipif(not HAS_FAST_PATH, reason="there is no fast path: it was not compiled")
def test_fast_path_requests_are_timed_first_and_then_each_128th() -> None:
    watch = ScriptedClock()
    made = session_with_clock(watch, has_fast_path=True)

    for number in range(2, 272):
        made.from_client(sized_produce_request(3, {b"orders": [(0, good_batch(NOW))]}, -1, number))
        watch.now += 0.5
        send_response(made, number)

    assert [stands_for for _, _, stands_for in watch.sent] == [1, 128, 128]
    assert watch.answered == [(ApiKey.PRODUCE, 0.5, 1), (ApiKey.PRODUCE, 0.5, 128), (ApiKey.PRODUCE, 0.5, 128)]
    assert made.dependencies.path_counts is not None
    assert made.dependencies.path_counts.by_api() == {ApiKey.PRODUCE: 270}


@pytest.mark.skipif(not HAS_FAST_PATH, reason="there is no fast path: it was not compiled")
def test_timing_is_sampled_separately_per_api_and_once_per_socket_read() -> None:
    watch = ScriptedClock()
    made = session_with_clock(watch, has_fast_path=True)

    made.from_client(b"".join(sized_request(HEARTBEAT, 4, bytes(30), number) for number in range(2, 52)))
    made.from_client(sized_produce_request(3, {b"orders": [(0, good_batch(NOW))]}, -1, 52))

    assert watch.sent == [(HEARTBEAT, 0.0, 50), (ApiKey.PRODUCE, 0.0, 1)]


@pytest.mark.skipif(not HAS_FAST_PATH, reason="there is no fast path: it was not compiled")
def test_a_request_without_a_response_has_no_upstream_time() -> None:
    watch = ScriptedClock()
    made = session_with_clock(watch, has_fast_path=True)

    for number in range(2, 150):
        made.from_client(sized_produce_request(3, {b"orders": [(0, good_batch(NOW))]}, 0, number))

    assert [stands_for for _, _, stands_for in watch.sent] == [1, 128]
    assert watch.answered == []


def test_untimed_request_counts_for_no_other_requests() -> None:
    assert InFlightRequest(1).stands_for == 0
