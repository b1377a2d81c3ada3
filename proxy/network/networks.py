"""Networks that addresses are held against."""

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network


@dataclass(frozen=True, slots=True)
class Networks:
    """As the configuration lists them."""

    listed: tuple[IPv4Network | IPv6Network, ...]

    def hold(self, host: str) -> bool:
        """Whether an address, as a socket tells it, lies in one of them. What is no address lies in none."""
        try:
            address = plain(ip_address(host.partition("%")[0]))
        except ValueError:
            return False
        return any(address in network for network in self.listed)


def networks_of(listed: Iterable[str]) -> Networks:
    """What a list of texts says. Raises ValueError."""
    return Networks(tuple(ip_network(text) for text in listed))


def plain(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """An IPv4 address that is written as an IPv6 one is that IPv4 address."""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return address if mapped is None else mapped
