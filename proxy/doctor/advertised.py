"""Whether the address that clients are told leads to this proxy, and to nothing else.

A broker's own address there would let clients pass the proxy by; one that leads nowhere would leave them without
brokers behind a bootstrap that works. What clients elsewhere see cannot be seen from here.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from sluicegate.config.listen import NODE_ID
from sluicegate.config.model import Config
from sluicegate.config.upstream import Upstream
from sluicegate.config.values.address import HostPort
from sluicegate.proxy.cluster.discovery import discover_cluster
from sluicegate.proxy.doctor.finding import Finding, Level
from sluicegate.proxy.doctor.names import resolved
from sluicegate.proxy.doctor.ports import is_free
from sluicegate.proxy.network.listeners import CannotListen, bind
from sluicegate.proxy.session.opening.loop_detection import new_mark

_ABOUT = "advertised address"
_SECONDS = 5.0
_FROM_ELSEWHERE = "connect from a client's machine too: only that tells what clients can reach"


@dataclass(frozen=True, slots=True)
class Reached:
    """What was seen there. `running`: where a proxy of this configuration already listens."""

    findings: tuple[Finding, ...]
    running: frozenset[HostPort] = frozenset()


async def look(config: Config, brokers: Mapping[int, HostPort]) -> Reached:
    """Connect as a client would, to what clients are told."""
    listen = config.listen
    if listen.bootstrap.port == 0:
        return Reached((Finding(_ABOUT, Level.UNSEEN, "listen.bootstrap leaves its port to the system"),))
    bypassed = await _brokers_own(config, brokers)
    if bypassed is not None:
        return Reached((bypassed,))
    host = listen.host_for_clients
    if listen.broker_host is not None:
        host = listen.broker_host.replace(NODE_ID, str(min(brokers, default=1)))
    told = HostPort(host, listen.bootstrap.port)
    if is_free(listen.bootstrap):
        return Reached((await _by_listening(listen.bootstrap, told),))
    return await _by_asking(config, told)


async def _brokers_own(config: Config, brokers: Mapping[int, HostPort]) -> Finding | None:
    """An address that clients would be told, and that is a broker's."""
    listen = config.listen
    ours = await resolved(listen.host_for_clients)
    if ours is None or listen.broker_host is not None:
        return None
    for address in (*brokers.values(), *config.upstream.bootstrap):
        theirs = await resolved(address.host)
        for node_id, port in [(None, listen.bootstrap.port), *((node, listen.port_of(node)) for node in brokers)]:
            if theirs is not None and address.port == port and ours & theirs:
                what = "for bootstrap" if node_id is None else f"for broker {node_id}"
                said = f"clients would be told {listen.host_for_clients}:{port} {what}, which is a broker's own address"
                advice = "choose other ports, or a host of the proxy's own: clients would pass it by"
                return Finding(_ABOUT, Level.FAULT, said, advice)
    return None


async def _by_listening(bound: HostPort, told: HostPort) -> Finding:
    """Listen for a moment where the proxy would, and see whether a connection to what clients are told arrives."""
    loop = asyncio.get_running_loop()
    try:
        listener = bind(bound)
    except CannotListen as error:
        return Finding(_ABOUT, Level.UNSEEN, f"cannot listen on {error}", "free the port and ask again")
    with listener:
        arrived = loop.create_task(loop.sock_accept(listener))
        reason: str | None = None
        try:
            async with asyncio.timeout(_SECONDS):
                _, writer = await asyncio.open_connection(told.host, told.port)
                ours = writer.get_extra_info("sockname")[:2]
                writer.close()
                theirs, peer = await arrived
                theirs.close()
            if peer[1] != ours[1]:
                reason = "something else took the connection, or changed its port on the way"
        except TimeoutError:
            reason = f"no connection arrived within {_SECONDS:.0f} s"
        except OSError as error:
            reason = error.strerror or str(error)
        finally:
            arrived.cancel()
            with suppress(asyncio.CancelledError, OSError):
                await arrived
    if reason is None:
        return Finding(_ABOUT, Level.GOOD, f"{told} leads here, from this machine; {_FROM_ELSEWHERE}")
    advice = f"correct listen.advertised_host or what leads there (DNS, routes, a load balancer); {_FROM_ELSEWHERE}"
    return Finding(_ABOUT, Level.WARNING, f"{told} does not lead here from this machine: {reason}", advice)


async def _by_asking(config: Config, told: HostPort) -> Reached:
    """The port is taken: ask who is there, as a client without a login would."""
    if config.listen.tls is not None or config.listen.proxy_protocol is not None:
        said = (
            f"{config.listen.bootstrap} is taken, and only clients with TLS or behind the load balancer may ask there"
        )
        return Reached((Finding(_ABOUT, Level.UNSEEN, said, "ask again while no proxy runs, or ask /readyz"),))
    asked = replace(Upstream(bootstrap=(told,)), connect_timeout_seconds=_SECONDS)
    found = await discover_cluster(asked, None, new_mark())
    if found.answered_by is None:
        said = f"{told} does not answer as Kafka: {(found.reason or '').removeprefix(f'{told}: ')}"
        return Reached((Finding(_ABOUT, Level.FAULT, said, "what has taken the port is no proxy: see the line of it"),))
    running = frozenset({config.listen.bootstrap})
    if found.brokers is None:
        said = f"{told} answers, and tells its brokers only after a login"
        return Reached((Finding(_ABOUT, Level.NOTE, said, _FROM_ELSEWHERE),), running)
    wrong = {
        node: address
        for node, address in found.brokers.items()
        if address != HostPort(config.listen.host_for_clients, config.listen.port_of(node))
    }
    if wrong:
        node, address = next(iter(wrong.items()))
        said = f"{told} answers, and tells clients {address} for broker {node}, as no proxy of this configuration would"
        return Reached(
            (Finding(_ABOUT, Level.FAULT, said, "look what listens there: clients would pass the proxy by"),)
        )
    said = f"{told} answers as a proxy of this configuration; {_FROM_ELSEWHERE}"
    return Reached((Finding(_ABOUT, Level.GOOD, said),), running)
