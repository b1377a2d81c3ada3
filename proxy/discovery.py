"""The proxy's own look at the cluster: does a broker answer, and which brokers are there?

It asks ApiVersions, which any broker answers before authentication, and then Metadata without topics, which brokers
that want a login answer only if the proxy has one (`upstream.sasl`); otherwise brokers are learnt from clients' answers
and from `upstream.brokers`.
"""

from dataclasses import dataclass

from config.address import HostPort
from config.model import Upstream
from protocol.api import ApiKey
from protocol.messages import metadata
from proxy.broker_client import BrokerClient, NoBrokerAnswers, ask_any_broker
from proxy.tls import TlsContext

_NO_TOPICS_SINCE = 1


@dataclass(frozen=True, slots=True)
class Discovered:
    """What a look found. `brokers` is None where Metadata is not answered without a login; `reason` says why no broker
    answered, None when one did.
    """

    answered_by: HostPort | None
    brokers: dict[int, HostPort] | None
    reason: str | None


async def look_at_cluster(upstream: Upstream, tls: TlsContext | None) -> Discovered:
    """Ask the first address that answers."""
    try:
        address, brokers = await ask_any_broker(upstream, tls, _brokers)
    except NoBrokerAnswers as error:
        return Discovered(None, None, str(error))
    return Discovered(address, brokers, None)


async def _brokers(client: BrokerClient) -> dict[int, HostPort] | None:
    if client.version_of(ApiKey.METADATA) < _NO_TOPICS_SINCE:
        return None
    try:
        answer = await client.ask_raw(ApiKey.METADATA, metadata.REQUEST, {"topics": []})
    except (EOFError, ConnectionError):
        return None  # a broker that wants a login closes the connection
    head, _ = metadata.RESPONSE_HEAD.parse(answer, client.version_of(ApiKey.METADATA))
    return {b["node_id"]: HostPort(b["host"], b["port"]) for b in head["brokers"]}
