"""Limits ApiVersions responses to the versions that the proxy supports, so that it can parse what clients send."""

from functools import cache, lru_cache

from sluicegate.protocol.api import APIS, ApiKey
from sluicegate.protocol.errors import ErrorCode, MalformedMessage
from sluicegate.protocol.framing import Parts
from sluicegate.protocol.headers import build_response_header, response_body_at
from sluicegate.protocol.messages.handshake import API_VERSIONS_RESPONSE

_UNSUPPORTED_VERSION = ErrorCode.UNSUPPORTED_VERSION.to_bytes(2, "big")
# Brokers list about 60 APIs and a dozen features, in about half a KiB.
_MAX_VERSIONS_ELEMENTS = 2000
_MAX_VERSIONS_BYTES = 1 << 20
_MAX_BYTES_REMEMBERED = 4096
_RESPONSES_REMEMBERED = 64
_FETCH_OF_MAGIC_1 = 2


def cut_down_versions(version: int, frame: bytearray) -> Parts:
    """Return an ApiVersions response limited to the versions that the proxy supports. Raises MalformedMessage.

    A cluster's brokers send the same response on each connection, so recent results are cached.
    """
    if len(frame) > _MAX_VERSIONS_BYTES:
        raise MalformedMessage(f"ApiVersions response v{version}: {len(frame)} bytes, more than {_MAX_VERSIONS_BYTES}")
    body_at = response_body_at(frame, 0)
    body = bytes(memoryview(frame)[body_at:])
    cut_down = _remembered_versions if len(body) <= _MAX_BYTES_REMEMBERED else _cut_down_body
    return frame[:body_at], cut_down(version, body)


def versions_for_legacy_producers(version: int, frame: bytearray) -> Parts:
    """Return the same response, but with Produce from version 0 on, because the proxy converts v0 to v2.

    librdkafka 0.9 sends magic 1, which has timestamps, only if Fetch v2 is offered too. It sends its ApiVersions
    request in version 0.
    """
    head, body = cut_down_versions(version, frame)
    return head, _with_old_produce(version, bytes(body))


@lru_cache(maxsize=_RESPONSES_REMEMBERED)
def _with_old_produce(version: int, body: bytes) -> bytes:
    if body[:2] == _UNSUPPORTED_VERSION:  # such a response is in version 0, but newer clients can parse it
        return body
    value = API_VERSIONS_RESPONSE.parse(body, version, _MAX_VERSIONS_ELEMENTS)
    minima = {ApiKey.PRODUCE: 0} if version > 0 else {ApiKey.PRODUCE: 0, ApiKey.FETCH: _FETCH_OF_MAGIC_1}
    for offered in value["api_keys"]:
        offered["min_version"] = min(offered["min_version"], minima.get(offered["api_key"], offered["min_version"]))
    return API_VERSIONS_RESPONSE.build(value, version)


def _cut_down_body(version: int, body: bytes) -> bytes:
    """Return the limited body.

    A broker responds to an unknown version in version 0. librdkafka's mock cluster responds in an undefined layout,
    after which its clients retry in version 0. So the proxy responds in version 0.
    """
    if body[:2] == _UNSUPPORTED_VERSION:
        version = 0
        try:
            value = API_VERSIONS_RESPONSE.parse(body, version, _MAX_VERSIONS_ELEMENTS)
        except MalformedMessage:
            return _unsupported_body(max_version=0)
    else:
        value = API_VERSIONS_RESPONSE.parse(body, version, _MAX_VERSIONS_ELEMENTS)
    kept = []
    for offered in value["api_keys"]:
        api = APIS.get(offered["api_key"])
        if api is not None and offered["min_version"] <= api.max_version:
            kept.append({**offered, "max_version": min(offered["max_version"], api.max_version)})
    value["api_keys"] = kept
    return API_VERSIONS_RESPONSE.build(value, version)


_remembered_versions = lru_cache(maxsize=_RESPONSES_REMEMBERED)(_cut_down_body)


def unsupported_api_versions(correlation_id: int, max_version: int) -> bytes:
    """Return the response that a broker sends for an unknown ApiVersions version.

    It is a version 0 response with the supported range of this API.
    """
    return build_response_header(correlation_id, 0) + _unsupported_body(max_version)


@cache
def _unsupported_body(max_version: int) -> bytes:
    range_of_key = {"api_key": ApiKey.API_VERSIONS, "min_version": 0, "max_version": max_version}
    body = {"error_code": ErrorCode.UNSUPPORTED_VERSION, "api_keys": [range_of_key]}
    return API_VERSIONS_RESPONSE.build(body, 0)
