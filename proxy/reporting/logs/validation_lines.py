"""Writes log lines about validations.

Equal lines are combined into one line per minute with a count. A line's fields are computed only when it is due.
"""

import time
from functools import partial
from typing import Any

import structlog

from sluicegate.protocol.errors import ERROR_NAMES
from sluicegate.proxy.reporting.bounded_text import cut
from sluicegate.proxy.reporting.logs.aggregation import AggregateKind, Aggregator
from sluicegate.proxy.reporting.metrics.topic_labels import TopicLabels
from sluicegate.proxy.responses.dispatch import DeadLetters
from sluicegate.proxy.session.client.client_details import ClientDetails
from sluicegate.proxy.session.produce.batch_outcome import BatchOutcome, ReportedFinding
from sluicegate.validation.outcome import Copies, Outcome
from sluicegate.validation.rules.rule import Mode
from sluicegate.validation.timestamps import IN_FUTURE_MS, RehearsedBound, bounds_of
from sluicegate.validation.units import diagnose
from sluicegate.validation.verdict import FRAMED, TIMED, Finding, Reason


def finding_details(
    client: ClientDetails, topic: str | None, batch: BatchOutcome, finding: Finding, now_ms: int
) -> dict[str, Any]:
    """Return the fields for a violation: its place, the batch's outcome, and the reason.

    `error` is the error that the client received or would have received.
    """
    got = batch.error if batch.outcome in _NOT_ACCEPTED else None
    details: dict[str, Any] = {
        **_place(client, topic, batch.partition),
        "outcome": batch.outcome.value,
        "error": finding.code.name if got is None else ERROR_NAMES.get(got, str(got)),
        "reason": finding.reason.value,
        "reason_text": finding.reason.text,
    }
    if finding.rules:
        details["rule"] = cut(finding.rules[0][0])
    if finding.bad_records:
        first = finding.bad_records[0]
        details |= {"record": first.index, "record_timestamp": first.timestamp}
        if first.reason in TIMED:
            details["diagnosis"] = diagnose(first.timestamp, now_ms)
        elif first.rules:
            details["diagnosis"] = cut(first.message)
        if first.fixed is not None:
            details["fixed_timestamp"] = first.fixed
    elif finding.rules or finding.reason in FRAMED:
        details["diagnosis"] = None if finding.message is None else cut(finding.message)
    return details


def failed_quarantine_details(client: ClientDetails, topic: str, letters: DeadLetters, reason: str) -> dict[str, Any]:
    """Return the fields for a failed quarantine write."""
    return {
        **_place(client, topic, letters.partition),
        "dead_letter_topic": letters.topic,
        "reason": reason,
    }


def rehearsal_details(
    client: ClientDetails, topic: str | None, partition: int, bound: RehearsedBound
) -> dict[str, Any]:
    """Return the fields for a batch that exceeds a rehearsed bound."""
    return {
        **_place(client, topic, partition),
        "bound": bound.key,
        "max_ms": bound.max_ms,
    }


def in_future_details(client: ClientDetails, topic: str | None, ahead_ms: int) -> dict[str, Any]:
    """Return the fields for a valid batch with timestamps `ahead_ms` milliseconds ahead of the proxy's clock."""
    return {
        "client_id": _shown(client.client_id),
        "software": _software(client),
        "client_address": client.peer,
        "topic": topic,
        "ahead_ms": ahead_ms,
    }


def _place(client: ClientDetails, topic: str | None, partition: int) -> dict[str, Any]:
    return {
        "client_id": _shown(client.client_id),
        "software": _software(client),
        "principal": _shown(client.principal),
        "client_address": client.peer,
        "topic": topic,
        "partition": partition,
    }


def _shown(text: str | None) -> str | None:
    return None if text is None else cut(text)


def _software(client: ClientDetails) -> str | None:
    return None if client.software_name is None else f"{client.software_name} {client.software_version}"


_INTERVAL_SECONDS = 60
_NOT_ACCEPTED = frozenset({Outcome.REJECTED, Outcome.RESEND})
_LINES = {
    Mode.OBSERVE: "batch forwarded despite violations",
    Mode.COPY: "batch forwarded, bad records copied",
    Mode.FIX: "batch timestamps fixed",
    Mode.MARK: "batch forwarded with marks",
}
_REJECTED, _RESENT = "batch rejected", "client asked to send the batch again"
_QUARANTINED, _NOT_STORED = "batch quarantined", "client asked to send the batch again: bad records not stored"
_OF_A_CLIENT = frozenset({"client_id", "software", "principal", "client_address"})


class ValidationLines:
    """Logs verdicts. `labels` knows the real topics, so that invented topic names do not use up the
    lines of real ones.
    """

    def __init__(self, labels: TopicLabels) -> None:
        self._labels = labels
        self._log = structlog.get_logger("sluicegate")
        self._not_quarantined = Aggregator(_INTERVAL_SECONDS, self._log_not_quarantined, self._wider_rejection)
        self._rehearsals = Aggregator(_INTERVAL_SECONDS, self._log_rehearsal, self._wider_rejection)
        self._unreadable = Aggregator(_INTERVAL_SECONDS, self._log_unreadable, self._wider_rejection)
        self._in_future = Aggregator(_INTERVAL_SECONDS, self._log_in_future, self._wider_in_future)
        self._findings = {
            line: Aggregator(_INTERVAL_SECONDS, partial(self._log_finding, line), self._wider_rejection)
            for line in (*_LINES.values(), _REJECTED, _RESENT, _QUARANTINED, _NOT_STORED)
        }
        self._aggregators = (
            *self._findings.values(),
            self._not_quarantined,
            self._rehearsals,
            self._unreadable,
            self._in_future,
        )

    def batch_settled(self, client: ClientDetails, batch: BatchOutcome) -> None:
        """Log the findings about a batch, and any timestamps in the future."""
        topic = None if batch.topic is None else cut(batch.topic)
        now = time.monotonic()
        if batch.ahead_ms is not None and batch.ahead_ms > IN_FUTURE_MS:
            self._in_future.note((client.client_id, topic), 0, now, in_future_details, client, topic, batch.ahead_ms)
        if batch.basis is None:
            return
        policy, now_ms = batch.basis
        for reported in batch.findings:
            finding = reported.finding
            key = (client.client_id, topic, batch.error, _violated(finding))
            records = max(1, finding.bad_count)
            line = self._findings[_line_of(batch, reported)]
            line.note(key, records, now, finding_details, client, topic, batch, finding, now_ms)
        if batch.unreadable is not None:
            finding = batch.unreadable
            key = (client.client_id, topic, batch.error, finding.reason)
            self._unreadable.note(key, 0, now, finding_details, client, topic, batch, finding, now_ms)
        if batch.rehearsed:
            assert policy.rehearsed is not None  # otherwise there would be no counts
            for bound, count in zip(bounds_of(policy.rehearsed), batch.rehearsed, strict=True):
                if count:
                    what = (client.client_id, topic, None, bound.label)
                    self._rehearsals.note(what, count, now, rehearsal_details, client, topic, batch.partition, bound)

    def not_quarantined(self, client: ClientDetails, letters: DeadLetters, reason: str) -> None:
        """Log that a batch's bad records could not be quarantined."""
        topic = cut(letters.source)
        key = (client.client_id, topic, None, reason)
        records = len(letters.records)
        self._not_quarantined.note(
            key, records, time.monotonic(), failed_quarantine_details, client, topic, letters, reason
        )

    def sweep(self) -> None:
        """Write the lines that are due. Called every few seconds."""
        now = time.monotonic()
        for aggregator in self._aggregators:
            aggregator.sweep(now)

    def flush(self) -> None:
        """Write all pending lines before shutdown."""
        for aggregator in self._aggregators:
            aggregator.flush()

    def _wider_rejection(self, key: tuple[str | None, str | None, int | None, Any]) -> AggregateKind:
        _, topic, _, reason = key
        if topic is not None and self._labels.knows(topic):
            return AggregateKind((topic, reason), _OF_A_CLIENT)
        return AggregateKind((None, reason), _OF_A_CLIENT | {"topic"})

    def _wider_in_future(self, key: tuple[str | None, str | None]) -> AggregateKind:
        topic = key[1]
        if topic is not None and self._labels.knows(topic):
            return AggregateKind((topic,), _OF_A_CLIENT)
        return AggregateKind((None,), _OF_A_CLIENT | {"topic"})

    def _log_finding(self, line: str, details: dict[str, Any], times: int, records: int) -> None:
        self._log.warning(line, **_without_none(details), batches=times, bad_records=records)

    def _log_not_quarantined(self, details: dict[str, Any], times: int, records: int) -> None:
        self._log.error(
            "quarantine write failed",
            **_without_none(details),
            batches=times,
            bad_records=records,
            advice="producers were asked to retry; check that the dead-letter topic exists and that the "
            "proxy may write to it",
        )

    def _log_rehearsal(self, details: dict[str, Any], times: int, records: int) -> None:
        self._log.info("rehearsed bound exceeded", **_without_none(details), batches=times, bad_records=records)

    def _log_unreadable(self, details: dict[str, Any], times: int, _records: int) -> None:
        advice = "some clients cannot read the batch; framing: strict rejects such batches"
        self._log.warning("unreadable batch forwarded", **_without_none(details), batches=times, advice=advice)

    def _log_in_future(self, details: dict[str, Any], times: int, _records: int) -> None:
        self._log.warning(
            "batch accepted with future timestamps",
            **_without_none(details),
            batches=times,
            advice="by default Kafka 4 rejects timestamps more than an hour ahead (KIP-937)",
        )


def _violated(finding: Finding) -> Reason | tuple[Reason, str]:
    """Return the reason, with the name of the first violated rule if there is one."""
    return (finding.reason, finding.rules[0][0]) if finding.rules else finding.reason


def _without_none(details: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in details.items() if value is not None}


def _line_of(batch: BatchOutcome, reported: ReportedFinding) -> str:
    if reported.copies is Copies.QUARANTINED:
        return _QUARANTINED
    if reported.copies is not Copies.NOT_STORED and reported.mode in _LINES:
        return _LINES[reported.mode]
    if batch.outcome is not Outcome.RESEND:
        return _REJECTED
    return _RESENT if reported.copies is None else _NOT_STORED
