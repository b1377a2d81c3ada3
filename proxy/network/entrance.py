"""Who may connect (`listen.allowed_addresses`): asked before a TLS handshake is paid for."""

from collections import Counter
from collections.abc import Callable

from sluicegate.config.model import Config
from sluicegate.proxy.network.networks import Networks, networks_of

ALLOWED_ADDRESSES = "listen.allowed_addresses"


class Entrance:
    """Of all listeners together."""

    def __init__(self, allowed: Networks, tell: Callable[[str, str, str], None], refused: Counter[str]) -> None:
        """`tell` writes who was turned away, by which key and why; `refused` counts them by key."""
        self._allowed = allowed
        self._tell = tell
        self._refused = refused

    def lets_in(self, peer: str) -> bool:
        """Whether a client (host:port) may go on. Who may not is counted and told of."""
        if self._allowed.hold(peer.rpartition(":")[0]):
            return True
        self._refused[ALLOWED_ADDRESSES] += 1
        self._tell(peer, ALLOWED_ADDRESSES, f"not an address of {ALLOWED_ADDRESSES}: add it if it may connect")
        return False


def entrance_of(config: Config, tell: Callable[[str, str, str], None], refused: Counter[str]) -> Entrance | None:
    """As it is configured; None: everybody may come."""
    if not config.listen.allowed_addresses:
        return None
    return Entrance(networks_of(config.listen.allowed_addresses), tell, refused)
