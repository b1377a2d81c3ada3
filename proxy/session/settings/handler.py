"""Handles clients' requests that create, alter, delete or describe topics with sluicegate settings.

The client's broker decides first, on the client's own connection, so the cluster's own authorization applies. A request
that contains no such settings, and concerns only topics without them, is forwarded unchanged, as is its response.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from sluicegate.config.setting_keys import PREFIX
from sluicegate.protocol.api import Api, ApiKey
from sluicegate.protocol.change_requests import read_change
from sluicegate.protocol.errors import MalformedMessage, MalformedResponse
from sluicegate.protocol.framing import Parts
from sluicegate.proxy.session.broker_errors import expect_code
from sluicegate.proxy.session.client.identity import ClientIdentity, read_header
from sluicegate.proxy.session.effect import Steps
from sluicegate.proxy.session.in_flight import InFlightRequest
from sluicegate.proxy.session.produce.effects import ForwardAsItCame, Respond
from sluicegate.proxy.session.request_clock import RequestClock
from sluicegate.proxy.session.settings.client_response import BrokersResponse, client_response, refusing_response
from sluicegate.proxy.session.settings.described_topics import asked_topics, described
from sluicegate.proxy.session.settings.divided_request import DividedRequest, divide
from sluicegate.proxy.session.settings.effects import (
    AskClientsBroker,
    AwaitFirstRead,
    Deliver,
    InBackground,
    StoreSettings,
)
from sluicegate.proxy.session.settings.followed_changes import topics_that_lose_settings, with_failures
from sluicegate.proxy.session.settings.setting_reports import SettingReports
from sluicegate.proxy.session.topic_settings import Failures, SettingsChange, TopicSettings

T = TypeVar("T")
GiveWay = Callable[[], None]
_PREFIX = PREFIX.encode()
# Up to this size, walking a message takes less time than waking a thread.
_SMALL_BYTES = 4096
# The search for a name takes half a millisecond per megabyte.
_SEARCHED_BYTES = 1 << 20


class TopicSettingHandler:
    """One session's handler."""

    def __init__(
        self, stored: TopicSettings, identity: ClientIdentity, clock: RequestClock, reports: SettingReports
    ) -> None:
        self._stored = stored
        self._identity = identity
        self._clock = clock
        self._reports = reports

    def handle(self, api: Api, version: int, correlation_id: int, frame: bytearray) -> Steps[None]:
        """Handle a complete request. Raises SenderError if the request is malformed."""
        body_at = read_header(self._identity, api, version, frame).body_at
        request = _Request(api, version, correlation_id, frame, body_at, self._clock.now())
        names_settings = api.key in _WITH_SETTINGS and (yield from _may_name_settings(frame))
        if (names_settings or api.key in _ABOUT_KNOWN) and not self._stored.are_known:
            yield from AwaitFirstRead()
        if api.key == ApiKey.DESCRIBE_CONFIGS:
            yield from self._describe(request)
        elif names_settings:
            yield from self._change(request)
        elif api.key in _FOLLOWED:
            yield from self._follow(request)
        else:
            yield from self._forward(request)

    def _forward(self, request: "_Request") -> Steps[None]:
        in_flight = expect_code(InFlightRequest(request.correlation_id), request.api.key, request.version)
        self._clock.sent(request.api.key, request.arrived, in_flight)
        yield from ForwardAsItCame(request.frame, in_flight)

    def _describe(self, request: "_Request") -> Steps[None]:
        version, frame = request.version, request.frame
        asked = yield from _read(partial(asked_topics, version, frame, request.body_at, self._stored), frame)
        if not asked.topics:
            yield from self._forward(request)
            return
        response = yield from request.ask((frame,))
        try:
            whole = yield from InBackground(partial(described, version, response, asked, self._stored))
        except MalformedMessage as error:
            raise MalformedResponse(str(error)) from error
        yield from Deliver(whole)

    def _change(self, request: "_Request") -> Steps[None]:
        """Divide a request that names a sluicegate setting, and ask the broker about its part first.

        An error in a setting does not hide an error that a broker would have found earlier, such as a missing
        permission to alter the topic.
        """
        key, version = request.api.key, request.version
        divided = yield from InBackground(partial(divide, key, version, request.frame, request.body_at, self._stored))
        if divided.is_foreign:
            yield from self._follow(request) if key in _FOLLOWED else self._forward(request)
            return
        if divided.to_validate is not None:
            frame = yield from request.ask((divided.to_validate,))
            divided.answered = yield from _read_response(partial(_refusals, key, version, frame, divided), frame)
        if divided.refused:
            refused = yield from InBackground(divided.refused_by_us)
            if refused is not None:
                self._reports.refused(request.api, refused)
        if divided.for_broker is None:
            refusing = partial(refusing_response, key, version, request.correlation_id, divided)
            yield from Respond(InFlightRequest(response=(yield from InBackground(refusing))))
            return
        frame = yield from request.ask((divided.for_broker,))
        brokers, accepted = yield from _read_response(partial(_accepted, key, version, frame, divided), frame)
        failures = yield from self._store(request, list(accepted.values()))
        whole = yield from InBackground(
            partial(client_response, key, version, divided, brokers, failures, self._stored)
        )
        yield from Deliver(whole)

    def _follow(self, request: "_Request") -> Steps[None]:
        """Forward a request that names no sluicegate setting. Then remove the stored settings that topics lose."""
        key, version, frame = request.api.key, request.version, request.frame
        response = yield from request.ask((frame,))
        losing = partial(topics_that_lose_settings, key, version, response, self._stored)
        lost = yield from _read_response(losing, response)
        if lost and key != ApiKey.DELETE_TOPICS:
            read = yield from _read(partial(read_change, key, version, frame, request.body_at, PREFIX), frame)
            lost = [] if read.is_validation else lost
        failures = yield from self._store(request, lost)
        if failures and key == ApiKey.ALTER_CONFIGS:  # a topic that is gone or new has no settings in any case
            yield from Deliver((yield from InBackground(partial(with_failures, key, version, response, failures))))
            return
        yield from Deliver((response,))

    def _store(self, request: "_Request", changes: list[SettingsChange]) -> Steps[Failures]:
        if not changes:
            return {}
        failures = yield from StoreSettings(changes)
        self._reports.stored(request.api, changes, failures)
        return failures


@dataclass(frozen=True, slots=True)
class _Request:
    """A request that was complete at `arrived` (s)."""

    api: Api
    version: int
    correlation_id: int
    frame: bytearray
    body_at: int
    arrived: float

    def ask(self, parts: Parts) -> AskClientsBroker:
        """Return the effect that asks the client's broker."""
        return AskClientsBroker(parts, self.correlation_id, self.api.key, self.arrived)


_WITH_SETTINGS = frozenset({ApiKey.CREATE_TOPICS, ApiKey.ALTER_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS})
# A request for these APIs depends on settings that it does not name.
_ABOUT_KNOWN = frozenset({ApiKey.DESCRIBE_CONFIGS, ApiKey.ALTER_CONFIGS})
_FOLLOWED = frozenset({ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.ALTER_CONFIGS})
HANDLED_APIS = _WITH_SETTINGS | _FOLLOWED | {ApiKey.DESCRIBE_CONFIGS}
"""The APIs whose requests the handler takes."""


def _may_name_settings(frame: bytearray) -> Steps[bool]:
    """Return whether the prefix of sluicegate's settings occurs anywhere in a request."""
    if len(frame) <= _SEARCHED_BYTES:
        return _PREFIX in frame
    found = yield from InBackground(partial(_has_prefix, frame))
    return found


def _has_prefix(frame: bytearray, give_way: GiveWay) -> bool:
    for start in range(0, len(frame), _SEARCHED_BYTES):
        give_way()
        if frame.find(_PREFIX, start, start + _SEARCHED_BYTES + len(_PREFIX) - 1) >= 0:
            return True
    return False


def _read(work: Callable[[GiveWay], T], message: bytes | bytearray) -> Steps[T]:
    """Do work whose time depends only on a message's size."""
    if len(message) <= _SMALL_BYTES:
        return work(_go_on)
    result = yield from InBackground(work)
    return result


def _read_response(work: Callable[[GiveWay], T], response: bytearray) -> Steps[T]:
    """Parse a broker's response. Its errors count as the broker's."""
    try:
        result = yield from _read(work, response)
    except MalformedMessage as error:
        raise MalformedResponse(str(error)) from error
    return result


def _go_on() -> None:
    """Do nothing, because a small message delays no other work."""


def _refusals(key: int, version: int, frame: bytearray, divided: DividedRequest, give_way: GiveWay) -> dict[int, bytes]:
    return BrokersResponse(key, version, frame, give_way).refusals(divided)


def _accepted(
    key: int, version: int, frame: bytearray, divided: DividedRequest, give_way: GiveWay
) -> tuple[BrokersResponse, dict[int, SettingsChange]]:
    brokers = BrokersResponse(key, version, frame, give_way)
    return brokers, brokers.accepted(divided, give_way)
