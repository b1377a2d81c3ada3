"""Runs a scripted session of a proxy with topic settings. What the broker and the client get is returned as values."""

import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from sluicegate.config.setting_keys import SETTING_KEYS, SettingKey
from sluicegate.protocol.api import APIS, ApiKey
from sluicegate.protocol.errors import ErrorCode
from sluicegate.protocol.headers import parse_request_header, response_body_at
from sluicegate.protocol.messages.cluster import DESCRIBE_CONFIGS_REQUEST, DESCRIBE_CONFIGS_RESPONSE
from sluicegate.protocol.messages.schema import MessageSchema, Value
from sluicegate.proxy.session.topic_settings import Failures, Requester, SettingRefusal, SettingsChange, StoreFailure
from tests.bounds.frames import sized_frame, sized_request
from tests.proxy.session.playbook import Playbook, replace_produce_dependencies
from tests.wire.topic_changes import SCHEMAS

MODE, OWNER, CLIENTS = "sluicegate.mode", "sluicegate.owner", "sluicegate.enforce.clients"
KEYS = [SETTING_KEYS[name] for name in (MODE, OWNER, CLIENTS)]
_ALL = {
    **SCHEMAS,
    "DescribeConfigsRequest": DESCRIBE_CONFIGS_REQUEST,
    "DescribeConfigsResponse": DESCRIBE_CONFIGS_RESPONSE,
}
_CORRELATION_ID = 7


class StoredSettings:
    """Topic settings in memory. A value `bad`, and a key that is not in KEYS, is refused.

    `failure` is why nothing can be stored, if it is set. `report_later` keeps the reports of `commit` in `reports`.
    `are_known` is false before the settings are read; then `waiting` has the reports of `await_known`.
    """

    def __init__(self, settings: Mapping[str, Mapping[str, str]]) -> None:
        self.settings = {topic: dict(values) for topic, values in settings.items()}
        self.refusals: list[tuple[str, dict[str, str]]] = []
        self.commits: list[SettingsChange] = []
        self.requesters: list[Requester] = []
        self.failure: StoreFailure | None = None
        self.report_later = False
        self.reports: list[Callable[[], None]] = []
        self.are_known = True
        self.waiting: list[Callable[[], None]] = []

    def await_known(self, report: Callable[[], None]) -> None:
        self.waiting.append(report)

    def settings_of(self, topic: str) -> Mapping[str, str]:
        return self.settings.get(topic, {})

    def keys_of(self, topic: str) -> Sequence[SettingKey]:
        return KEYS

    def refusal(self, topic: str, values: Mapping[str, str]) -> SettingRefusal | None:
        assert threading.current_thread() is not threading.main_thread()
        self.refusals.append((topic, dict(values)))
        for name, value in values.items():
            if value == "bad" or name not in {key.name for key in KEYS}:
                return SettingRefusal(ErrorCode.INVALID_CONFIG, f"{name} of {topic} is bad")
        return None

    def commit(
        self, changes: Sequence[SettingsChange], requester: Requester, report: Callable[[Failures], None]
    ) -> None:
        self.commits += changes
        self.requesters.append(requester)
        failures = {change.topic: self.failure for change in changes if self.failure is not None}
        if self.report_later:
            self.reports.append(partial(report, failures))
        else:
            report(failures)


class Scene:
    """One session, whose client sends one request of an API and version at a time."""

    def __init__(
        self,
        api: ApiKey,
        version: int,
        settings: Mapping[str, Mapping[str, str]] | None = None,
        has_fast_path: bool = False,
        **environment: str,
    ) -> None:
        self.api = APIS[api]
        self.version = version
        self.stored = StoredSettings(settings or {})
        change = partial(replace_produce_dependencies, topic_settings=self.stored)
        self.play = Playbook(has_fast_path, change, **environment)

    def schema(self, kind: str) -> MessageSchema:
        return _ALL[self.api.name + kind]

    def frame(self, value: Value, client_id: bytes = b"terraform") -> bytes:
        body = self.schema("Request").build(value, self.version)
        return sized_request(self.api.key, self.version, body, _CORRELATION_ID, client_id)

    def response_frame(self, value: Value) -> bytes:
        tags = b"\0" if self.api.response_header_version(self.version) else b""
        body = self.schema("Response").build(value, self.version)
        return sized_frame(struct.pack(">i", _CORRELATION_ID) + tags + body)

    def sends(self, value: Value) -> Any:
        """Send a request; return what the broker gets, as a value, or None if the client gets a response."""
        self.sends_frame(self.frame(value))
        return self.brokers_request() if self.play.broker.sent else None

    def sends_frame(self, frame: bytes) -> None:
        """Send a frame, and wait until the broker or the client gets something."""
        self.play.from_client(frame)
        play = self.play
        play.loop.until(lambda: bool(play.broker.sent or play.client.sent or play.client.closed))

    def brokers_request(self) -> Value:
        frame = bytes(self.play.broker.sent)
        (size,) = struct.unpack_from(">i", frame)
        assert size == len(frame) - 4
        header = parse_request_header(frame[4:], self.api.request_header_version(self.version))
        assert (header.correlation_id, header.client_id) == (_CORRELATION_ID, "terraform")
        return self.schema("Request").parse(frame[4 + header.body_at :], self.version)

    def broker_validates(self, value: Value) -> Any:
        """Deliver the response to the first of two requests; return the second one, or None if there is none."""
        self.play.broker.sent.clear()
        self.play.from_broker(self.response_frame(value))
        self.play.loop.until(lambda: bool(self.play.broker.sent or self.play.client.sent))
        return self.brokers_request() if self.play.broker.sent else None

    def broker_responds(self, value: Value) -> Value:
        """Deliver the broker's response; return the client's as a value."""
        self.broker_sends(self.response_frame(value))
        return self.clients_response()

    def broker_sends(self, frame: bytes) -> None:
        """Deliver a frame of the broker, and wait until the client gets something."""
        self.play.from_broker(frame)
        self.play.loop.until(lambda: bool(self.play.client.sent or self.play.client.is_closing()))

    def clients_response(self) -> Value:
        frame = bytes(self.play.client.sent)
        size, correlation_id = struct.unpack_from(">ii", frame)
        assert (size, correlation_id) == (len(frame) - 4, _CORRELATION_ID)
        at = 4 + response_body_at(frame[4:], self.api.response_header_version(self.version))
        return self.schema("Response").parse(frame[at:], self.version)

    @property
    def counters(self) -> Any:
        return self.play.parts.counters
