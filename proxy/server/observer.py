"""Passes every batch's outcome to all reports: metrics, log lines, events, traces and the live view."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Protocol

from sluicegate.proxy.reporting.events.violation_events import ViolationEvents
from sluicegate.proxy.reporting.logs.validation_lines import ValidationLines
from sluicegate.proxy.reporting.metrics.counters import Counters
from sluicegate.proxy.reporting.metrics.topic_labels import TopicLabels
from sluicegate.proxy.reporting.metrics.validation_counts import ValidationCounts
from sluicegate.proxy.reporting.waiting_clients import waiting_for
from sluicegate.proxy.reporting.write_health import WriteHealth
from sluicegate.proxy.responses.dispatch import DeadLetters
from sluicegate.proxy.session.client.client_details import ClientDetails, client_details
from sluicegate.proxy.session.client.identity import ClientIdentity
from sluicegate.proxy.session.produce.batch_outcome import BatchOutcome, RequestOutcome
from sluicegate.validation.outcome import Outcome
from sluicegate.validation.requests.name_pattern import OwnedClients

_REPORTED_AT_ONCE = 50


class BatchSink(Protocol):
    """Reports batches."""

    def batch_settled(self, client: ClientDetails, batch: BatchOutcome, /) -> None:
        """Report a batch of the slow path."""


class RequestSink(Protocol):
    """Reports requests."""

    def request_settled(self, request: RequestOutcome, /) -> None:
        """Report a request of the slow path, before its batches are reported."""


class _Lines(Protocol):
    def validation_unreported(self, client: ClientDetails, error: BaseException, /) -> None: ...


class Observer:
    """Passes outcomes to the reports without waiting.

    Errors in a report do not affect requests. They are counted in `internal_errors` and logged.
    """

    def __init__(
        self,
        labels: TopicLabels,
        counts: ValidationCounts,
        events: ViolationEvents,
        requests: Sequence[RequestSink],
        batches: Sequence[BatchSink],
        quarantine: WriteHealth,
        later: Callable[[Callable[[], None]], object],
        log: _Lines,
        internal_errors: Counter[str],
    ) -> None:
        """`requests` and `batches` receive outcomes in addition to `counts`, the log lines and `events`.

        `quarantine` records failed writes. `later` schedules the rest of a long report after other work of the event
        loop.
        """
        self._labels = labels
        self._counts = counts
        self._lines = ValidationLines(labels)
        self._events = events
        self._requests: tuple[RequestSink, ...] = (counts, *requests)
        self._batches: tuple[BatchSink, ...] = (counts, self._lines, events, *batches)
        self._quarantine = quarantine
        self._later = later
        self._log = log
        self._internal_errors = internal_errors

    def settled(self, request: RequestOutcome) -> None:
        """Report a request of the slow path, in steps, so that other connections are served in between."""
        for sink in self._requests:
            self._guarded(request.client, partial(sink.request_settled, request))
        batches = request.batches
        if len(batches) <= _REPORTED_AT_ONCE:
            self._report(request.client, batches)
            return
        for first in range(0, len(batches), _REPORTED_AT_ONCE):
            step = partial(self._report, request.client, batches[first : first + _REPORTED_AT_ONCE])
            if first == 0:
                step()
            else:
                self._later(step)

    def _report(self, client: ClientDetails, batches: Sequence[BatchOutcome]) -> None:
        for batch in batches:
            for sink in self._batches:
                self._guarded(client, partial(sink.batch_settled, client, batch))

    def not_accepted(self, client_id: str | None, holder: str, topic: str | None, outcome: Outcome) -> None:
        """Count a batch of the fast path that the broker has not accepted."""
        self._counts.not_accepted(client_id, holder, topic, outcome)

    def not_quarantined(self, identity: ClientIdentity, letters: DeadLetters, reason: str) -> None:
        """Report a failed quarantine write, after which the producer must retry."""
        client = client_details(identity)
        self._quarantine.failed(letters.destination, reason, waiting_for(client, letters.source))
        self._guarded(client, partial(self._counts.not_quarantined, client, letters))
        self._guarded(client, partial(self._lines.not_quarantined, client, letters, reason))

    def _guarded(self, client: ClientDetails, report: Callable[[], None]) -> None:
        try:
            report()
        except Exception as error:
            self._internal_errors["unreported"] += 1
            self._log.validation_unreported(client, error)

    def settle_traffic(self) -> None:
        """Count the batches that the fast path has forwarded or settled since the last call."""
        self._counts.settle_traffic()

    def configure(self, names: Iterable[str]) -> None:
        """Use the topics of a new configuration as labels."""
        self._labels.configure(names)

    def counted(self) -> Counters:
        """Return a copy of the counters. Thread-safe."""
        return self._counts.counted()

    def client_owners(self, owners: tuple[OwnedClients, ...]) -> dict[str, tuple[str, str]]:
        """Return the team and contact of each client that has its own series and an owner. Thread-safe."""
        return self._counts.client_owners(owners)

    def sweep(self) -> None:
        """Write the log lines that are due. Called every few seconds."""
        self._lines.sweep()

    def close(self) -> None:
        """Write all pending lines and events before shutdown."""
        self._lines.flush()
        self._events.close()
