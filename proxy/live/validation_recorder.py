"""Records every validation with the observer and the live view. Errors here do not affect requests."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Protocol

from sluicegate.protocol.produce_request import ProduceRequest
from sluicegate.proxy.live.live_view import LiveView
from sluicegate.proxy.registry.waiting_records import WaitingRecords
from sluicegate.proxy.reporting.waiting_clients import waiting_for
from sluicegate.proxy.reporting.write_health import WriteHealth
from sluicegate.proxy.responses.dispatch import DeadLetters
from sluicegate.proxy.session.client.identity import ClientIdentity
from sluicegate.proxy.session.reports import BatchTraffic, Validations
from sluicegate.proxy.writing.dead_letter_writer import destination_of
from sluicegate.validation.validated_request import ValidatedRequest


class _Lines(Protocol):
    def validation_unreported(self, identity: ClientIdentity, error: BaseException, /) -> None: ...


class ValidationRecorder:
    """Receives the validations of sessions. Errors are counted in `internal_errors` and logged.

    `quarantine`: where failed quarantine writes are noted, too; `waiting`: where clients are noted whose records wait
    for a registry.
    """

    def __init__(
        self,
        observer: Validations,
        view: LiveView,
        now_ms: Callable[[], int],
        log: _Lines,
        internal_errors: Counter[str],
        quarantine: WriteHealth,
        waiting: WaitingRecords,
        names: Mapping[bytes, str],
    ) -> None:
        """`names`: the names of topics by id."""
        self._waiting = waiting
        self._names = names
        self._quarantine = quarantine
        self._observer = observer
        self._view = view
        self._now_ms = now_ms
        self._log = log
        self._internal_errors = internal_errors

    def forwarded(self, identity: ClientIdentity, client_id: str | None, traffic: BatchTraffic) -> None:
        """Count valid batches of the fast path by client id."""
        self._observer.forwarded(identity, client_id, traffic)

    def validated(self, identity: ClientIdentity, request: ProduceRequest, validated: ValidatedRequest) -> None:
        """Record a validated Produce request."""
        for place, rejected in validated.rejected.items():
            if rejected.waits_for is not None:
                topic = request.topics[place[0]].name_by(self._names)
                self._waiting.add(rejected.waits_for, waiting_for(identity, topic))
        try:
            self._observer.validated(identity, request, validated)
            self._view.validated(identity, request, validated, self._now_ms())
        except Exception as error:
            self._failed(identity, error)

    def not_quarantined(self, identity: ClientIdentity, letters: DeadLetters, reason: str) -> None:
        """Record a failed quarantine write; the producer was asked to retry."""
        self._quarantine.failed(destination_of(letters), reason, waiting_for(identity, letters.source))
        try:
            self._observer.not_quarantined(identity, letters, reason)
        except Exception as error:
            self._failed(identity, error)

    def _failed(self, identity: ClientIdentity, error: Exception) -> None:
        self._internal_errors["unreported"] += 1
        self._log.validation_unreported(identity, error)
