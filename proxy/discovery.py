"""The proxy's own look at the cluster: does a broker answer, and which brokers are there?

It asks ApiVersions, which any broker answers before authentication, and then Metadata without topics, which brokers
that want a login answer only if the proxy has one (`upstream.sasl`); otherwise brokers are learnt from clients' answers
and from `upstream.brokers`.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from config.address import HostPort
from config.model import Sasl
from protocol.api import ApiKey
from protocol.errors import SenderError
from protocol.messages import metadata
from proxy.broker_client import LoginRefused, connect_to_broker
from proxy.tls import TlsContext
from proxy.upstream import reason_of

_NO_TOPICS_SINCE = 1


@dataclass(frozen=True, slots=True)
class Discovered:
    """What a look found. `brokers` is None where Metadata is not answered without a login."""

    answered_by: HostPort | None
    brokers: dict[int, HostPort] | None
    reasons: tuple[str, ...]


async def look_at_cluster(
    addresses: Sequence[HostPort], tls: TlsContext | None, sasl: Sasl | None, timeout_seconds: float
) -> Discovered:
    """Ask the first address that answers."""
    reasons: list[str] = []
    for address in addresses:
        try:
            async with asyncio.timeout(timeout_seconds):
                brokers = await _ask(address, tls, sasl)
            return Discovered(address, brokers, tuple(reasons))
        except TimeoutError:
            reasons.append(f"{address}: no answer within {timeout_seconds} s")
        except LoginRefused as error:
            reasons.append(f"{address}: upstream.sasl is refused: {error}")
        except OSError as error:
            reasons.append(f"{address}: {reason_of(error)}")
        except (SenderError, EOFError) as error:
            reasons.append(f"{address}: answers, but not as a Kafka broker ({error})")
    return Discovered(None, None, tuple(reasons))


async def _ask(address: HostPort, tls: TlsContext | None, sasl: Sasl | None) -> dict[int, HostPort] | None:
    client = await connect_to_broker(address, tls, sasl)
    try:
        if client.version_of(ApiKey.METADATA) < _NO_TOPICS_SINCE:
            return None
        try:
            answer = await client.ask_raw(ApiKey.METADATA, metadata.REQUEST, {"topics": []})
        except (EOFError, ConnectionError):
            return None  # a broker that wants a login closes the connection
        head, _ = metadata.RESPONSE_HEAD.parse(answer, client.version_of(ApiKey.METADATA))
        return {b["node_id"]: HostPort(b["host"], b["port"]) for b in head["brokers"]}
    finally:
        client.close()
