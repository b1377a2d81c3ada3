"""While a request about topic settings is handled, its client's later requests wait, and its memory stays counted."""

import threading
from collections.abc import Sequence

import pytest

from sluicegate.config.setting_keys import SettingKey
from sluicegate.protocol.api import ApiKey
from sluicegate.proxy.scheduling.background_thread import BackgroundJob
from sluicegate.proxy.scheduling.fair_sharing import Account
from sluicegate.proxy.session.pause_reason import PauseReason
from tests.proxy.session.settings.scene import CLIENTS, MODE, OWNER, Scene
from tests.proxy.session.settings.test_altering import (
    APPEND,
    DELETE,
    SET,
    alteration,
    errors_in,
    resource,
    results,
)
from tests.proxy.session.settings.test_creating import RETENTION, creation, topic
from tests.proxy.session.settings.test_describing import described, description, ours_in, responses

_SECONDS = 30


class HeldWork:
    """Holds the work in the background at the keys of a topic."""

    def __init__(self, scene: Scene) -> None:
        self._keys_of = scene.stored.keys_of
        self.may_go_on = threading.Event()
        scene.stored.keys_of = self._waiting  # type: ignore[method-assign]

    def _waiting(self, topic: str) -> Sequence[SettingKey]:
        assert self.may_go_on.wait(_SECONDS)
        return self._keys_of(topic)


def test_the_memory_of_a_response_is_counted_while_settings_are_added() -> None:
    scene = Scene(ApiKey.DESCRIBE_CONFIGS, 4, {"orders": {MODE: "mark"}})
    held, share = HeldWork(scene), scene.play.parts.budget.small_responses
    scene.sends(description(("orders", None)))
    frame = scene.response_frame(responses(described("orders")))

    scene.play.from_broker(frame)

    assert share.held_bytes == len(frame) - 4
    assert scene.play.session.client.pause_reasons == (PauseReason.SETTINGS,)
    held.may_go_on.set()
    scene.play.loop.until(lambda: bool(scene.play.client.sent))
    assert ours_in(scene.clients_response()["results"][0])
    assert share.held_bytes == 0
    assert scene.play.session.client.pause_reasons == ()


def test_the_memory_of_a_response_is_counted_until_the_client_reads_it() -> None:
    scene = Scene(ApiKey.DESCRIBE_CONFIGS, 4, {"orders": {MODE: "mark", OWNER: "o" * 1000}})
    share = scene.play.parts.budget.small_responses
    scene.sends(description(*[("orders", None)] * 100))
    frame = scene.response_frame(responses(*[described("orders")] * 100))
    scene.play.client.stuck = True

    scene.play.from_broker(frame)
    scene.play.loop.until(lambda: bool(scene.play.client.writes))

    assert scene.play.session.client.is_full
    assert share.held_bytes == len(frame) - 4
    scene.play.client.take_all()
    assert share.held_bytes == 0
    assert len(scene.clients_response()["results"]) == 100


@pytest.mark.parametrize("has_fast_path", [False, True])
def test_later_requests_wait_until_the_settings_are_changed(has_fast_path: bool) -> None:
    scene = Scene(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, has_fast_path=has_fast_path)
    first = scene.frame(alteration(resource("a", (MODE, SET, "observe"))))
    second = scene.frame(alteration(resource("b", ("retention.ms", SET, "1"))))

    scene.sends_frame(first + second)

    asked = bytes(scene.play.broker.sent)
    assert scene.brokers_request() == alteration(resource("a"), validate=True)
    scene.broker_sends(scene.response_frame(results(("a", 0, None))))
    answered = bytes(scene.play.client.sent)
    assert errors_in(scene.clients_response()) == [("a", 0, None)]
    scene.play.loop.until(lambda: len(scene.play.broker.sent) > len(asked))
    assert scene.play.broker.sent == asked + second
    response = scene.response_frame(results(("b", 0, None)))
    scene.play.from_broker(response)
    assert scene.play.client.sent == answered + response


def test_session_closed_during_background_work_gets_no_response() -> None:
    scene = Scene(ApiKey.DESCRIBE_CONFIGS, 4, {"orders": {MODE: "mark"}})
    held = HeldWork(scene)
    scene.sends(description(("orders", None)))
    scene.play.from_broker(scene.response_frame(responses(described("orders"))))

    scene.play.ends()
    held.may_go_on.set()
    done = threading.Event()
    background = scene.play.dependencies.requests.produce.background
    background.add(BackgroundJob(lambda _: None, Account(), lambda _result, _error: done.set()))
    assert done.wait(_SECONDS)
    scene.play.loop.run_steps()

    assert scene.play.client.sent == b""
    assert scene.play.parts.budget.small_responses.held_bytes == 0


def test_settings_are_stored_after_the_client_has_disconnected() -> None:
    """As a broker does: a request that was sent takes effect."""
    scene = Scene(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1)
    scene.sends(alteration(resource("a", (MODE, SET, "observe"))))

    scene.play.session.client.eof_received()
    scene.play.from_broker(scene.response_frame(results(("a", 0, None))))
    scene.play.loop.until(lambda: bool(scene.stored.commits))

    assert [change.topic for change in scene.stored.commits] == ["a"]


def test_a_change_waits_until_the_settings_are_known() -> None:
    """Its values depend on those that are stored, such as the list to which it appends."""
    scene = Scene(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1)
    scene.stored.are_known = False
    scene.play.from_client(scene.frame(alteration(resource("a", (CLIENTS, APPEND, "web")))))
    scene.play.loop.run_steps()
    assert scene.play.broker.sent == b""
    assert scene.play.session.client.pause_reasons == (PauseReason.SETTINGS,)

    scene.stored.settings["a"] = {CLIENTS: "billing"}
    scene.stored.are_known = True
    scene.stored.waiting.pop()()
    scene.play.loop.until(lambda: bool(scene.play.broker.sent))
    scene.broker_sends(scene.response_frame(results(("a", 0, None))))

    assert [change.values for change in scene.stored.commits] == [{CLIENTS: "billing,web"}]
    assert errors_in(scene.clients_response()) == [("a", 0, None)]


@pytest.mark.parametrize("operation", [SET, DELETE])
def test_a_change_gets_a_retriable_error_if_the_settings_are_not_known_in_time(operation: int) -> None:
    """After NOT_CONTROLLER (41), Java's AdminClient sends the request again."""
    scene = Scene(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1)
    scene.stored.are_known = False
    scene.play.from_client(scene.frame(alteration(resource("a", (MODE, operation, "observe")))))
    scene.stored.waiting.pop()()
    scene.play.loop.until(lambda: bool(scene.play.broker.sent))
    assert scene.brokers_request() == alteration(resource("a"), validate=True)

    scene.broker_sends(scene.response_frame(results(("a", 0, None))))

    ((name, code, text),) = errors_in(scene.clients_response())
    assert (name, code) == ("a", 41)
    assert text is not None
    assert text.endswith("nothing was changed: repeat the request")
    assert scene.stored.commits == []


def test_a_description_waits_until_the_settings_are_known() -> None:
    scene = Scene(ApiKey.DESCRIBE_CONFIGS, 4)
    scene.stored.are_known = False
    scene.play.from_client(scene.frame(description(("orders", None))))
    scene.play.loop.run_steps()
    assert scene.play.broker.sent == b""

    scene.stored.settings["orders"] = {MODE: "mark"}
    scene.stored.are_known = True
    scene.stored.waiting.pop()()
    scene.play.loop.until(lambda: bool(scene.play.broker.sent))
    scene.broker_sends(scene.response_frame(responses(described("orders"))))

    assert ours_in(scene.clients_response()["results"][0])


@pytest.mark.parametrize("api", [ApiKey.CREATE_TOPICS, ApiKey.INCREMENTAL_ALTER_CONFIGS])
def test_request_without_sluicegate_settings_does_not_wait(api: ApiKey) -> None:
    scene = Scene(api, 1)
    scene.stored.are_known = False
    request = (
        alteration(resource("a", ("retention.ms", SET, "1")))
        if api is ApiKey.INCREMENTAL_ALTER_CONFIGS
        else creation(topic("a", RETENTION))
    )

    frame = scene.frame(request)
    scene.sends_frame(frame)

    assert scene.play.broker.sent == frame
    assert scene.stored.waiting == []
