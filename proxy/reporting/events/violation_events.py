"""Creates an event for each finding about a batch, for a file, a topic and the live view."""

from sluicegate.proxy.reporting.events.violation_event import EventNumbering, RehearsalEvent, violation_event
from sluicegate.proxy.reporting.events.violation_writer import ViolationSink
from sluicegate.proxy.session.client.client_details import ClientDetails
from sluicegate.proxy.session.produce.batch_outcome import BatchOutcome, ReportedFinding
from sluicegate.validation.rules.rule import Mode
from sluicegate.validation.timestamps import bounds_of


class ViolationEvents:
    """Passes an event for each finding to `sink`, with at most `max_records` bad records."""

    def __init__(self, sink: ViolationSink, max_records: int, numbering: EventNumbering) -> None:
        self._sink = sink
        self._max_records = max_records
        self._numbering = numbering

    def batch_settled(self, client: ClientDetails, batch: BatchOutcome) -> None:
        """Write a batch's events."""
        if batch.basis is None:
            return
        for reported in batch.findings:
            self._write(client, batch, reported)
        if batch.rehearsed:
            policy, now_ms = batch.basis
            assert policy.rehearsed is not None  # otherwise there would be no counts
            found = zip(bounds_of(policy.rehearsed), batch.rehearsed, strict=True)
            exceeded = tuple((bound, count) for bound, count in found if count)
            self._sink.write(RehearsalEvent(client, batch, exceeded, now_ms, self._numbering.next(), policy))
        if batch.unreadable is not None:
            self._write(client, batch, ReportedFinding(Mode.OBSERVE, batch.unreadable))

    def _write(self, client: ClientDetails, batch: BatchOutcome, reported: ReportedFinding) -> None:
        self._sink.write(violation_event(client, batch, reported, self._numbering.next(), self._max_records))

    def close(self) -> None:
        """Write all pending events, before shutdown."""
        self._sink.close()
