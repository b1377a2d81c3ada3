"""Checks whether a broker of the cluster responds, which brokers exist, and whether the cluster requires logins.

The proxy sends ApiVersions, to which every broker responds before authentication, and then Metadata without topics. A
broker that requires logins responds to Metadata only after one (`upstream.sasl`). Without a login, the proxy learns the
brokers from responses to clients and from `upstream.brokers`.
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, replace

from sluicegate.config.upstream import Upstream
from sluicegate.config.values.address import HostPort, reachable_address
from sluicegate.protocol.api import ApiKey
from sluicegate.protocol.messages.cluster import METADATA_REQUEST, METADATA_RESPONSE
from sluicegate.proxy.cluster.broker_client import (
    BrokerClient,
    NoBrokerResponses,
    NotABroker,
    OwnLoginRejected,
    ask_any_broker,
)
from sluicegate.proxy.cluster.response_bodies import read_response
from sluicegate.proxy.network.tls.contexts import TlsContext

_OTHERS_SECONDS = 1.5
_NO_TOPICS_SINCE = 1
_MAX_ELEMENTS = 2000  # covers brokers only, because the request names no topic


@dataclass(frozen=True, slots=True)
class DiscoveryResult:
    """The result of a check.

    `brokers` and `cluster_id` are None if Metadata requires a login. `cluster_id` is also None before version 2 of
    Metadata. `reason` explains why no broker responded; it is None if one did. `is_no_broker` is true if an address
    responded, but not as a broker. `needs_login` tells whether the cluster requires logins at these addresses; it is
    None if that is unknown. `login_rejected` explains why `upstream.sasl` was rejected. The proxy may still serve
    clients then, because they use their own logins.
    """

    answered_by: HostPort | None
    brokers: dict[int, HostPort] | None
    reason: str | None
    needs_login: bool | None = None
    login_rejected: str | None = None
    is_no_broker: bool = False
    cluster_id: str | None = None


@dataclass(frozen=True, slots=True)
class _Response:
    brokers: dict[int, HostPort] | None = None
    closed_instead: bool = False
    cluster_id: str | None = None


async def discover_cluster(
    upstream: Upstream, tls: TlsContext | None, mark: int, asks_brokers: bool = True
) -> DiscoveryResult:
    """Query the first address that responds.

    `mark` is the correlation id of the requests. If `asks_brokers` is false, only ApiVersions is sent, and the fields
    that need Metadata stay unknown.
    """
    try:
        address, response = await ask_any_broker(upstream, tls, _brokers if asks_brokers else _nothing, mark)
        if response.brokers == {}:
            address, response = await _one_that_lists_brokers(upstream, tls, mark, address) or (address, response)
    except OwnLoginRejected as error:
        return DiscoveryResult(error.address, None, None, True if error.wants_logins else None, str(error))
    except NoBrokerResponses as error:
        return DiscoveryResult(None, None, str(error), is_no_broker=isinstance(error, NotABroker))
    seen = DiscoveryResult(address, response.brokers, None, cluster_id=response.cluster_id)
    if upstream.sasl is not None:
        return replace(seen, needs_login=True)  # a listener without logins rejects SASL requests
    if response.closed_instead:
        return await _discover_again(seen, upstream, tls, mark)
    return replace(seen, needs_login=False if response.brokers is not None else None)


async def _discover_again(
    seen: DiscoveryResult, upstream: Upstream, tls: TlsContext | None, mark: int
) -> DiscoveryResult:
    """Check again whether a login is required.

    A broker that shuts down may close a connection once. Only a broker that requires a login closes two in a row.
    """
    try:
        _, response = await ask_any_broker(upstream, tls, _brokers, mark)
    except NoBrokerResponses:
        return seen
    if response.closed_instead:
        return replace(seen, needs_login=True)
    return replace(seen, brokers=response.brokers, needs_login=False if response.brokers is not None else None)


async def _one_that_lists_brokers(
    upstream: Upstream, tls: TlsContext | None, mark: int, asked: HostPort
) -> tuple[HostPort, _Response] | None:
    """Query the other addresses immediately for one that lists brokers.

    A broker that has just started, or has lost its controller, may list no brokers. Clients of that broker find no
    leader meanwhile, so the wait for addresses that do not respond is short.
    """
    others = [replace(upstream, bootstrap=(other,)) for other in upstream.bootstrap if other != asked]
    with suppress(TimeoutError):
        async with asyncio.timeout(_OTHERS_SECONDS), asyncio.TaskGroup() as group:
            asking = [group.create_task(_asked(other, tls, mark)) for other in others]
            for each in asyncio.as_completed(asking):
                found = await each
                if found is not None and found[1].brokers:
                    for task in asking:
                        task.cancel()
                    return found
    return None


async def _asked(upstream: Upstream, tls: TlsContext | None, mark: int) -> tuple[HostPort, _Response] | None:
    with suppress(NoBrokerResponses):
        return await ask_any_broker(upstream, tls, _brokers, mark)
    return None


async def _nothing(_client: BrokerClient) -> _Response:
    return _Response()


async def _brokers(client: BrokerClient) -> _Response:
    version = client.version_of(ApiKey.METADATA)
    if version < _NO_TOPICS_SINCE:
        return _Response()
    try:
        response = await client.ask_raw(ApiKey.METADATA, METADATA_REQUEST, {"topics": []})
    except (EOFError, ConnectionError):
        return _Response(closed_instead=True)
    value = read_response(METADATA_RESPONSE, response, version, _MAX_ELEMENTS)
    advertised = {node["node_id"]: reachable_address(node["host"], node["port"]) for node in value["brokers"]}
    return _Response(
        {node_id: address for node_id, address in advertised.items() if address is not None and node_id >= 0},
        cluster_id=value.get("cluster_id"),
    )
