"""What all sessions of one client, or all clients of one topic, have taken of its quota."""

from collections import OrderedDict

from sluicegate.proxy.session.token_bucket import TokenBucket
from sluicegate.validation.in_force import RulesInForce
from sluicegate.validation.requests.quota import Quota
from sluicegate.validation.rules.rule import Client

# Clients may give themselves as many names as they like; those that were here last are remembered.
_MOST_REMEMBERED = 10_000


class Share:
    """One client's, or one topic's: `names` are those that the quota knows it by, `connections` a client's of now."""

    def __init__(self, quota: Quota, names: tuple[str, ...], now: float) -> None:
        self.quota = quota
        self.names = names
        self.connections = 0
        rates = (quota.bytes_per_second, quota.requests_per_second)
        self._bytes, self._requests = (None if rate is None else TokenBucket(rate, now) for rate in rates)

    def take(self, size: int, requests: int, now: float) -> float:
        """So many bytes, in so many requests, were sent at `now`; how long, in seconds, the client has to wait."""
        wait = 0.0 if self._bytes is None else self._bytes.take(size, now)
        return wait if self._requests is None else max(wait, self._requests.take(requests, now))

    @property
    def is_crowded(self) -> bool:
        """Whether another connection would be one too many."""
        return self.quota.connections is not None and self.connections >= self.quota.connections


class Quotas:
    """Of one proxy, by the quotas that hold now."""

    def __init__(self, rules: RulesInForce) -> None:
        self._rules = rules
        self._shares: OrderedDict[tuple[Quota, tuple[str, ...]], Share] = OrderedDict()

    @property
    def are_there(self) -> bool:
        """Whether anybody has one."""
        return bool(self._rules.rulebook.in_file.quotas)

    def share_of(self, client: Client, now: float) -> Share | None:
        """Of the first quota that is about this client; None: none is."""
        for quota in self._rules.rulebook.in_file.quotas:
            names = quota.whose(client)
            if names is not None:
                return self._share(quota, names, now)
        return None

    def share_of_topic(self, quota: Quota, topic: str, now: float) -> Share:
        """Of a topic whose policy has this quota."""
        return self._share(quota, (topic,), now)

    def _share(self, quota: Quota, names: tuple[str, ...], now: float) -> Share:
        share = self._shares.get((quota, names))
        if share is None:
            share = self._shares[quota, names] = Share(quota, names, now)
            if len(self._shares) > _MOST_REMEMBERED:
                self._shares.popitem(last=False)
        self._shares.move_to_end((quota, names))
        return share
