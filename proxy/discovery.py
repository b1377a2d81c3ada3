"""The proxy's own look at the cluster: does a broker answer, and which brokers are there?

It asks ApiVersions, which any broker answers before authentication, and then Metadata without topics, which brokers
that want a login do not answer; then brokers are learnt from clients' answers and from `upstream.brokers` instead.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from config.address import HostPort
from protocol.api import APIS, ApiKey
from protocol.errors import SenderError
from protocol.framing import frame_of
from protocol.headers import build_request_header, response_body_at
from protocol.messages import api_versions, metadata
from proxy.tls import TlsContext
from proxy.upstream import reason_of

_CLIENT_ID = "sluicegate"
_MAX_ANSWER_BYTES = 16 << 20
_NO_TOPICS_SINCE = 1


@dataclass(frozen=True, slots=True)
class Discovered:
    """What a look found. `brokers` is None where Metadata is not answered without a login."""

    answered_by: HostPort | None
    brokers: dict[int, HostPort] | None
    reasons: tuple[str, ...]


async def look_at_cluster(addresses: Sequence[HostPort], tls: TlsContext | None, timeout_seconds: float) -> Discovered:
    """Ask the first address that answers."""
    reasons: list[str] = []
    for address in addresses:
        try:
            async with asyncio.timeout(timeout_seconds):
                brokers = await _ask(address, tls)
            return Discovered(address, brokers, tuple(reasons))
        except TimeoutError:
            reasons.append(f"{address}: no answer within {timeout_seconds} s")
        except OSError as error:
            reasons.append(f"{address}: {reason_of(error)}")
        except (SenderError, EOFError) as error:
            reasons.append(f"{address}: answers, but not as a Kafka broker ({error})")
    return Discovered(None, None, tuple(reasons))


async def _ask(address: HostPort, tls: TlsContext | None) -> dict[int, HostPort] | None:
    context = tls.current() if tls is not None else None
    reader, writer = await asyncio.open_connection(address.host, address.port, ssl=context)
    try:
        versions = await _call(reader, writer, ApiKey.API_VERSIONS, 0, b"")
        offered = {
            entry["api_key"]: entry["max_version"] for entry in api_versions.RESPONSE.parse(versions, 0)["api_keys"]
        }
        version = min(offered.get(ApiKey.METADATA, -1), APIS[ApiKey.METADATA].max_version)
        if version < _NO_TOPICS_SINCE:
            return None
        try:
            answer = await _call(
                reader, writer, ApiKey.METADATA, version, metadata.REQUEST.build({"topics": []}, version)
            )
        except (EOFError, ConnectionError):
            return None  # a broker that wants a login closes the connection
        head, _ = metadata.RESPONSE_HEAD.parse(answer, version)
        return {b["node_id"]: HostPort(b["host"], b["port"]) for b in head["brokers"]}
    finally:
        writer.close()


async def _call(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, key: ApiKey, version: int, body: bytes
) -> bytes:
    api = APIS[key]
    header = build_request_header(key, version, 1, _CLIENT_ID, api.request_header_version(version))
    writer.write(frame_of(header, body))
    await writer.drain()
    size = int.from_bytes(await reader.readexactly(4), "big")
    if size > _MAX_ANSWER_BYTES:
        raise SenderError(f"an answer of {size} bytes")
    answer = await reader.readexactly(size)
    return answer[response_body_at(answer, api.response_header_version(version)) :]
