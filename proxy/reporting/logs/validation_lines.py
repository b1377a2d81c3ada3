"""Log lines about validations: many equal things become few lines, each with its count."""

import time
from typing import Any

import structlog

from sluicegate.proxy.reporting.bounded_text import cut
from sluicegate.proxy.reporting.events.violation_event import Who
from sluicegate.proxy.reporting.logs.aggregation import Aggregator, Wider
from sluicegate.proxy.reporting.logs.validation_details import far_ahead, not_kept, rehearsal, rejection
from sluicegate.proxy.reporting.metrics.topic_labels import TopicLabels
from sluicegate.proxy.responses.dead_letters import DeadLetters
from sluicegate.proxy.session.client.identity import ClientIdentity
from sluicegate.validation.rules.rule import Mode
from sluicegate.validation.timestamps import RehearsedBound
from sluicegate.validation.verdict import Reason, Rejected

_INTERVAL_SECONDS = 60
_OF_A_CLIENT = frozenset({"client_id", "software", "principal", "peer"})


class ValidationLines:
    """`labels` says which topics are known, so that what clients invent takes no line from them. Topics are shown as
    they are handed in.
    """

    def __init__(self, labels: TopicLabels) -> None:
        self._labels = labels
        self._log = structlog.get_logger("sluicegate")
        self._by_mode = {
            Mode.REJECT: Aggregator(_INTERVAL_SECONDS, self._log_rejection, self._wider_rejection),
            Mode.OBSERVE: Aggregator(_INTERVAL_SECONDS, self._log_observed, self._wider_rejection),
            Mode.FIX: Aggregator(_INTERVAL_SECONDS, self._log_fixed, self._wider_rejection),
            Mode.QUARANTINE: Aggregator(_INTERVAL_SECONDS, self._log_quarantined, self._wider_rejection),
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
        self, mode: Mode, client: Who, topic: str | None, partition: int, rejected: Rejected, now_ms: int
    ) -> None:
        """Something is wrong with a batch; `mode` is what became of it."""
        self._by_mode[mode].note(
            (client.client_id, topic, _what(rejected)),
            max(1, rejected.bad_count),
            time.monotonic(),
            rejection,
            *(client, topic, partition, rejected, now_ms),
        )

    def unreadable(self, client: Who, topic: str | None, partition: int, found: Rejected, now_ms: int) -> None:
        """A batch was forwarded that some clients cannot read."""
        key = (client.client_id, topic, found.reason)
        self._unreadable.note(key, 0, time.monotonic(), rejection, client, topic, partition, found, now_ms)

    def not_quarantined(self, client: Who, topic: str, letters: DeadLetters, reason: str) -> None:
        """The bad records of a batch could not be kept."""
        key = (client.client_id, topic, reason)
        records = len(letters.records)
        self._not_quarantined.note(key, records, time.monotonic(), not_kept, client, topic, letters, reason)

    def rehearsed(
        self, client: Who, topic: str | None, partition: int, bound: RehearsedBound, label: str, count: int
    ) -> None:
        """A bound on trial would reject so many records."""
        key = (client.client_id, topic, label)
        self._rehearsals.note(key, count, time.monotonic(), rehearsal, client, topic, partition, bound)

    def far_ahead(self, identity: ClientIdentity, topic: str | None, ahead_ms: int) -> None:
        """A batch was accepted whose latest time is so far ahead of ours."""
        client_id = identity.client_id if identity.client_id is None else cut(identity.client_id)
        self._far_ahead.note((client_id, topic), 0, time.monotonic(), far_ahead, identity, topic, ahead_ms)

    def sweep(self) -> None:
        """Write lines that are due; called every few seconds."""
        now = time.monotonic()
        for aggregator in self._aggregators:
            aggregator.sweep(now)

    def flush(self) -> None:
        """Write everything that has gathered."""
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
        self._log.warning("rejected", **_said(details), batches=times, bad_records=records)

    def _log_observed(self, details: dict[str, Any], times: int, records: int) -> None:
        self._log.warning(
            "forwarded, though mode reject would reject it", **_said(details), batches=times, bad_records=records
        )

    def _log_fixed(self, details: dict[str, Any], times: int, records: int) -> None:
        self._log.warning("fixed: forwarded with other times", **_said(details), batches=times, bad_records=records)

    def _log_quarantined(self, details: dict[str, Any], times: int, records: int) -> None:
        self._log.warning(
            "rejected, and bad records kept in the dead-letter topic",
            **_said(details),
            batches=times,
            bad_records=records,
        )

    def _log_not_quarantined(self, details: dict[str, Any], times: int, records: int) -> None:
        self._log.error(
            "bad records cannot be kept, so their batches are to be sent again: see that the dead-letter topic exists "
            "and may be written",
            **_said(details),
            batches=times,
            bad_records=records,
        )

    def _log_rehearsal(self, details: dict[str, Any], times: int, records: int) -> None:
        self._log.info("a bound on trial would reject this", **_said(details), batches=times, bad_records=records)

    def _log_unreadable(self, details: dict[str, Any], times: int, _records: int) -> None:
        self._log.warning("forwarded, though framing: strict would reject it", **_said(details), batches=times)

    def _log_far_ahead(self, details: dict[str, Any], times: int, _records: int) -> None:
        self._log.warning(
            "accepted, but more than an hour ahead: Kafka 4 rejects such timestamps by default (KIP-937)",
            **_said(details),
            batches=times,
        )


def _what(rejected: Rejected) -> Reason | tuple[Reason, str]:
    """What tells one rejection from another: the reason, and the rule where it is one."""
    return (rejected.reason, rejected.rules[0][0]) if rejected.rules else rejected.reason


def _said(details: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in details.items() if value is not None}
