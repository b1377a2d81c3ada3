"""Both paths count batches by their distance from now in the same way, each batch once, and rejected batches
separately."""

import pytest

from sluicegate.proxy.fastpath.paths import HAS_FAST_PATH
from sluicegate.proxy.live.live_state import Distances
from sluicegate.validation.units import distance_step
from tests.bounds.frames import sized_produce_request
from tests.proxy.session.playbook import NOW, Playbook
from tests.wire.batches import CODECS, NONE, Rec, batch

HOUR, DAY = 3_600_000, 86_400_000
BOUNDS = {
    "SLUICEGATE__DEFAULTS__MESSAGE_TIMESTAMP_BEFORE_MAX_MS": str(30 * DAY),
    "SLUICEGATE__DEFAULTS__MESSAGE_TIMESTAMP_AFTER_MAX_MS": str(2 * HOUR),
}
TAUGHT = batch([Rec(NOW)])


def distances_of(batches: list[bytes], has_fast_path: bool) -> Distances:
    """Return the counts if each batch is a request of its own, after a request that teaches the topic."""
    play = Playbook(has_fast_path, **BOUNDS)
    for number, records in enumerate([TAUGHT, *batches]):
        play.from_client(sized_produce_request(9, {b"orders": [(0, records)]}, 0, number))
        play.loop.run_steps()
    if has_fast_path:
        assert play.parts.ordinary is not None
        assert play.parts.ordinary.requests > 0
    return play.parts.view.distances.state()


def distance_steps(*aways: int) -> dict[str, int]:
    counted: dict[str, int] = {}
    for away in aways:
        counted[str(distance_step(away))] = counted.get(str(distance_step(away)), 0) + 1
    return counted


LANES = [False, pytest.param(True, marks=pytest.mark.skipif(not HAS_FAST_PATH, reason="nothing was compiled"))]


@pytest.mark.parametrize("has_fast_path", LANES)
@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
def test_a_batch_counts_by_its_base_and_its_latest_timestamp(codec: int, has_fast_path: bool) -> None:
    records = batch([Rec(NOW - 3 * DAY), Rec(NOW + 40_000), Rec(NOW - 5)], codec)

    found = distances_of([records], has_fast_path)

    assert found["behind"] == distance_steps(0, 3 * DAY)
    assert found["ahead"] == distance_steps(0, 40_000)
    assert found["rejected_behind"] == found["rejected_ahead"] == {}


@pytest.mark.parametrize("has_fast_path", LANES)
def test_batches_without_timestamps_are_not_counted(has_fast_path: bool) -> None:
    found = distances_of([batch([Rec(-1)])], has_fast_path)

    assert found["behind"] == distance_steps(0)


@pytest.mark.parametrize("has_fast_path", LANES)
def test_request_that_falls_back_to_slow_path_is_counted_once(has_fast_path: bool) -> None:
    play = Playbook(has_fast_path, **BOUNDS)
    good, bad = batch([Rec(NOW - DAY)]), batch([Rec(NOW * 1_000_000)])
    for number, parts in enumerate(([(0, TAUGHT)], [(0, good), (1, bad)])):
        play.from_client(sized_produce_request(9, {b"orders": parts}, 1, number))
        play.loop.run_steps()
    play.ends()

    found = play.parts.view.distances.state()

    assert found["behind"] == distance_steps(0, DAY)
    assert found["rejected_ahead"] == distance_steps(NOW * 1_000_000 - NOW)
    assert found["rejected_behind"] == distance_steps(0)


@pytest.mark.parametrize("has_fast_path", LANES)
def test_traffic_is_counted_on_both_paths(has_fast_path: bool) -> None:
    play = Playbook(has_fast_path, **BOUNDS)
    sent = 0
    for number in range(5):
        request = sized_produce_request(9, {b"orders": [(0, batch([Rec(NOW)] * 3, NONE))]}, 0, number)
        sent += len(request)
        play.from_client(request)
        play.loop.run_steps()

    flow = play.parts.view.flow()

    assert (flow.requests, flow.records, flow.rejected) == (5, 15, 0)
    assert 0.7 * sent < flow.size < sent  # heads of requests on the fast path are not counted
