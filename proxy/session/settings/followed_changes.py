"""Finds which settings topics lose when a broker has accepted a request that names no sluicegate setting.

A topic that is deleted or recreated has no settings, and AlterConfigs deletes those that it does not name.
"""

from collections.abc import Callable

from sluicegate.protocol.api import APIS, ApiKey
from sluicegate.protocol.change_responses import TOPIC_RESOURCE, ChangeError, encode_error, read_results, with_results
from sluicegate.protocol.errors import ErrorCode
from sluicegate.protocol.framing import Parts
from sluicegate.protocol.headers import response_body_at
from sluicegate.proxy.session.settings.pieces import in_pieces
from sluicegate.proxy.session.topic_settings import Failures, SettingsChange, TopicSettings

GiveWay = Callable[[], None]


def topics_that_lose_settings(
    api_key: int, version: int, response: bytes | bytearray, stored: TopicSettings, give_way: GiveWay
) -> list[SettingsChange]:
    """Return the changes for the topics that the broker has changed. Raises MalformedMessage."""
    body_at = response_body_at(response, APIS[api_key].response_header_version(version))
    found = []
    for result in read_results(api_key, version, response, body_at, give_way).results:
        name, is_deleted = result.name, api_key == ApiKey.DELETE_TOPICS
        if name is None or result.kind != TOPIC_RESOURCE or result.code != ErrorCode.NONE:
            continue
        current = stored.settings_of(name)
        if current:
            removed = frozenset[str]() if is_deleted else frozenset(current)
            found.append(SettingsChange(name, result.topic_id, {}, removed, is_deleted))
    return found


def with_failures(
    api_key: int, version: int, response: bytes | bytearray, failures: Failures, give_way: GiveWay
) -> Parts:
    """Return the AlterConfigs response, in parts, with an error for each topic that keeps sluicegate settings."""
    body_at = response_body_at(response, APIS[api_key].response_header_version(version))
    read = read_results(api_key, version, response, body_at, give_way)
    view = memoryview(response)
    results: list[bytes | memoryview] = []
    for result in read.results:
        give_way()
        failure = failures.get(result.name or "") if result.kind == TOPIC_RESOURCE else None
        if failure is None or result.code != ErrorCode.NONE:
            results.append(view[result.start : result.end])
            continue
        message = (
            "the topic's sluicegate settings, which this request does not name, could not be deleted: "
            f"{failure.reason}; the broker's settings of this request are in force: repeat the request"
        )
        error = ChangeError(ErrorCode.UNKNOWN_SERVER_ERROR, message)
        results.append(encode_error(api_key, version, result.kind, result.name or "", error))
    return in_pieces(with_results(response, read, results), give_way)
