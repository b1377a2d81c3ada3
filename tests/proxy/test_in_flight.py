"""The queue that keeps answers in the order of requests."""

from sluicegate.proxy.in_flight import Exchange, InFlightQueue


def test_an_answer_of_ours_waits_for_the_brokers_before_it() -> None:
    queue = InFlightQueue()
    first, ours, last = Exchange(1), Exchange(answer=b"ours"), Exchange(2)
    for exchange in (first, ours, last):
        queue.add(exchange)

    assert queue.pop_ready() is None
    assert queue.pop_awaited() is first
    assert queue.pop_awaited() is None  # ours is next, and it is not the broker's to answer
    assert queue.pop_ready() is ours
    assert queue.pop_ready() is None
    assert queue.pop_awaited() is last
    assert len(queue) == 0


def test_closing_waits_for_its_turn_too() -> None:
    queue = InFlightQueue()
    queue.add(Exchange(1))
    queue.add(Exchange(closes=True))

    assert queue.pop_ready() is None
    queue.pop_awaited()
    closing = queue.pop_ready()
    assert closing is not None
    assert closing.closes
