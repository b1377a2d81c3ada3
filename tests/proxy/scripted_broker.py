"""Runs a broker whose responses a test selects: valid responses, garbage, silence, or a closed connection."""

import asyncio
import struct
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

from sluicegate.config.values.address import HostPort
from sluicegate.protocol.api import APIS, ApiKey
from sluicegate.protocol.headers import build_response_header, parse_request_header
from sluicegate.protocol.messages.cluster import DESCRIBE_CONFIGS_REQUEST, DESCRIBE_CONFIGS_RESPONSE, METADATA_RESPONSE
from sluicegate.protocol.messages.handshake import API_VERSIONS_RESPONSE
from sluicegate.protocol.messages.schema import Value

CLOSE, SILENCE = None, b""
Answer = Callable[[int, bytes], "bytes | RawResponse | None"]
"""Returns the body of the response, or CLOSE or SILENCE, given a request's version and body."""


class RawResponse(bytes):
    """A response that is sent unchanged, without size and header."""


class ScriptedBroker:
    """A broker that listens within a `with` block. `asked`: number of requests by API. `connections`: number of
    connections so far. `clients`: the ids of all clients. `client`: the id of the client of the current request. While
    `may_response` is cleared the broker sends no responses.
    """

    def __init__(self, answers: dict[ApiKey, Answer]) -> None:
        self.answers: dict[ApiKey, Answer] = {ApiKey.API_VERSIONS: api_versions_response(), **answers}
        self.connections = 0
        self.open = 0
        self.most_open = 0
        self.asked: dict[ApiKey, int] = {}
        self.client = ""
        self.clients: set[str] = set()
        self.may_response = asyncio.Event()
        self.may_response.set()
        self._ended = asyncio.Event()
        self._serving: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.address = HostPort("127.0.0.1", self._server.sockets[0].getsockname()[1])
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._server.close()
        for serving in self._serving:
            serving.cancel()
        await asyncio.gather(*self._serving)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving = asyncio.current_task()
        assert serving is not None
        self._serving.add(serving)
        serving.add_done_callback(self._serving.discard)
        self.connections += 1
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            with suppress(EOFError, ConnectionError, asyncio.CancelledError):
                await self._response_all(reader, writer)
        finally:
            self.open -= 1
            writer.transport.abort()

    async def _response_all(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            frame = await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
            key, version = struct.unpack_from(">hh", frame)
            api = APIS[ApiKey(key)]
            header = parse_request_header(frame, api.request_header_version(version))
            self.asked[ApiKey(key)] = self.asked.get(ApiKey(key), 0) + 1
            await self.may_response.wait()
            self.client = header.client_id or ""
            self.clients.add(self.client)
            respond_with_settings = self.answers[ApiKey(key)](version, frame[header.body_at :])
            if respond_with_settings is CLOSE:
                return
            if isinstance(respond_with_settings, RawResponse):
                writer.write(respond_with_settings)
            elif respond_with_settings == SILENCE:
                await self._until_gone(reader)
                return
            else:
                whole = (
                    build_response_header(header.correlation_id, api.response_header_version(version))
                    + respond_with_settings
                )
                writer.write(len(whole).to_bytes(4, "big") + whole)
            await writer.drain()

    async def _until_gone(self, reader: asyncio.StreamReader) -> None:
        ended = asyncio.ensure_future(self._ended.wait())
        gone = asyncio.ensure_future(reader.read())
        await asyncio.wait((ended, gone), return_when=asyncio.FIRST_COMPLETED)
        ended.cancel()
        gone.cancel()


def api_versions_response(*keys: ApiKey) -> Answer:
    """Return an ApiVersions response that offers these APIs, or all APIs if none is given, in every version."""
    offered = [
        {"api_key": key, "min_version": 0, "max_version": APIS[key].max_version} for key in keys or tuple(ApiKey)
    ]
    return lambda version, _: API_VERSIONS_RESPONSE.build({"error_code": 0, "api_keys": offered}, version)


def metadata_of_brokers(*found: tuple[int, str, int]) -> Answer:
    """Return a Metadata response with these brokers and no topic."""
    named = [{"node_id": node_id, "host": host, "port": port} for node_id, host, port in found]
    return lambda version, _: METADATA_RESPONSE.build({"brokers": named, "topics": []}, version)


def topic_settings(of: Callable[[str], Value | None]) -> Answer:
    """Return a DescribeConfigs response; `of` returns the settings of a topic, or None if the topic does not exist."""

    def respond_with_settings(version: int, body: bytes) -> bytes:
        asked = DESCRIBE_CONFIGS_REQUEST.parse(body, version)["resources"]
        return DESCRIBE_CONFIGS_RESPONSE.build(
            {"throttle_time_ms": 0, "results": [result_for(r["resource_name"], of(r["resource_name"])) for r in asked]},
            version,
        )

    return respond_with_settings


def asked_topics(version: int, body: bytes) -> list[str]:
    """Return the topics that a DescribeConfigs request names."""
    return [r["resource_name"] for r in DESCRIBE_CONFIGS_REQUEST.parse(body, version)["resources"]]


def result_for(topic: str, settings: Value | None, error_code: int | None = None) -> Value:
    """Return the entry of one topic in a DescribeConfigs response."""
    configs = [{"name": k, "value": v, "read_only": False, "is_sensitive": False} for k, v in (settings or {}).items()]
    code = error_code if error_code is not None else (3 if settings is None else 0)
    return {
        "error_code": code,
        "error_message": None,
        "resource_type": 2,
        "resource_name": topic,
        "configs": configs,
    }
