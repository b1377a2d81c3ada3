"""Counts the errors that brokers send to clients, by API, error and client id, in bounded memory."""

from collections.abc import Callable
from threading import Lock
from typing import TypedDict

from sluicegate.protocol.api import APIS
from sluicegate.protocol.errors import ERROR_NAMES
from sluicegate.proxy.reporting.metrics.counters import OTHER, Counters
from sluicegate.proxy.reporting.metrics.violation_labels import MAX_CLIENTS, MAX_KINDS, NO_CLIENT_ID, FairLabels
from sluicegate.proxy.session.client.client_details import holder_of
from sluicegate.proxy.session.client.identity import ClientIdentity

_API_NAMES = {key: api.name for key, api in APIS.items()}


class BrokerErrorState(TypedDict):
    """One client's error, as the live API returns it.

    `client_id` is empty for clients without an id. `last_ms` is the time of the newest response in Unix time.
    """

    client_id: str
    api: str
    error: str
    responses: int
    last_ms: int


class BrokerErrorCounts:
    """Counts errors into `counters`.

    At most 100 client ids have their own label, and at most 1000 combinations their own series. All others are counted
    as `other`. `folding` is locked while counts move to `other`.
    """

    def __init__(
        self,
        counters: Counters,
        folding: Lock,
        now_ms: Callable[[], int],
        max_kinds: int = MAX_KINDS,
        max_clients: int = MAX_CLIENTS,
    ) -> None:
        self._counters = counters
        self._folding = folding
        self._now_ms = now_ms
        self._max_kinds = max_kinds
        self._clients = FairLabels(self._fold, max_clients)
        self._last_ms: dict[tuple[str, str, str], int] = {}

    def broker_error(self, identity: ClientIdentity, api_key: int, code: int) -> None:
        """Count a response of the API `api_key` that contains the error `code`."""
        counts = self._counters.broker_errors
        client = self._clients.label(identity.client_id, holder_of(identity))
        kind = _API_NAMES[api_key], ERROR_NAMES.get(code, OTHER), client
        if kind not in counts and len(counts) >= self._max_kinds:
            kind = kind[0], kind[1], OTHER
        counts[kind] += 1
        self._last_ms[kind] = self._now_ms()

    def state(self) -> list[BrokerErrorState]:
        """Return the errors, most frequent first. Thread-safe."""
        with self._folding:
            counted = self._counters.broker_errors.most_common()
        return [
            {
                "client_id": "" if client == NO_CLIENT_ID else client,
                "api": api,
                "error": error,
                "responses": count,
                "last_ms": self._last_ms[api, error, client],
            }
            for (api, error, client), count in counted
        ]

    def _fold(self, client: str) -> None:
        counts = self._counters.broker_errors
        with self._folding:
            for kind in [kind for kind in counts if kind[2] == client]:
                other = kind[0], kind[1], OTHER
                counts[other] += counts.pop(kind)
                self._last_ms[other] = max(self._last_ms.get(other, 0), self._last_ms.pop(kind))
