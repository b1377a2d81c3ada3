"""While a request about topic settings is handled, its client's later requests wait, and its memory stays counted."""

import threading
from collections.abc import Sequence

import pytest

from sluicegate.config.setting_keys import SettingKey
from sluicegate.protocol.api import ApiKey
from sluicegate.proxy.scheduling.background_thread import BackgroundJob
from sluicegate.proxy.scheduling.fair_sharing import FairShareAccount
from sluicegate.proxy.session.pause_reason import PauseReason
from tests.proxy.session.settings.scene import CLIENTS, MODE, OWNER, SettingsSession
from tests.proxy.session.settings.test_altering import (
    APPEND,
    DELETE,
    SET,
    alteration_request,
    alteration_results,
    resource_alteration,
    response_errors,
)
from tests.proxy.session.settings.test_creating import RETENTION, create_topics_request, topic
from tests.proxy.session.settings.test_describing import (
    describe_response,
    description,
    sluicegate_settings_in,
    topic_description,
)

_SECONDS = 30


class PausedBackgroundWork:
    """Holds the work in the background at the keys of a topic."""

    def __init__(self, scene: SettingsSession) -> None:
        self._keys_of = scene.stored.setting_keys_of
        self.may_go_on = threading.Event()
        scene.stored.setting_keys_of = self._waiting  # type: ignore[method-assign]

    def _waiting(self, topic: str) -> Sequence[SettingKey]:
        assert self.may_go_on.wait(_SECONDS)
        return self._keys_of(topic)


def test_the_memory_of_a_response_is_counted_while_settings_are_added() -> None:
    scene = SettingsSession(ApiKey.DESCRIBE_CONFIGS, 4, {"orders": {MODE: "mark"}})
    held, share = PausedBackgroundWork(scene), scene.play.parts.budget.small_responses
    scene.send_and_read_broker_request(description(("orders", None)))
    frame = scene.response_frame(describe_response(topic_description("orders")))

    scene.play.from_broker(frame)

    assert share.held_bytes == len(frame) - 4
    assert scene.play.session.client.pause_reasons == (PauseReason.SETTINGS,)
    held.may_go_on.set()
    scene.play.loop.run_until(lambda: bool(scene.play.client.sent))
    assert sluicegate_settings_in(scene.read_client_response()["results"][0])
    assert share.held_bytes == 0
    assert scene.play.session.client.pause_reasons == ()


def test_the_memory_of_a_response_is_counted_until_the_client_reads_it() -> None:
    scene = SettingsSession(ApiKey.DESCRIBE_CONFIGS, 4, {"orders": {MODE: "mark", OWNER: "o" * 1000}})
    share = scene.play.parts.budget.small_responses
    scene.send_and_read_broker_request(description(*[("orders", None)] * 100))
    frame = scene.response_frame(describe_response(*[topic_description("orders")] * 100))
    scene.play.client.stuck = True

    scene.play.from_broker(frame)
    scene.play.loop.run_until(lambda: bool(scene.play.client.writes))

    assert scene.play.session.client.is_full
    assert share.held_bytes == len(frame) - 4
    scene.play.client.resume_peer_reading()
    assert share.held_bytes == 0
    assert len(scene.read_client_response()["results"]) == 100


@pytest.mark.parametrize("has_fast_path", [False, True])
def test_later_requests_wait_until_the_settings_are_changed(has_fast_path: bool) -> None:
    scene = SettingsSession(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, has_fast_path=has_fast_path)
    first = scene.frame(alteration_request(resource_alteration("a", (MODE, SET, "observe"))))
    second = scene.frame(alteration_request(resource_alteration("b", ("retention.ms", SET, "1"))))

    scene.send_frame_and_wait(first + second)

    asked = bytes(scene.play.broker.sent)
    assert scene.read_broker_request() == alteration_request(resource_alteration("a"), validate=True)
    scene.send_from_broker_and_wait(scene.response_frame(alteration_results(("a", 0, None))))
    answered = bytes(scene.play.client.sent)
    assert response_errors(scene.read_client_response()) == [("a", 0, None)]
    scene.play.loop.run_until(lambda: len(scene.play.broker.sent) > len(asked))
    assert scene.play.broker.sent == asked + second
    response = scene.response_frame(alteration_results(("b", 0, None)))
    scene.play.from_broker(response)
    assert scene.play.client.sent == answered + response


def test_session_closed_during_background_work_gets_no_response() -> None:
    scene = SettingsSession(ApiKey.DESCRIBE_CONFIGS, 4, {"orders": {MODE: "mark"}})
    held = PausedBackgroundWork(scene)
    scene.send_and_read_broker_request(description(("orders", None)))
    scene.play.from_broker(scene.response_frame(describe_response(topic_description("orders"))))

    scene.play.ends()
    held.may_go_on.set()
    done = threading.Event()
    background = scene.play.dependencies.requests.produce.background
    background.add(BackgroundJob(lambda _: None, FairShareAccount(), lambda _result, _error: done.set()))
    assert done.wait(_SECONDS)
    scene.play.loop.run_steps()

    assert scene.play.client.sent == b""
    assert scene.play.parts.budget.small_responses.held_bytes == 0


def test_settings_are_stored_after_the_client_has_disconnected() -> None:
    """As a broker does: a request that was sent takes effect."""
    scene = SettingsSession(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1)
    scene.send_and_read_broker_request(alteration_request(resource_alteration("a", (MODE, SET, "observe"))))

    scene.play.session.client.eof_received()
    scene.play.from_broker(scene.response_frame(alteration_results(("a", 0, None))))
    scene.play.loop.run_until(lambda: bool(scene.stored.commits))

    assert [change.topic for change in scene.stored.commits] == ["a"]


def test_a_change_waits_until_the_settings_are_known() -> None:
    """Its values depend on those that are stored, such as the list to which it appends."""
    scene = SettingsSession(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1)
    scene.stored.are_settings_known = False
    scene.play.from_client(scene.frame(alteration_request(resource_alteration("a", (CLIENTS, APPEND, "web")))))
    scene.play.loop.run_steps()
    assert scene.play.broker.sent == b""
    assert scene.play.session.client.pause_reasons == (PauseReason.SETTINGS,)

    scene.stored.settings["a"] = {CLIENTS: "billing"}
    scene.stored.are_settings_known = True
    scene.stored.waiting.pop()()
    scene.play.loop.run_until(lambda: bool(scene.play.broker.sent))
    scene.send_from_broker_and_wait(scene.response_frame(alteration_results(("a", 0, None))))

    assert [change.values for change in scene.stored.commits] == [{CLIENTS: "billing,web"}]
    assert response_errors(scene.read_client_response()) == [("a", 0, None)]


@pytest.mark.parametrize("operation", [SET, DELETE])
def test_a_change_gets_a_retriable_error_if_the_settings_are_not_known_in_time(operation: int) -> None:
    """After NOT_CONTROLLER (41), Java's AdminClient sends the request again."""
    scene = SettingsSession(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1)
    scene.stored.are_settings_known = False
    scene.play.from_client(scene.frame(alteration_request(resource_alteration("a", (MODE, operation, "observe")))))
    scene.stored.waiting.pop()()
    scene.play.loop.run_until(lambda: bool(scene.play.broker.sent))
    assert scene.read_broker_request() == alteration_request(resource_alteration("a"), validate=True)

    scene.send_from_broker_and_wait(scene.response_frame(alteration_results(("a", 0, None))))

    ((name, code, text),) = response_errors(scene.read_client_response())
    assert (name, code) == ("a", 41)
    assert text is not None
    assert text.endswith("nothing was changed: repeat the request")
    assert scene.stored.commits == []


def test_a_description_waits_until_the_settings_are_known() -> None:
    scene = SettingsSession(ApiKey.DESCRIBE_CONFIGS, 4)
    scene.stored.are_settings_known = False
    scene.play.from_client(scene.frame(description(("orders", None))))
    scene.play.loop.run_steps()
    assert scene.play.broker.sent == b""

    scene.stored.settings["orders"] = {MODE: "mark"}
    scene.stored.are_settings_known = True
    scene.stored.waiting.pop()()
    scene.play.loop.run_until(lambda: bool(scene.play.broker.sent))
    scene.send_from_broker_and_wait(scene.response_frame(describe_response(topic_description("orders"))))

    assert sluicegate_settings_in(scene.read_client_response()["results"][0])


@pytest.mark.parametrize("api", [ApiKey.CREATE_TOPICS, ApiKey.INCREMENTAL_ALTER_CONFIGS])
def test_request_without_sluicegate_settings_does_not_wait(api: ApiKey) -> None:
    scene = SettingsSession(api, 1)
    scene.stored.are_settings_known = False
    request = (
        alteration_request(resource_alteration("a", ("retention.ms", SET, "1")))
        if api is ApiKey.INCREMENTAL_ALTER_CONFIGS
        else create_topics_request(topic("a", RETENTION))
    )

    frame = scene.frame(request)
    scene.send_frame_and_wait(frame)

    assert scene.play.broker.sent == frame
    assert scene.stored.waiting == []
