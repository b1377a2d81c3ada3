"""IP networks that the configuration lists."""

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network


@dataclass(frozen=True, slots=True)
class Networks:
    """A list of IPv4 and IPv6 networks."""

    listed: tuple[IPv4Network | IPv6Network, ...]

    def contains(self, host: str) -> bool:
        """Return whether one of the networks contains `host`, an address as a socket reports it. False for names."""
        try:
            address = unmapped(ip_address(host.partition("%")[0]))
        except ValueError:
            return False
        return any(address in network for network in self.listed)


def parse_networks(listed: Iterable[str]) -> Networks:
    """Parse networks in CIDR notation. Raises ValueError."""
    return Networks(tuple(ip_network(text) for text in listed))


def unmapped(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """Return the IPv4 address of an IPv4-mapped IPv6 address; any other address unchanged."""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return address if mapped is None else mapped
