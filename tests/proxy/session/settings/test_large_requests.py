"""Requests about very many topics cost the event loop little, and their memory stays proportional to their bytes."""

import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from sluicegate.protocol.api import ApiKey
from sluicegate.protocol.change_requests import MOST_READ
from tests.proxy.session.settings.scene import MODE, OWNER, Scene
from tests.proxy.session.settings.test_altering import SET, alteration, errors_in, resource, results
from tests.proxy.session.settings.test_describing import described, description, ours_in, responses

LOOP_SECONDS = 0.1
MIB = 1 << 20


@contextmanager
def cheap_for_the_loop() -> Iterator[None]:
    """Check the processor time of this thread, which runs the loop."""
    began = time.thread_time()
    yield
    assert time.thread_time() - began < LOOP_SECONDS


def grows_by(step: Callable[[], None]) -> int:
    """Return by how many bytes the memory grows meanwhile."""
    tracemalloc.start()
    try:
        step()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def alteration_of(topics: int) -> bytes:
    """Return a request with a setting for each topic, one of them of sluicegate."""
    many = [resource(f"t{number}", ("retention.ms", SET, "1")) for number in range(topics - 1)]
    scene = Scene(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1)
    return scene.frame(alteration(*many, resource("a", (MODE, SET, "observe"))))


@pytest.mark.long
def test_hundred_thousand_resources_take_little_event_loop_time() -> None:
    frame = alteration_of(99_999)  # with the same number of settings
    scene = Scene(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1)

    with cheap_for_the_loop():
        scene.sends_frame(frame)

    assert {code for _, code, _ in errors_in(scene.clients_response())} == {42}


def test_oversized_request_takes_little_memory() -> None:
    frame = alteration_of(MOST_READ // 2 + 1)  # the measurement makes the work many times slower
    scene = Scene(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1)

    grown = grows_by(lambda: scene.sends_frame(frame))

    assert grown < 4 * (len(frame) + len(scene.play.client.sent)) + 8 * MIB


@pytest.mark.long
def test_largest_accepted_request_takes_little_event_loop_time() -> None:
    many = [resource(f"t{number}", (MODE, SET, "observe")) for number in range(MOST_READ // 2)]
    scene = Scene(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1)
    frame = scene.frame(alteration(*many))
    response = scene.response_frame(results(*((each["resource_name"], 0, None) for each in many)))

    with cheap_for_the_loop():
        scene.sends_frame(frame)
        scene.broker_sends(response)

    assert {code for _, code, _ in errors_in(scene.clients_response())} == {0}
    assert len(scene.stored.commits) == MOST_READ // 2


def describe(topics: int) -> tuple[Scene, bytes, bytes]:
    """Return a session, a request to describe topics with settings, and the broker's response."""
    names = [f"topic-{number}" for number in range(topics)]
    scene = Scene(ApiKey.DESCRIBE_CONFIGS, 4, {name: {MODE: "mark", OWNER: "o" * 1_000} for name in names})
    frame = scene.frame(description(*((name, None) for name in names)))
    return scene, frame, scene.response_frame(responses(*map(described, names)))


@pytest.mark.long
def test_describing_ten_thousand_topics_takes_little_event_loop_time() -> None:
    scene, frame, response = describe(10_000)

    with cheap_for_the_loop():
        scene.sends_frame(frame)
        scene.broker_sends(response)

    assert ours_in(scene.clients_response()["results"][-1])[0] == (MODE, "mark")


def test_describing_topics_takes_little_memory() -> None:
    scene, frame, response = describe(1_000)  # the measurement makes the work many times slower

    def step() -> None:
        scene.sends_frame(frame)
        scene.broker_sends(response)

    grown = grows_by(step)
    on_the_wire = len(frame) + len(response) + len(scene.play.client.sent)
    assert grown < 4 * on_the_wire + 8 * MIB
