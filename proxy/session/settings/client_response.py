"""Creates the client's response to a request that was divided between the broker and sluicegate."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace

from sluicegate.protocol.api import APIS, ApiKey
from sluicegate.protocol.change_responses import (
    ChangeError,
    ChangeResponse,
    ChangeResult,
    encode_created_setting,
    encode_error,
    own_response,
    read_results,
    with_created_settings,
    with_results,
)
from sluicegate.protocol.errors import ErrorCode
from sluicegate.protocol.framing import Parts
from sluicegate.protocol.headers import response_body_at
from sluicegate.proxy.session.settings.described_topics import listed_settings
from sluicegate.proxy.session.settings.divided_request import REPEATED_LATER, DividedRequest
from sluicegate.proxy.session.settings.pieces import in_pieces
from sluicegate.proxy.session.settings.requested_values import After, is_ours
from sluicegate.proxy.session.topic_settings import Failures, SettingsChange, StoreFailure, TopicSettings

GiveWay = Callable[[], None]
_AUTHORIZATION = frozenset({ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED})


class BrokersResponse:
    """The broker's response to its part of the request. Raises MalformedMessage."""

    def __init__(self, api_key: int, version: int, frame: bytearray, give_way: GiveWay) -> None:
        self.frame = frame
        body_at = response_body_at(frame, APIS[api_key].response_header_version(version))
        self.read: ChangeResponse = read_results(api_key, version, frame, body_at, give_way)

    def refusals(self, divided: DividedRequest) -> dict[int, bytes]:
        """Return the broker's results for refused items, where the broker's error takes precedence over the proxy's."""
        results = {(each.kind, each.name): each for each in self.read.results}
        found = {}
        for number, refusal in divided.refused.items():
            item = divided.request.items[number]
            result = results.get((item.kind, item.name))
            if result is None or result.code == ErrorCode.NONE or refusal.after is After.NO_CHECK:
                continue
            if refusal.after is After.ALL_CHECKS or result.code in _AUTHORIZATION:
                found[number] = bytes(memoryview(self.frame)[result.start : result.end])
        return found

    def accepted(self, divided: DividedRequest, give_way: GiveWay) -> dict[int, SettingsChange]:
        """Return the changes for the items that the broker accepted, by item number."""
        if divided.request.is_validation:
            return {}
        results = {(each.kind, each.name): each for each in self.read.results}
        found = {}
        for number, change in divided.changes.items():
            give_way()
            item = divided.request.items[number]
            result = results.get((item.kind, item.name))
            if result is not None and result.code == ErrorCode.NONE:
                found[number] = replace(change, topic_id=result.topic_id)
        return found


def client_response(
    api_key: int,
    version: int,
    divided: DividedRequest,
    brokers: BrokersResponse,
    failures: Failures,
    stored: TopicSettings,
    give_way: GiveWay,
) -> Parts:
    """Return the response, in parts, to a request that was only partly sent to the broker.

    `failures` contains the failure of each topic whose settings could not be stored.
    """
    merging = _Merging(ApiKey(api_key), version, divided, failures, stored, give_way)
    return in_pieces(with_results(brokers.frame, brokers.read, list(merging.results(brokers))), give_way)


def refusing_response(
    api_key: int, version: int, correlation_id: int, divided: DividedRequest, give_way: GiveWay
) -> bytes:
    """Return the response to a request whose items are all refused."""
    results = []
    for number in divided.refused:
        give_way()
        results.append(_refusal(api_key, version, divided, number))
    return b"".join(in_pieces(own_response(api_key, version, correlation_id, results), give_way))


def _refusal(api_key: int, version: int, divided: DividedRequest, number: int) -> bytes:
    item = divided.request.items[number]
    answered = divided.answered.get(number)
    return answered or encode_error(api_key, version, item.kind, item.name, divided.refused[number].error)


class _Merging:
    def __init__(
        self,
        api: ApiKey,
        version: int,
        divided: DividedRequest,
        failures: Failures,
        stored: TopicSettings,
        give_way: GiveWay,
    ) -> None:
        self._api = api
        self._version = version
        self._divided = divided
        self._failures = failures
        self._stored = stored
        self._give_way = give_way

    def results(self, brokers: BrokersResponse) -> Iterator[bytes]:
        """Yield the results in the order of the request, then those for items that the request does not mention."""
        waiting: dict[tuple[int, str | None], deque[ChangeResult]] = {}
        for result in brokers.read.results:
            waiting.setdefault((result.kind, result.name), deque()).append(result)
        for number, item in enumerate(self._divided.request.items):
            self._give_way()
            of_item = waiting.get((item.kind, item.name))
            if number in self._divided.refused:
                yield _refusal(self._api, self._version, self._divided, number)
            elif of_item:
                yield self._result(number, of_item.popleft(), brokers)
        for left in waiting.values():
            for result in left:
                yield bytes(memoryview(brokers.frame)[result.start : result.end])

    def _result(self, number: int, result: ChangeResult, brokers: BrokersResponse) -> bytes:
        frame, change = brokers.frame, self._divided.changes.get(number)
        if change is not None and result.code == ErrorCode.NONE:
            failure = self._failures.get(change.topic)
            if failure is not None and (change.values or self._api is not ApiKey.CREATE_TOPICS):
                error = self._error(number, failure)
                return encode_error(self._api, self._version, result.kind, change.topic, error)
            if self._api is ApiKey.CREATE_TOPICS and result.count_at:
                settings = [
                    encode_created_setting(each.name, each.value, each.source)
                    for each in listed_settings(self._stored, change.topic, change.values)
                ]
                return b"".join(with_created_settings(frame, result, brokers.read.flexible, settings))
        return bytes(memoryview(frame)[result.start : result.end])

    def _error(self, number: int, failure: StoreFailure) -> ChangeError:
        """Return the error for a failure. It is retriable only if the broker has changed nothing.

        Otherwise the user must see the message, which clients do not show if they retry, and a retried CreateTopics
        would get TOPIC_ALREADY_EXISTS.
        """
        if self._api is ApiKey.CREATE_TOPICS:
            return ChangeError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"the topic was created, but its sluicegate settings could not be stored: {failure.reason}. Alter the "
                f"topic to set them",
            )
        item = self._divided.request.items[number]
        is_mixed = self._api is ApiKey.ALTER_CONFIGS or not all(map(is_ours, item.settings))
        others = "the broker's settings of this request are in force"
        if not is_mixed:
            others = "the broker has changed nothing of this topic"
        code = REPEATED_LATER if failure.is_temporary and not is_mixed else ErrorCode.UNKNOWN_SERVER_ERROR
        advice = "repeat the request" if failure.is_temporary else "repeat the request when this is corrected"
        return ChangeError(code, f"the sluicegate settings could not be stored: {failure.reason}; {others}: {advice}")
