"""Who may connect (`listen.allowed_addresses`), and how often one address may: asked before any TLS handshake."""

from collections import Counter
from collections.abc import Callable
from time import monotonic

from sluicegate.config.model import Config
from sluicegate.proxy.network.connection_rate import AddressRate
from sluicegate.proxy.network.networks import Networks, networks_of

ALLOWED_ADDRESSES = "listen.allowed_addresses"
NEW_OF_ADDRESS = "limits.max_new_connections_per_second_per_address"


class Entrance:
    """Of all listeners together."""

    def __init__(
        self,
        allowed: Networks | None,
        tell: Callable[[str, str, str], None],
        rejected: Counter[str],
        rate: AddressRate | None = None,
    ) -> None:
        """`allowed` None: everybody; `tell` writes who was turned away, by which key and why; `rejected` counts them by
        key; `rate` None: as often as they like.
        """
        self._allowed = allowed
        self._tell = tell
        self._rejected = rejected
        self._rate = rate

    def lets_in(self, peer: str) -> bool:
        """Whether a client (host:port) may go on. Who may not is counted and told of."""
        host = peer.rpartition(":")[0]
        if self._allowed is not None and not self._allowed.hold(host):
            self._turn_away(peer, ALLOWED_ADDRESSES, f"not an address of {ALLOWED_ADDRESSES}: add it if it may connect")
            return False
        if self._rate is not None and not self._rate.lets_in(host, monotonic()):
            often = f"more than {self._rate.per_second} a second are new from there"
            self._turn_away(peer, NEW_OF_ADDRESS, f"{often}: raise {NEW_OF_ADDRESS} if all may come")
            return False
        return True

    def _turn_away(self, peer: str, limit: str, reason: str) -> None:
        self._rejected[limit] += 1
        self._tell(peer, limit, reason)


def entrance_of(config: Config, tell: Callable[[str, str, str], None], rejected: Counter[str]) -> Entrance | None:
    """As it is configured; None: everybody may come."""
    most = config.limits.max_new_connections_per_second_per_address
    networks = config.listen.allowed_addresses
    if not networks and most is None:
        return None
    rate = None if most is None else AddressRate(most)
    return Entrance(networks_of(networks) if networks else None, tell, rejected, rate)
