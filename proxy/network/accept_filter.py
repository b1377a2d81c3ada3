"""How fast new connections are taken (`limits.max_new_connections_per_second`), as max.connection.creation.rate of a
broker does it (KIP-612): a client that connects too fast waits and is not closed, because it would retry at once. One
address that connects too fast is closed, as with `connection_creation_rate` of an address at a broker (KIP-612): if it
waited instead, it could make as many connections wait as all other addresses together.
"""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Callable
from time import monotonic

from sluicegate.config.limits import Limits
from sluicegate.config.model import Config
from sluicegate.proxy.network.networks import Networks, networks_of
from sluicegate.proxy.session.quotas.token_bucket import TokenBucket

_MOST_ADDRESSES = 10_000
"""That are remembered. Who is forgotten, the one that came longest ago, begins anew."""


class AddressRate:
    """Of all listeners together; `per_second` of each address. Knows no clock: times are in seconds, monotonic."""

    def __init__(self, per_second: int, most_addresses: int = _MOST_ADDRESSES) -> None:
        self.per_second = per_second
        self._most_addresses = most_addresses
        self._buckets: OrderedDict[str, TokenBucket] = OrderedDict()

    def __len__(self) -> int:
        return len(self._buckets)

    def lets_in(self, address: str, now: float) -> bool:
        """Whether one more may come from there; one that may not counts for nothing."""
        bucket = self._buckets.get(address)
        if bucket is None:
            bucket = self._buckets[address] = TokenBucket(self.per_second, now)
            if len(self._buckets) > self._most_addresses:
                self._buckets.popitem(last=False)
        self._buckets.move_to_end(address)
        return bucket.take_if_there(1, now)


NEW_CONNECTIONS = "limits.max_new_connections_per_second"


class ConnectionRate:
    """Of all listeners together. Each waits with the connection that it has taken; those behind it wait in the system's
    queue.
    """

    def __init__(self, per_second: int, tell: Callable[[str, str, str], None], delayed: Counter[str]) -> None:
        """`tell` writes who waits, by which key and why; `delayed` counts them by key."""
        self._per_second = per_second
        self._bucket = TokenBucket(per_second, now=0.0)
        self._tell = tell
        self._delayed = delayed

    async def let_one_come(self, peer: str) -> None:
        """Wait until a client (host:port) that was accepted may go on."""
        seconds = self._bucket.take(1, asyncio.get_running_loop().time())
        if not seconds:
            return
        self._delayed[NEW_CONNECTIONS] += 1
        self._tell(
            peer,
            NEW_CONNECTIONS,
            f"more than {self._per_second} a second are new: raise {NEW_CONNECTIONS} if all may come",
        )
        await asyncio.sleep(seconds)


def connection_rate_of(
    limits: Limits, tell: Callable[[str, str, str], None], delayed: Counter[str]
) -> ConnectionRate | None:
    """As it is configured; None: as fast as they come."""
    most = limits.max_new_connections_per_second
    return None if most is None else ConnectionRate(most, tell, delayed)


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
