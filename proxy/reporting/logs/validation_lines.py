"""Log lines about validations, aggregated: equal ones become one line a minute with a count.

Their fields are computed only when a line is due.
"""

import time
from typing import Any

import structlog

from sluicegate.proxy.reporting.bounded_text import cut
from sluicegate.proxy.reporting.events.violation_event import ClientDetails, client_details
from sluicegate.proxy.reporting.logs.aggregation import Aggregator, Wider
from sluicegate.proxy.reporting.metrics.topic_labels import TopicLabels
from sluicegate.proxy.responses.dispatch import DeadLetters
from sluicegate.proxy.session.client.identity import ClientIdentity
from sluicegate.validation.rules.rule import Mode
from sluicegate.validation.timestamps import RehearsedBound
from sluicegate.validation.units import diagnose
from sluicegate.validation.verdict import FRAMED, TIMED, Reason, Rejected


def rejection(
    client: ClientDetails, topic: str | None, partition: int, rejected: Rejected, now_ms: int
) -> dict[str, Any]:
    """Return the fields of a violation: where it was, and why."""
    details: dict[str, Any] = {
        **_place(client, topic, partition),
        "error": rejected.code.name,
        "reason": rejected.reason.value,
        "reason_text": rejected.reason.text,
    }
    if rejected.rules:
        details["rule"] = cut(rejected.rules[0][0])
    if rejected.bad_records:
        first = rejected.bad_records[0]
        details |= {"record": first.index, "record_timestamp": first.timestamp}
        if first.reason in TIMED:
            details["diagnosis"] = diagnose(first.timestamp, now_ms)
        elif first.rules:
            details["diagnosis"] = cut(first.message)
        if first.fixed is not None:
            details["fixed_timestamp"] = first.fixed
    elif rejected.rules or rejected.reason in FRAMED:
        details["diagnosis"] = None if rejected.message is None else cut(rejected.message)
    return details


def not_kept(client: ClientDetails, topic: str, letters: DeadLetters, reason: str) -> dict[str, Any]:
    """Return the fields of a failed quarantine write."""
    return {
        **_place(client, topic, letters.partition),
        "dead_letter_topic": letters.topic,
        "reason": reason,
    }


def rehearsal(client: ClientDetails, topic: str | None, partition: int, bound: RehearsedBound) -> dict[str, Any]:
    """Return the fields of a violated rehearsed bound."""
    return {
        **_place(client, topic, partition),
        "bound": bound.key,
        "max_ms": bound.max_ms,
    }


def far_ahead(identity: ClientIdentity, topic: str | None, ahead_ms: int) -> dict[str, Any]:
    """Return the fields of an accepted batch with timestamps `ahead_ms` ahead."""
    client = client_details(identity)
    return {
        "client_id": client.client_id,
        "software": _software(client),
        "client_address": client.peer,
        "topic": topic,
        "ahead_ms": ahead_ms,
    }


def _place(client: ClientDetails, topic: str | None, partition: int) -> dict[str, Any]:
    return {
        "client_id": client.client_id,
        "software": _software(client),
        "principal": client.principal,
        "client_address": client.peer,
        "topic": topic,
        "partition": partition,
    }


def _software(client: ClientDetails) -> str | None:
    return None if client.software_name is None else f"{client.software_name} {client.software_version}"


_INTERVAL_SECONDS = 60
_OF_A_CLIENT = frozenset({"client_id", "software", "principal", "client_address"})


class ValidationLines:
    """Logs verdicts. `labels` knows the real topics, so that invented topic names do not use up their lines."""

    def __init__(self, labels: TopicLabels) -> None:
        self._labels = labels
        self._log = structlog.get_logger("sluicegate")
        self._by_mode = {
            Mode.REJECT: Aggregator(_INTERVAL_SECONDS, self._log_rejection, self._wider_rejection),
            Mode.OBSERVE: Aggregator(_INTERVAL_SECONDS, self._log_observed, self._wider_rejection),
            Mode.FIX: Aggregator(_INTERVAL_SECONDS, self._log_fixed, self._wider_rejection),
            Mode.QUARANTINE: Aggregator(_INTERVAL_SECONDS, self._log_quarantined, self._wider_rejection),
            Mode.MARK: Aggregator(_INTERVAL_SECONDS, self._log_marked, self._wider_rejection),
            Mode.COPY: Aggregator(_INTERVAL_SECONDS, self._log_copied, self._wider_rejection),
        }
        self._not_quarantined = Aggregator(_INTERVAL_SECONDS, self._log_not_quarantined, self._wider_rejection)
        self._rehearsals = Aggregator(_INTERVAL_SECONDS, self._log_rehearsal, self._wider_rejection)
        self._unreadable = Aggregator(_INTERVAL_SECONDS, self._log_unreadable, self._wider_rejection)
        self._far_ahead = Aggregator(_INTERVAL_SECONDS, self._log_far_ahead, self._wider_far_ahead)
        self._aggregators = (
            *self._by_mode.values(),
            self._not_quarantined,
            self._rehearsals,
            self._unreadable,
            self._far_ahead,
        )

    def rejected(
        self, mode: Mode, client: ClientDetails, topic: str | None, partition: int, rejected: Rejected, now_ms: int
    ) -> None:
        """Log a batch with a violation; `mode` is its outcome."""
        self._by_mode[mode].note(
            (client.client_id, topic, _violated(rejected)),
            max(1, rejected.bad_count),
            time.monotonic(),
            rejection,
            *(client, topic, partition, rejected, now_ms),
        )

    def unreadable(
        self, client: ClientDetails, topic: str | None, partition: int, found: Rejected, now_ms: int
    ) -> None:
        """Log a forwarded batch that some clients cannot read."""
        key = (client.client_id, topic, found.reason)
        self._unreadable.note(key, 0, time.monotonic(), rejection, client, topic, partition, found, now_ms)

    def not_quarantined(self, client: ClientDetails, topic: str, letters: DeadLetters, reason: str) -> None:
        """Log that the bad records of a batch could not be quarantined."""
        key = (client.client_id, topic, reason)
        records = len(letters.records)
        self._not_quarantined.note(key, records, time.monotonic(), not_kept, client, topic, letters, reason)

    def rehearsed(
        self, client: ClientDetails, topic: str | None, partition: int, bound: RehearsedBound, label: str, count: int
    ) -> None:
        """Log that a rehearsed bound would reject `count` records."""
        key = (client.client_id, topic, label)
        self._rehearsals.note(key, count, time.monotonic(), rehearsal, client, topic, partition, bound)

    def far_ahead(self, identity: ClientIdentity, topic: str | None, ahead_ms: int) -> None:
        """Log an accepted batch with a timestamp `ahead_ms` ahead of the proxy's clock."""
        client_id = identity.client_id if identity.client_id is None else cut(identity.client_id)
        self._far_ahead.note((client_id, topic), 0, time.monotonic(), far_ahead, identity, topic, ahead_ms)

    def sweep(self) -> None:
        """Write the lines that are due; called every few seconds."""
        now = time.monotonic()
        for aggregator in self._aggregators:
            aggregator.sweep(now)

    def flush(self) -> None:
        """Write all pending lines, before shutdown."""
        for aggregator in self._aggregators:
            aggregator.flush()

    def _wider_rejection(self, key: tuple[str | None, str | None, Any]) -> Wider:
        _, topic, reason = key
        if topic is not None and self._labels.knows(topic):
            return Wider((topic, reason), _OF_A_CLIENT)
        return Wider((None, reason), _OF_A_CLIENT | {"topic"})

    def _wider_far_ahead(self, key: tuple[str | None, str | None]) -> Wider:
        topic = key[1]
        if topic is not None and self._labels.knows(topic):
            return Wider((topic,), _OF_A_CLIENT)
        return Wider((None,), _OF_A_CLIENT | {"topic"})

    def _log_rejection(self, details: dict[str, Any], times: int, records: int) -> None:
        self._log.warning("batch rejected", **_without_none(details), batches=times, bad_records=records)

    def _log_observed(self, details: dict[str, Any], times: int, records: int) -> None:
        self._log.warning(
            "batch forwarded despite violations", **_without_none(details), batches=times, bad_records=records
        )

    def _log_fixed(self, details: dict[str, Any], times: int, records: int) -> None:
        self._log.warning("batch timestamps fixed", **_without_none(details), batches=times, bad_records=records)

    def _log_quarantined(self, details: dict[str, Any], times: int, records: int) -> None:
        self._log.warning("batch quarantined", **_without_none(details), batches=times, bad_records=records)

    def _log_marked(self, details: dict[str, Any], times: int, records: int) -> None:
        self._log.warning("batch forwarded with marks", **_without_none(details), batches=times, bad_records=records)

    def _log_copied(self, details: dict[str, Any], times: int, records: int) -> None:
        self._log.warning(
            "batch forwarded, bad records copied", **_without_none(details), batches=times, bad_records=records
        )

    def _log_not_quarantined(self, details: dict[str, Any], times: int, records: int) -> None:
        self._log.error(
            "quarantine write failed",
            **_without_none(details),
            batches=times,
            bad_records=records,
            advice="producers were asked to retry; check that the dead-letter topic exists and the proxy may write it",
        )

    def _log_rehearsal(self, details: dict[str, Any], times: int, records: int) -> None:
        self._log.info("rehearsed bound exceeded", **_without_none(details), batches=times, bad_records=records)

    def _log_unreadable(self, details: dict[str, Any], times: int, _records: int) -> None:
        advice = "some clients cannot read it; framing: strict rejects such batches"
        self._log.warning("unreadable batch forwarded", **_without_none(details), batches=times, advice=advice)

    def _log_far_ahead(self, details: dict[str, Any], times: int, _records: int) -> None:
        self._log.warning(
            "batch accepted with future timestamps",
            **_without_none(details),
            batches=times,
            advice="by default Kafka 4 rejects timestamps more than an hour ahead (KIP-937)",
        )


def _violated(rejected: Rejected) -> Reason | tuple[Reason, str]:
    """Return the reason, and the first rule if a rule was violated."""
    return (rejected.reason, rejected.rules[0][0]) if rejected.rules else rejected.reason


def _without_none(details: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in details.items() if value is not None}
