"""How fast one address's new connections are taken. Who comes faster is closed, as with `connection_creation_rate` of
an address at a broker (KIP-612): if it waited instead, it could have as many wait as all others together.
"""

from collections import OrderedDict

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
