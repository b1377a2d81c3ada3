"""The proxy's own check of the cluster: whether a broker responds, which brokers exist, and whether it requires logins.

It asks ApiVersions, which any broker answers before authentication, and then Metadata without topics, which brokers
that want a login answer only if the proxy has one (`upstream.sasl`); otherwise brokers are learnt from clients' answers
and from `upstream.brokers`.
"""

from dataclasses import dataclass, replace

from sluicegate.config.upstream import Upstream
from sluicegate.config.values.address import HostPort, reachable
from sluicegate.protocol.api import ApiKey
from sluicegate.protocol.messages.cluster import METADATA_REQUEST
from sluicegate.protocol.response_walks import addresses_in
from sluicegate.proxy.cluster.broker_client import BrokerClient, NoBrokerResponses, OwnLoginRejected, ask_any_broker
from sluicegate.proxy.network.tls.contexts import TlsContext

_NO_TOPICS_SINCE = 1


@dataclass(frozen=True, slots=True)
class Discovered:
    """What a look found. `brokers` is None where Metadata is not answered without a login; `reason` says why no broker
    answered, None when one did. `needs_login`: whether the cluster wants a login from everybody at the addresses that
    are used; None when that is not known. `login_rejected`: why `upstream.sasl` was not accepted; clients, who log in
    for themselves, can be served all the same.
    """

    answered_by: HostPort | None
    brokers: dict[int, HostPort] | None
    reason: str | None
    needs_login: bool | None = None
    login_rejected: str | None = None


@dataclass(frozen=True, slots=True)
class _Response:
    brokers: dict[int, HostPort] | None = None
    closed_instead: bool = False


async def look_at_cluster(upstream: Upstream, tls: TlsContext | None, mark: int) -> Discovered:
    """Ask the first address that answers; `mark` is the correlation id of the questions."""
    try:
        address, answer = await ask_any_broker(upstream, tls, _brokers, mark)
    except OwnLoginRejected as error:
        return Discovered(error.address, None, None, True if error.wants_logins else None, str(error))
    except NoBrokerResponses as error:
        return Discovered(None, None, str(error))
    seen = Discovered(address, answer.brokers, None)
    if upstream.sasl is not None:
        return replace(seen, needs_login=True)  # a listener without logins rejects them
    if answer.closed_instead:
        return await _look_again(seen, upstream, tls, mark)
    return replace(seen, needs_login=False if answer.brokers is not None else None)


async def _look_again(seen: Discovered, upstream: Upstream, tls: TlsContext | None, mark: int) -> Discovered:
    """A broker that goes down closes its connections too; one that greets again and closes again wants a login."""
    try:
        _, answer = await ask_any_broker(upstream, tls, _brokers, mark)
    except NoBrokerResponses:
        return seen
    if answer.closed_instead:
        return replace(seen, needs_login=True)
    return replace(seen, brokers=answer.brokers, needs_login=False if answer.brokers is not None else None)


async def _brokers(client: BrokerClient) -> _Response:
    version = client.version_of(ApiKey.METADATA)
    if version < _NO_TOPICS_SINCE:
        return _Response()
    try:
        answer = await client.ask_raw(ApiKey.METADATA, METADATA_REQUEST, {"topics": []})
    except (EOFError, ConnectionError):
        return _Response(closed_instead=True)
    nodes = addresses_in(ApiKey.METADATA, version, answer, 0).nodes
    told = {node.node_id: reachable(node.host, node.port) for node in nodes}
    return _Response({node_id: address for node_id, address in told.items() if address is not None and node_id >= 0})
