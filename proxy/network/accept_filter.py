"""Limits new connections to allowed addresses and connection rates (KIP-612), before any TLS handshake.

`limits.max_new_connections_per_second` works like a broker's max.connection.creation.rate. The proxy delays connections
above this rate. It does not close them, because the clients would retry at once.
`limits.max_new_connections_per_second_per_address` works like a broker's connection_creation_rate of an IP. The proxy
closes connections above this rate. If it delayed them, one address could delay all others.
"""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from time import monotonic

from sluicegate.config.limits import Limits
from sluicegate.config.model import Config
from sluicegate.proxy.session.quotas.token_bucket import TokenBucket


@dataclass(frozen=True, slots=True)
class Networks:
    """A list of IPv4 and IPv6 networks."""

    listed: tuple[IPv4Network | IPv6Network, ...]

    def contains(self, host: str) -> bool:
        """Return whether one of the networks contains `host`, an address as a socket reports it.

        Return False for names.
        """
        try:
            address = without_ipv4_mapping(ip_address(host.partition("%")[0]))
        except ValueError:
            return False
        return any(address in network for network in self.listed)


def parse_networks(listed: Iterable[str]) -> Networks:
    """Parse networks in CIDR notation. Raises ValueError."""
    return Networks(tuple(ip_network(text) for text in listed))


def without_ipv4_mapping(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """Return the IPv4 address of an IPv4-mapped IPv6 address. Return any other address unchanged."""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return address if mapped is None else mapped


_MOST_ADDRESSES = 10_000
"""The number of addresses that are remembered.

The least recently seen address is forgotten first. If it returns, it starts with a full bucket.
"""


class AddressRate:
    """Limits the rate of new connections from each address, across all listeners. Times are monotonic, in seconds."""

    def __init__(self, per_second: int, most_addresses: int = _MOST_ADDRESSES) -> None:
        self.per_second = per_second
        self._most_addresses = most_addresses
        self._buckets: OrderedDict[str, TokenBucket] = OrderedDict()

    def __len__(self) -> int:
        return len(self._buckets)

    def allows(self, address: str, now: float) -> bool:
        """Return whether `address` may open one more connection now. A rejected connection is not counted."""
        bucket = self._buckets.get(address)
        if bucket is None:
            bucket = self._buckets[address] = TokenBucket(self.per_second, now)
            if len(self._buckets) > self._most_addresses:
                self._buckets.popitem(last=False)
        self._buckets.move_to_end(address)
        return bucket.take_if_available(1, now)


NEW_CONNECTIONS = "limits.max_new_connections_per_second"


class ConnectionRate:
    """Limits the rate of new connections across all listeners.

    Above the rate, a listener delays the connection that it has just accepted. Further connections wait in the system's
    backlog.
    """

    def __init__(self, per_second: int, report: Callable[[str, str, str], None], delayed: Counter[str]) -> None:
        """`report` logs a delayed client, the configuration key and the reason.

        `delayed` counts delayed connections by key.
        """
        self._per_second = per_second
        self._bucket = TokenBucket(per_second, now=0.0)
        self._report = report
        self._delayed = delayed

    async def wait_for_slot(self, peer: str) -> None:
        """Wait until the accepted connection of `peer` (host:port) may proceed."""
        seconds = self._bucket.take(1, asyncio.get_running_loop().time())
        if not seconds:
            return
        self._delayed[NEW_CONNECTIONS] += 1
        self._report(
            peer,
            NEW_CONNECTIONS,
            f"more than {self._per_second} new connections a second: raise {NEW_CONNECTIONS} if this load is expected",
        )
        await asyncio.sleep(seconds)


def connection_rate_of(
    limits: Limits, report: Callable[[str, str, str], None], delayed: Counter[str]
) -> ConnectionRate | None:
    """Create the configured rate limit, or return None if there is none."""
    most = limits.max_new_connections_per_second
    return None if most is None else ConnectionRate(most, report, delayed)


ALLOWED_ADDRESSES = "listen.allowed_addresses"
NEW_CONNECTIONS_PER_ADDRESS = "limits.max_new_connections_per_second_per_address"


class AcceptFilter:
    """Decides for all listeners whether a client may connect, by its address and its connection rate."""

    def __init__(
        self,
        allowed: Networks | None,
        report: Callable[[str, str, str], None],
        rejected: Counter[str],
        rate: AddressRate | None = None,
    ) -> None:
        """If `allowed` is None, any address may connect.

        If `rate` is None, the rate is unlimited. `report` logs a rejected client, the configuration key and the reason.
        `rejected` counts rejected connections by key.
        """
        self._allowed = allowed
        self._report = report
        self._rejected = rejected
        self._rate = rate

    def allows(self, peer: str) -> bool:
        """Return whether a client (host:port) may connect. Count and log a rejected client."""
        host = peer.rpartition(":")[0]
        if self._allowed is not None and not self._allowed.contains(host):
            self._reject(peer, ALLOWED_ADDRESSES, f"not an address of {ALLOWED_ADDRESSES}: add it if it may connect")
            return False
        if self._rate is not None and not self._rate.allows(host, monotonic()):
            key = NEW_CONNECTIONS_PER_ADDRESS
            reason = f"more than {self._rate.per_second} new connections a second from this address"
            self._reject(peer, key, f"{reason}: raise {key} if this load is expected")
            return False
        return True

    def _reject(self, peer: str, limit: str, reason: str) -> None:
        self._rejected[limit] += 1
        self._report(peer, limit, reason)


def accept_filter_of(
    config: Config, report: Callable[[str, str, str], None], rejected: Counter[str]
) -> AcceptFilter | None:
    """Create the configured filter, or return None if every client may connect."""
    most = config.limits.max_new_connections_per_second_per_address
    networks = config.listen.allowed_addresses
    if not networks and most is None:
        return None
    rate = None if most is None else AddressRate(most)
    return AcceptFilter(parse_networks(networks) if networks else None, report, rejected, rate)
