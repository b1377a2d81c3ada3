"""Whether the hosts that the configuration names lead anywhere, as this machine's resolver sees it."""

import asyncio
import socket
from collections.abc import Iterable

from sluicegate.config.listen import NODE_ID
from sluicegate.config.model import Config
from sluicegate.config.values.address import HostPort
from sluicegate.proxy.doctor.finding import Finding, Level

_SECONDS = 5.0
_MOST_NAMES = 200


async def resolved(host: str) -> frozenset[str] | None:
    """The addresses of a name; None when it has none within seconds."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(_SECONDS):
            found = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError, TimeoutError):
        return None
    return frozenset(str(entry[4][0]) for entry in found)


async def findings(config: Config, told: Iterable[HostPort]) -> list[Finding]:
    """Of the file's own names, and of the addresses that brokers `told`."""
    named = [("upstream.bootstrap", address.host, Level.FAULT) for address in config.upstream.bootstrap]
    named += [(f"upstream.brokers.{node}", one.host, Level.FAULT) for node, one in config.upstream.brokers.items()]
    named += [("advertised.listeners of a broker", address.host, Level.FAULT) for address in told]
    listen = config.listen
    if listen.broker_host is not None:
        named.append(("listen.broker_host", listen.broker_host.replace(NODE_ID, "1"), Level.WARNING))
    elif listen.advertised_host is not None:
        named.append(("listen.advertised_host", listen.advertised_host, Level.WARNING))
    found = []
    for host, (about, level) in {host: (about, level) for about, host, level in reversed(named[:_MOST_NAMES])}.items():
        addresses = await resolved(host)
        if addresses is None:
            found.append(Finding(about, level, f"{host} leads nowhere from this machine", _advice(level)))
        else:
            found.append(Finding(about, Level.GOOD, f"{host} is {', '.join(sorted(addresses))[:100]}"))
    return found[::-1]


def _advice(level: Level) -> str:
    if level is Level.FAULT:
        return "correct the name, or teach it to this machine's DNS: the proxy itself connects there"
    return "look that clients' machines know the name; this one need not"
