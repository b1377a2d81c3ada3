"""Records which clients wait for each registry, from this process's validations. Used only on the event loop."""

from collections import defaultdict

from sluicegate.proxy.reporting.waiting_clients import NOBODY, WaitingClients, WaitingNames, waiting_for
from sluicegate.proxy.session.client.client_details import ClientDetails
from sluicegate.proxy.session.produce.batch_outcome import BatchOutcome
from sluicegate.validation.outcome import Outcome


class WaitingRecords:
    """The clients, by registry, that the proxy told to retry because the registry does not respond."""

    def __init__(self) -> None:
        self._by_registry: dict[str, WaitingClients] = defaultdict(WaitingClients)

    def add(self, registry: str, waiting: WaitingNames) -> None:
        """Record the clients that wait for `registry`."""
        self._by_registry[registry].add(waiting)

    def batch_settled(self, client: ClientDetails, batch: BatchOutcome) -> None:
        """Record a client that must retry a batch because of a registry."""
        for reported in batch.findings:
            if reported.finding.waits_for is not None and batch.outcome is Outcome.RESEND:
                self.add(reported.finding.waits_for, waiting_for(client, batch.topic))

    def waiting_for_registry(self, registry: str) -> WaitingNames:
        """Return the clients that wait for a registry."""
        known = self._by_registry.get(registry)
        return NOBODY if known is None else known.now()

    def keep_only(self, registries: set[str]) -> None:
        """Forget the clients of all other registries, because those registries respond."""
        for name in self._by_registry.keys() - registries:
            del self._by_registry[name]
