"""Deadlines apply to waits, which snapshots at intervals of a second reveal."""

from typing import Any

import pytest

from sluicegate.proxy.session.deadlines import Deadlines, DeadlineSnapshot, Overdue

NOTHING = DeadlineSnapshot(None, None, None, None, None, False, None, 0)


def snapshot_with_values(**what: Any) -> DeadlineSnapshot:
    values = {field: getattr(NOTHING, field) for field in DeadlineSnapshot.__slots__}
    return DeadlineSnapshot(**values | what)


def overdue_at_each_look(
    looks: list[DeadlineSnapshot], frame_timeout_seconds: float = 3, idle_timeout_seconds: float = 900
) -> list[Overdue | None]:
    deadlines = Deadlines(frame_timeout_seconds, idle_timeout_seconds)
    return [deadlines.overdue(look, float(now)) for now, look in enumerate(looks)]


def snapshots_of_arriving_request(bytes_a_second: int, seconds: int, size: int) -> list[DeadlineSnapshot]:
    """Return snapshots of a session in which a request of `size` bytes arrives, followed by the next request."""
    sent = [min(bytes_a_second * now, size) for now in range(seconds)]
    return [snapshot_with_values(request=7 if each < size else None, arrived=each, moved=each) for each in sent]


def test_an_incomplete_request_is_overdue_after_its_timeout() -> None:
    found = overdue_at_each_look([snapshot_with_values(request=7, moved=5, arrived=5) for now in range(6)])

    assert found[:4] == [None] * 4
    words = "a request has not arrived completely, and less than 98304 bytes of it came in 3 s"
    assert found[4] == Overdue("limits.frame_timeout_seconds", words)


def test_a_request_over_a_slow_link_may_take_longer_while_it_progresses() -> None:
    """17.5 MB at 0.5 MB a second take 35 s. A broker takes them: it waits for as long as bytes arrive."""
    assert (
        overdue_at_each_look(snapshots_of_arriving_request(500_000, 40, 17_500_000), frame_timeout_seconds=30)
        == [None] * 40
    )


@pytest.mark.parametrize("bytes_a_second", [1, 30_000])
def test_trickling_request_is_overdue_after_its_timeout_and_names_the_limit(bytes_a_second: int) -> None:
    found = overdue_at_each_look(
        snapshots_of_arriving_request(bytes_a_second, 40, 17_500_000), frame_timeout_seconds=30
    )

    assert next(now for now, each in enumerate(found) if each is not None) == 31
    assert found[31] == Overdue(
        "limits.frame_timeout_seconds",
        "a request has not arrived completely, and less than 983040 bytes of it came in 30 s, although it was still "
        "arriving; for slow links, raise limits.frame_timeout_seconds, or let the producer send smaller requests "
        "(max.request.size, batch.size)",
    )


def test_a_request_that_stops_arriving_is_overdue_after_the_same_timeout() -> None:
    found = overdue_at_each_look(
        snapshots_of_arriving_request(500_000, 10, 17_500_000)
        + [snapshot_with_values(request=7, arrived=4_500_000, moved=0)] * 40,
        30,
    )

    assert next(now for now, each in enumerate(found) if each is not None) <= 9 + 31


def test_timeout_starts_again_with_each_request() -> None:
    assert overdue_at_each_look([snapshot_with_values(request=now // 3, moved=now) for now in range(20)]) == [None] * 20


def test_slow_requests_are_cut_off_only_while_others_wait_for_memory() -> None:
    crawling = [snapshot_with_values(request=now, held_of_request=100 * now, moved=now) for now in range(3)]
    running = [snapshot_with_values(request=now, held_of_request=100_000 * now, moved=now) for now in range(9)]

    assert overdue_at_each_look([snapshot_with_values(request=0, moved=now) for now in range(3)]) == [None] * 3
    assert overdue_at_each_look(running) == [None] * 9
    first = next(found for found in overdue_at_each_look(crawling) if found is not None)
    assert first.limit == "limits.max_buffered_bytes"


def test_a_response_without_progress_is_overdue() -> None:
    assert (
        overdue_at_each_look([snapshot_with_values(response=(False, now), moved=now) for now in range(20)])
        == [None] * 20
    )
    still = overdue_at_each_look([snapshot_with_values(response=(False, 5), moved=now) for now in range(6)])
    assert still[-1] == Overdue("limits.frame_timeout_seconds", "the broker sent nothing more of a response for 3 s")


def test_a_client_that_does_not_read_is_closed_if_others_wait_for_its_memory() -> None:
    assert overdue_at_each_look([snapshot_with_values(unread=500 - now, moved=now) for now in range(9)]) == [None] * 9
    found = overdue_at_each_look([snapshot_with_values(unread=500, moved=now) for now in range(4)])
    assert found[-1] is not None
    assert found[-1].limit == "limits.max_buffered_bytes"


def test_requests_that_the_proxy_handles_have_a_deadline() -> None:
    found = overdue_at_each_look([snapshot_with_values(dealt_with=1, moved=now) for now in range(8)])

    assert found[6] is None
    assert found[7] == Overdue("limits.frame_timeout_seconds", "a request was not processed within 6 s")


def test_a_broker_that_reads_nothing_is_overdue_sooner_under_memory_pressure() -> None:
    still = overdue_at_each_look([snapshot_with_values(unsent=70_000, moved=now) for now in range(8)])
    pressed = overdue_at_each_look(
        [snapshot_with_values(unsent=70_000, other_connections_wait=True, moved=now) for now in range(8)]
    )

    assert [found is None for found in still] == [True] * 7 + [False]
    assert [found is None for found in pressed] == [True] * 4 + [False] * 4
    assert (
        overdue_at_each_look([snapshot_with_values(unsent=70_000 - now, moved=now) for now in range(20)]) == [None] * 20
    )


def test_a_connection_idle_on_both_sides_is_overdue() -> None:
    found = overdue_at_each_look([snapshot_with_values(moved=10)] * 8, idle_timeout_seconds=5)

    assert found[5] is None
    assert found[6] == Overdue("limits.idle_timeout_seconds", "nothing was sent in either direction for 5 s")
