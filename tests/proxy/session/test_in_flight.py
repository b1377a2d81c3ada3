"""The queue keeps responses in the order of requests."""

from collections import deque
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.proxy.session.in_flight import InFlightQueue, InFlightRequest, InFlightTotal


def test_a_response_of_the_proxy_waits_for_earlier_broker_responses() -> None:
    queue = InFlightQueue(InFlightTotal())
    first, ours, last = InFlightRequest(1), InFlightRequest(response=b"ours"), InFlightRequest(2)
    for in_flight in (first, ours, last):
        queue.add(in_flight)

    assert queue.pop_ready() is None
    assert queue.pop_awaited() is first
    assert queue.pop_awaited() is None  # the proxy responds to the next request
    assert queue.pop_ready() is ours
    assert queue.pop_ready() is None
    assert queue.pop_awaited() is last
    assert len(queue) == 0


def test_connection_close_waits_for_earlier_responses() -> None:
    queue = InFlightQueue(InFlightTotal())
    queue.add(InFlightRequest(1))
    queue.add(InFlightRequest(closes=True))

    assert queue.pop_ready() is None
    queue.pop_awaited()
    closing = queue.pop_ready()
    assert closing is not None
    assert closing.closes


_ENTRANCES = st.sampled_from(["awaited", "responded", "closes"])


@given(st.lists(st.one_of(_ENTRANCES, st.sampled_from(["pop awaited", "pop ready"])), max_size=300))
def test_in_flight_requests_leave_the_queue_in_order(steps: list[str]) -> None:
    queue, model = InFlightQueue(InFlightTotal()), deque[tuple[str, InFlightRequest]]()
    for number, step in enumerate(steps):
        match step:
            case "pop awaited":
                oldest = model.popleft()[1] if model and model[0][0] == "awaited" else None
                assert queue.awaited() is oldest
                assert queue.pop_awaited() is oldest
            case "pop ready":
                is_ready = bool(model) and model[0][0] != "awaited"
                assert queue.is_ready() == is_ready
                assert queue.pop_ready() is (model.popleft()[1] if is_ready else None)
            case _:
                made = InFlightRequest(number, response=b"a" if step == "responded" else None, closes=step == "closes")
                model.append((step, made))
                queue.add(made)
        assert len(queue) == queue.count == len(model)


@pytest.mark.parametrize("count", [7, 8, 9, 63, 64, 65, 5000])
def test_large_queue_capacity_is_released_when_empty(count: int) -> None:
    queue = InFlightQueue(InFlightTotal())
    for _ in range(3):
        for number in range(count):
            queue.add(InFlightRequest(number))
        popped = [queue.pop_awaited() for _ in range(count)]
        assert [each.correlation_id for each in popped if each is not None] == list(range(count))
        assert queue.capacity <= 64


def test_the_newest_in_flight_request_is_the_last_added() -> None:
    queue = InFlightQueue(InFlightTotal())
    for number in range(20):
        queue.add(InFlightRequest(number))
        assert queue.newest().correlation_id == number
        if number % 3:
            queue.pop()


def test_the_queues_of_all_connections_are_counted_together() -> None:
    total = InFlightTotal(100)
    queues = [InFlightQueue(total) for _ in range(3)]
    chance = Random(7)

    for _ in range(10_000):
        queue = chance.choice(queues)
        match chance.randrange(40):
            case 0:
                queue.clear()
            case number if number % 2 and len(queue):
                queue.pop()
            case _:
                queue.add(InFlightRequest(1))
        assert total.count == sum(map(len, queues))
        assert total.is_full() == (total.count >= 100)


def test_pending_requests_end_oldest_first_after_the_ring_buffer_wraps() -> None:
    queue = InFlightQueue(InFlightTotal())
    for number in range(6):
        queue.add(InFlightRequest(number))
    for _ in range(4):
        queue.pop()
    for number in range(6, 11):  # a ring has room for eight: the last of these are at its start
        queue.add(InFlightRequest(number))
    unanswered: list[int] = []

    queue.end(lambda in_flight: unanswered.append(in_flight.correlation_id))

    assert unanswered == [4, 5, 6, 7, 8, 9, 10]
    assert len(queue) == 0
