"""Handles requests that change or describe topics.

No client may change the proxies' own topics (`state`). Other requests are forwarded unchanged or, if policies are topic
settings, handled by `sluicegate.proxy.session.settings.handler`.

Only the configuration determines which topics are the proxies' own. The client's own broker resolves topic ids.
"""

from sluicegate.protocol.api import Api, ApiHandling
from sluicegate.protocol.errors import ErrorCode
from sluicegate.protocol.headers import build_response_header
from sluicegate.protocol.messages.schema import Value
from sluicegate.proxy.responses.refused_changes import (
    MOST_ELEMENTS,
    TOPIC_CHANGES,
    Topic,
    TopicChange,
    refusal_of_own_topics,
)
from sluicegate.proxy.session.broker_errors import expect_code
from sluicegate.proxy.session.client.identity import ClientIdentity, read_header
from sluicegate.proxy.session.effect import Steps
from sluicegate.proxy.session.in_flight import InFlightRequest
from sluicegate.proxy.session.produce.dependencies import ProduceDependencies
from sluicegate.proxy.session.produce.effects import ForwardAsItCame, ResolveNames, Respond
from sluicegate.proxy.session.reports import SessionCounts, SessionLines
from sluicegate.proxy.session.request_runner import Perform, RequestRunner
from sluicegate.proxy.session.settings.handler import HANDLED_APIS, TopicSettingHandler

_GUARD, _DESCRIBE = ApiHandling.GUARD, ApiHandling.DESCRIBE
_REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED.name
_DELETE_TOPICS, _IDS_SINCE = "DeleteTopics", 6


class TopicChangeHandler:
    """One session's handler.

    If `settings` is None, no policy is a topic setting. `perform` performs the effects.
    """

    def __init__(
        self,
        shared: ProduceDependencies,
        identity: ClientIdentity,
        runner: RequestRunner,
        perform: Perform,
        settings: TopicSettingHandler | None,
        counts: SessionCounts,
        log: SessionLines,
    ) -> None:
        self._shared = shared
        self._own_topics = shared.own_topics
        self._as_bytes = [name.encode() for name in shared.own_topics]
        self._identity = identity
        self._runner = runner
        self._perform = perform
        self._settings = settings
        self._counts = counts
        self._log = log

    def gathers(self, handling: ApiHandling) -> bool:
        """Return whether the handler needs complete requests for APIs with this handling."""
        return handling is _GUARD or (handling is _DESCRIBE and self._settings is not None)

    def take(self, api: Api, version: int, correlation_id: int, frame: bytearray) -> None:
        """Forward or reject a complete request. Raises SenderError if a request that must be read is malformed."""
        self._counts.slow_requests[api.name] += 1
        self._runner.run(self._handle(api, version, correlation_id, frame), self._perform)

    def _handle(self, api: Api, version: int, correlation_id: int, frame: bytearray) -> Steps[None]:
        came = self._shared.clock.now()
        is_refused = yield from self._refuse_change_of_own_topic(api, version, correlation_id, frame)
        if is_refused:
            return
        if self._settings is not None and api.key in HANDLED_APIS:
            yield from self._settings.handle(api, version, correlation_id, frame)
            return
        in_flight = expect_code(InFlightRequest(correlation_id), api.key, version)
        self._shared.clock.sent(api.key, came, in_flight)
        yield from ForwardAsItCame(frame, in_flight)

    def _refuse_change_of_own_topic(self, api: Api, version: int, correlation_id: int, frame: bytearray) -> Steps[bool]:
        """Reject a request that changes one of the proxies' own topics, and return whether it does."""
        change = TOPIC_CHANGES.get(api.name)
        has_ids = bool(self._own_topics) and api.name == _DELETE_TOPICS and version >= _IDS_SINCE
        if change is None or not (has_ids or any(name in frame for name in self._as_bytes)):
            return False
        request = self._read(change, api, version, frame)
        topics = list(change.topics(request))
        yield from self._resolve(topics)
        refused = next((topic for topic in topics if self._is_own(topic)), None)
        if refused is None:
            return False
        self._counts.request_errors[api.name, _REFUSED] += 1
        self._log.topic_change_refused(self._identity, api.name, self._name_of(refused))
        header = build_response_header(correlation_id, api.response_header_version(version))
        body = change.response.build(change.rejection(request, refusal_of_own_topics(self._is_own)), version)
        yield from Respond(InFlightRequest(response=header + body))
        return True

    def _read(self, change: TopicChange, api: Api, version: int, frame: bytearray) -> Value:
        """Parse a request that may name one of the proxies' own topics. Raises SenderError."""
        body = memoryview(frame)[read_header(self._identity, api, version, frame).body_at :]
        return change.request.parse(body, version, MOST_ELEMENTS)

    def _resolve(self, topics: list[Topic]) -> Steps[None]:
        ids = [topic for topic in topics if isinstance(topic, bytes)]
        names = self._shared.names
        while missing := names.missing(ids, self._shared.now_ms()):
            yield from ResolveNames(missing)

    def _name_of(self, topic: Topic) -> str | None:
        return topic if isinstance(topic, str) else self._shared.names.by_id.get(topic)

    def _is_own(self, topic: Topic) -> bool:
        return self._name_of(topic) in self._own_topics
