"""Checks that the advertised address leads to this proxy and to nothing else.

If the address is a broker's, clients bypass the proxy. If it leads nowhere, clients bootstrap and then reach no broker.
The check runs on this machine; clients on other machines may see a different result.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from sluicegate.config.listen import NODE_ID
from sluicegate.config.model import Config
from sluicegate.config.values.address import HostPort
from sluicegate.proxy.doctor.check_result import CheckResult, Level
from sluicegate.proxy.doctor.names import resolve_name
from sluicegate.proxy.doctor.ports import is_free
from sluicegate.proxy.doctor.running_proxy import identify, reachable_address
from sluicegate.proxy.network.listeners import CannotListen, bind

_ABOUT = "advertised address"
_SECONDS = 5.0
_FROM_ELSEWHERE = "connect from a client's machine too: this check sees only this machine"
_CORRECT = "correct listen.advertised_host, or the DNS, routes and load balancers that lead to it"


@dataclass(frozen=True, slots=True)
class AdvertisedCheck:
    """The results of the check. `running` is true if a proxy with this configuration is already running."""

    results: tuple[CheckResult, ...]
    running: bool = False


async def check(config: Config, brokers: Mapping[int, HostPort]) -> AdvertisedCheck:
    """Connect to the advertised address as a client would."""
    listen = config.listen
    if listen.bootstrap.port == 0:
        return AdvertisedCheck(
            (CheckResult(_ABOUT, Level.NOT_CHECKED, "listen.bootstrap leaves its port to the system"),)
        )
    bypassed = await _address_of_a_broker(config, brokers)
    if bypassed is not None:
        return AdvertisedCheck((bypassed,))
    host = listen.host_for_clients
    if listen.broker_host is not None:
        host = listen.broker_host.replace(NODE_ID, str(min(brokers, default=1)))
    address = HostPort(host, listen.bootstrap.port)
    is_resolved = await resolve_name(host) is not None
    if not is_free(listen.bootstrap):
        return await _of_a_running_proxy(config, address if is_resolved else reachable_address(listen.bootstrap))
    if not is_resolved:
        return AdvertisedCheck((CheckResult(_ABOUT, Level.NOT_CHECKED, f"this machine does not resolve {host}"),))
    return AdvertisedCheck((await _by_listening(listen.bootstrap, address),))


async def _address_of_a_broker(config: Config, brokers: Mapping[int, HostPort]) -> CheckResult | None:
    """Return a failure if an advertised address is a broker's, and None otherwise."""
    listen = config.listen
    ours = await resolve_name(listen.host_for_clients)
    if ours is None or listen.broker_host is not None:
        return None
    for address in (*brokers.values(), *config.upstream.bootstrap):
        theirs = await resolve_name(address.host)
        for node_id, port in [(None, listen.bootstrap.port), *((node, listen.port_of(node)) for node in brokers)]:
            if theirs is not None and address.port == port and ours & theirs:
                use = "for bootstrap" if node_id is None else f"for broker {node_id}"
                found = f"{listen.host_for_clients}:{port}, advertised {use}, is a broker's own address"
                advice = "choose other ports or another host for the proxy: clients would bypass it"
                return CheckResult(_ABOUT, Level.FAILURE, found, advice)
    return None


async def _by_listening(bound: HostPort, address: HostPort) -> CheckResult:
    """Listen briefly on the proxy's port, and check that a connection to the advertised address arrives there."""
    loop = asyncio.get_running_loop()
    try:
        listener = bind(bound)
    except CannotListen as error:
        return CheckResult(_ABOUT, Level.NOT_CHECKED, f"cannot listen on {error}")
    with listener:
        arrived = loop.create_task(loop.sock_accept(listener))
        reason: str | None = None
        try:
            async with asyncio.timeout(_SECONDS):
                _, writer = await asyncio.open_connection(address.host, address.port)
                ours = writer.get_extra_info("sockname")[:2]
                writer.close()
                theirs, peer = await arrived
                theirs.close()
            if peer[1] != ours[1]:
                reason = "another process accepted the connection, or its port was translated"
        except TimeoutError:
            reason = f"no connection arrived within {_SECONDS:.0f} s"
        except OSError as error:
            reason = error.strerror or str(error)
        finally:
            arrived.cancel()
            with suppress(asyncio.CancelledError, OSError):
                await arrived
    if reason is None:
        return CheckResult(_ABOUT, Level.OK, f"{address} leads here from this machine; {_FROM_ELSEWHERE}")
    return _leads_elsewhere(address, reason)


def _leads_elsewhere(address: HostPort, reason: str) -> CheckResult:
    return CheckResult(_ABOUT, Level.WARNING, f"{address} does not lead here from this machine: {reason}", _CORRECT)


async def _of_a_running_proxy(config: Config, address: HostPort) -> AdvertisedCheck:
    """Identify the process at the advertised address, then the process at the proxy's own port."""
    seen = await identify(config, address)
    if seen.is_proxy:
        return AdvertisedCheck((CheckResult(_ABOUT, seen.level, f"{seen.found}; {_FROM_ELSEWHERE}"),), running=True)
    here = reachable_address(config.listen.bootstrap)
    if here != address and (await identify(config, here)).is_proxy:
        if seen.is_kafka:
            return AdvertisedCheck((CheckResult(_ABOUT, seen.level, seen.found, _CORRECT),), running=True)
        return AdvertisedCheck((_leads_elsewhere(address, seen.found),), running=True)
    return AdvertisedCheck((CheckResult(_ABOUT, seen.level, seen.found, seen.advice),))
