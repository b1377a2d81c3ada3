"""Requests about very many topics cost the event loop little, and their memory stays proportional to their bytes."""

import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from sluicegate.protocol.api import ApiKey
from sluicegate.protocol.change_requests import MOST_READ
from tests.proxy.session.settings.scene import MODE, OWNER, SettingsSession
from tests.proxy.session.settings.test_altering import (
    SET,
    alteration_request,
    alteration_results,
    resource_alteration,
    response_errors,
)
from tests.proxy.session.settings.test_describing import (
    describe_response,
    description,
    sluicegate_settings_in,
    topic_description,
)

LOOP_SECONDS = 0.1
MIB = 1 << 20


@contextmanager
def limit_event_loop_cpu_time() -> Iterator[None]:
    """Check the processor time of this thread, which runs the loop."""
    began = time.thread_time()
    yield
    assert time.thread_time() - began < LOOP_SECONDS


def measure_peak_memory(send_and_respond: Callable[[], None]) -> int:
    """Return by how many bytes the memory grows meanwhile."""
    tracemalloc.start()
    try:
        send_and_respond()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def alteration_frame_with_topics(topics: int) -> bytes:
    """Return a request with a setting for each topic, one of them of sluicegate."""
    many = [resource_alteration(f"t{number}", ("retention.ms", SET, "1")) for number in range(topics - 1)]
    scene = SettingsSession(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1)
    return scene.frame(alteration_request(*many, resource_alteration("a", (MODE, SET, "observe"))))


@pytest.mark.long
def test_hundred_thousand_resources_take_little_event_loop_time() -> None:
    frame = alteration_frame_with_topics(99_999)  # with the same number of settings
    scene = SettingsSession(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1)

    with limit_event_loop_cpu_time():
        scene.send_frame_and_wait(frame)

    assert {code for _, code, _ in response_errors(scene.read_client_response())} == {42}


def test_oversized_request_takes_little_memory() -> None:
    frame = alteration_frame_with_topics(MOST_READ // 2 + 1)  # the measurement makes the work many times slower
    scene = SettingsSession(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1)

    grown = measure_peak_memory(lambda: scene.send_frame_and_wait(frame))

    assert grown < 4 * (len(frame) + len(scene.play.client.sent)) + 8 * MIB


@pytest.mark.long
def test_largest_accepted_request_takes_little_event_loop_time() -> None:
    many = [resource_alteration(f"t{number}", (MODE, SET, "observe")) for number in range(MOST_READ // 2)]
    scene = SettingsSession(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1)
    frame = scene.frame(alteration_request(*many))
    response = scene.response_frame(alteration_results(*((each["resource_name"], 0, None) for each in many)))

    with limit_event_loop_cpu_time():
        scene.send_frame_and_wait(frame)
        scene.send_from_broker_and_wait(response)

    assert {code for _, code, _ in response_errors(scene.read_client_response())} == {0}
    assert len(scene.stored.commits) == MOST_READ // 2


def description_with_topics(topics: int) -> tuple[SettingsSession, bytes, bytes]:
    """Return a session, a request to describe topics with settings, and the broker's response."""
    names = [f"topic-{number}" for number in range(topics)]
    scene = SettingsSession(ApiKey.DESCRIBE_CONFIGS, 4, {name: {MODE: "mark", OWNER: "o" * 1_000} for name in names})
    frame = scene.frame(description(*((name, None) for name in names)))
    return scene, frame, scene.response_frame(describe_response(*map(topic_description, names)))


@pytest.mark.long
def test_describing_ten_thousand_topics_takes_little_event_loop_time() -> None:
    scene, frame, response = description_with_topics(10_000)

    with limit_event_loop_cpu_time():
        scene.send_frame_and_wait(frame)
        scene.send_from_broker_and_wait(response)

    assert sluicegate_settings_in(scene.read_client_response()["results"][-1])[0] == (MODE, "mark")


def test_describing_topics_takes_little_memory() -> None:
    scene, frame, response = description_with_topics(1_000)  # the measurement makes the work many times slower

    def send_and_respond() -> None:
        scene.send_frame_and_wait(frame)
        scene.send_from_broker_and_wait(response)

    grown = measure_peak_memory(send_and_respond)
    on_the_wire = len(frame) + len(response) + len(scene.play.client.sent)
    assert grown < 4 * on_the_wire + 8 * MIB
