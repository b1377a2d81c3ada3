"""While a request about topic settings is handled, later requests of its client wait, and its memory stays counted."""

import threading
from collections.abc import Sequence

import pytest

from sluicegate.config.setting_keys import SettingKey
from sluicegate.protocol.api import ApiKey
from sluicegate.proxy.scheduling.background_thread import BackgroundJob
from sluicegate.proxy.scheduling.fair_sharing import Account
from sluicegate.proxy.session.pause_reason import PauseReason
from tests.proxy.session.settings.scene import MODE, OWNER, Scene
from tests.proxy.session.settings.test_altering import SET, alteration, errors_in, resource, results
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
def test_later_requests_wait_for_their_turn(has_fast_path: bool) -> None:
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


def test_a_session_that_ends_meanwhile_gets_no_response() -> None:
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


def test_settings_are_stored_though_the_client_has_left() -> None:
    """As a broker does: a request that was sent takes effect."""
    scene = Scene(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1)
    scene.sends(alteration(resource("a", (MODE, SET, "observe"))))

    scene.play.session.client.eof_received()
    scene.play.from_broker(scene.response_frame(results(("a", 0, None))))
    scene.play.loop.until(lambda: bool(scene.stored.commits))

    assert [change.topic for change in scene.stored.commits] == ["a"]
