"""Checks that this machine resolves the host names in the configuration and in the brokers' advertised listeners."""

import asyncio
import socket
from collections.abc import Iterable

from sluicegate.config.listen import NODE_ID
from sluicegate.config.model import Config
from sluicegate.config.values.address import HostPort
from sluicegate.proxy.doctor.check_result import CheckResult, Level

_SECONDS = 5.0
_MOST_NAMES = 200


async def resolve_name(host: str) -> frozenset[str] | None:
    """Return the IP addresses of a name, or None if it does not resolve within 5 s."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(_SECONDS):
            found = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError, TimeoutError):
        return None
    return frozenset(str(entry[4][0]) for entry in found)


async def check(config: Config, of_brokers: Iterable[HostPort]) -> list[CheckResult]:
    """Check the names in the configuration and in `of_brokers`, which are the addresses that brokers advertise."""
    named = [("upstream.bootstrap", address.host, Level.FAILURE) for address in config.upstream.bootstrap]
    named += [(f"upstream.brokers.{node}", one.host, Level.FAILURE) for node, one in config.upstream.brokers.items()]
    named += [("advertised.listeners of a broker", address.host, Level.FAILURE) for address in of_brokers]
    listen = config.listen
    if listen.broker_host is not None:
        named.append(("listen.broker_host", listen.broker_host.replace(NODE_ID, "1"), Level.WARNING))
    elif listen.advertised_host is not None:
        named.append(("listen.advertised_host", listen.advertised_host, Level.WARNING))
    found = []
    for host, (about, level) in {host: (about, level) for about, host, level in reversed(named[:_MOST_NAMES])}.items():
        addresses = await resolve_name(host)
        if addresses is None:
            found.append(CheckResult(about, level, f"this machine does not resolve {host}", _advice(level)))
        else:
            found.append(CheckResult(about, Level.OK, f"{host} is {', '.join(sorted(addresses))[:100]}"))
    return found[::-1]


def _advice(level: Level) -> str:
    if level is Level.FAILURE:
        return "correct the name or this machine's DNS: the proxy connects to it"
    return "check that the clients' machines resolve the name; this machine does not have to"
