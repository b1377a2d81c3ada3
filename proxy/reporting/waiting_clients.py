"""The clients that retry batches during an outage, and the topics to which they write."""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from sluicegate.proxy.reporting.bounded_text import cut, printable
from sluicegate.proxy.session.client.client_details import ClientDetails

# A producer that has not retried for this time has given up.
_GIVEN_UP_SECONDS = 60.0
_MOST_KNOWN = 1000
_MOST_NAMED = 3
_NO_CLIENT_ID = "(no client id)"


@dataclass(frozen=True, slots=True)
class WaitingNames:
    """The names of waiting clients with their addresses or principals, and the names of their topics."""

    clients: frozenset[str] = frozenset()
    topics: frozenset[str] = frozenset()

    def __or__(self, other: "WaitingNames") -> "WaitingNames":
        return WaitingNames(self.clients | other.clients, self.topics | other.topics)

    def __str__(self) -> str:
        """Return a phrase with the numbers of clients and topics, and some of their names."""
        if not self.clients:
            return "no client waits"
        clients = "1 client waits" if len(self.clients) == 1 else f"{len(self.clients)} clients wait"
        topics = "topic" if len(self.topics) == 1 else "topics"
        return f"{clients} ({_named(self.clients)}), {topics} {_named(self.topics)}"


NOBODY = WaitingNames()


class WaitingClients:
    """Remembers the last retry for each pair of client and topic, at most 1000 pairs. Not thread-safe."""

    def __init__(self, seconds: Callable[[], float] = time.monotonic) -> None:
        """`seconds` returns monotonic seconds."""
        self._seconds = seconds
        self._retried_at: OrderedDict[tuple[str, str], float] = OrderedDict()

    def add(self, waiting: WaitingNames) -> None:
        """Record that the proxy told these clients to retry."""
        now = self._seconds()
        for client in waiting.clients:
            for topic in waiting.topics:
                self._retried_at[client, topic] = now
                self._retried_at.move_to_end((client, topic))
        while len(self._retried_at) > _MOST_KNOWN:
            self._retried_at.popitem(last=False)

    def remove(self, waiting: WaitingNames) -> None:
        """Record that these clients are no longer waiting."""
        for client in waiting.clients:
            for topic in waiting.topics:
                self._retried_at.pop((client, topic), None)

    def now(self) -> WaitingNames:
        """Return the clients and topics with a retry within the last minute."""
        since = self._seconds() - _GIVEN_UP_SECONDS
        while self._retried_at and next(iter(self._retried_at.values())) < since:
            self._retried_at.popitem(last=False)
        return WaitingNames(
            frozenset(client for client, _ in self._retried_at), frozenset(topic for _, topic in self._retried_at)
        )


def merge_waiting(one: WaitingNames | None, other: WaitingNames | None) -> WaitingNames | None:
    """Return the waiting clients of both arguments, or None if both are None."""
    return one | other if one is not None and other is not None else one or other


def waiting_for(client: ClientDetails, topic: str | None) -> WaitingNames:
    """Return the waiting names for one client with a batch for `topic`. `topic` is None if the name is unknown."""
    client_id = _NO_CLIENT_ID if client.client_id is None else printable(cut(client.client_id))
    named = "(unknown topic id)" if topic is None else printable(cut(topic))
    return WaitingNames(frozenset({f"{client_id} from {printable(cut(client.holder))}"}), frozenset({named}))


def _named(names: frozenset[str]) -> str:
    first = ", ".join(sorted(names)[:_MOST_NAMED])
    return first if len(names) <= _MOST_NAMED else f"{first} and {len(names) - _MOST_NAMED} more"
