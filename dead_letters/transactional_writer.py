"""Writes records and the marks on their letters in one transaction."""

import time
from collections.abc import Callable, Sequence
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from sluicegate.dead_letters.cluster import Cluster, ClusterUnavailable
from sluicegate.dead_letters.delivery_reports import serve
from sluicegate.dead_letters.marks import Mark
from sluicegate.dead_letters.plan import PlannedRecord
from sluicegate.dead_letters.producing import REJECTIONS, producer_settings, send_mark, send_record

_SECONDS = 60.0
_PAUSE_SECONDS = 0.5
_GIVE_UP_SECONDS = 300.0
_FENCED = frozenset(
    {KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED, KafkaError._FATAL}
)


class Fenced(Exception):
    """Raised if another run with the same transactional id has taken over."""


class TransactionalWriter:
    """A producer with one transactional id per dead-letter topic, so that it fences earlier runs.

    Creating it aborts an earlier run's open transaction and waits for the abort to complete. Raises ClusterUnavailable.
    """

    def __init__(self, cluster: Cluster, topic: str, mark_topic: str) -> None:
        self._mark_topic = mark_topic
        self._errors: list[KafkaError] = []
        self._producer = Producer(
            {
                **producer_settings(cluster),
                "transactional.id": f"sluicegate-redrive.{topic}",
            }
        )
        self._until_done(lambda: self._producer.init_transactions(_SECONDS))

    def write(self, records: Sequence[PlannedRecord], marks: Sequence[Mark]) -> str | None:
        """Write records and their marks in one transaction. If a record is rejected, return its error code.

        After a rejection, nothing is written. Retries the transaction after errors that no record caused. Raises Fenced
        and ClusterUnavailable.
        """
        end = time.monotonic() + _GIVE_UP_SECONDS
        while True:
            self._errors.clear()
            self._until_done(self._producer.begin_transaction)
            try:
                self._send(records, marks)
                self._commit()
            except KafkaException as failure:
                self._abort(failure.args[0])
                rejection = self._rejection(failure.args[0])
                if rejection is not None:
                    return rejection
                if time.monotonic() > end or not _may_pass(self._errors or [failure.args[0]]):
                    raise ClusterUnavailable(str((self._errors or [failure.args[0]])[0].str())) from failure
                time.sleep(_PAUSE_SECONDS)  # the cluster does not announce its recovery
            else:
                return None

    def _send(self, records: Sequence[PlannedRecord], marks: Sequence[Mark]) -> None:
        for record in records:
            send_record(self._producer, record, self._delivered, self._errors)
        for mark in marks:
            send_mark(self._producer, self._mark_topic, mark, self._delivered, self._errors)

    def _commit(self) -> None:
        serve(lambda: self._producer.flush(_SECONDS), self._errors)
        if self._errors:
            raise KafkaException(self._errors[0])
        self._until_done(lambda: self._producer.commit_transaction(_SECONDS))

    def _abort(self, error: KafkaError) -> None:
        if error.code() in _FENCED or error.fatal():
            raise Fenced
        self._until_done(lambda: self._producer.abort_transaction(_SECONDS))

    def _rejection(self, error: KafkaError) -> str | None:
        return next((REJECTIONS[each.code()] for each in (*self._errors, error) if each.code() in REJECTIONS), None)

    def _delivered(self, error: Any, _message: Any) -> None:
        if error is not None:
            self._errors.append(error)

    def _until_done(self, call: Callable[[], object]) -> None:
        """Retry a retriable call until it succeeds. Raises Fenced and KafkaException."""
        end = time.monotonic() + _GIVE_UP_SECONDS
        while True:
            try:
                call()
                return
            except KafkaException as failure:
                error = failure.args[0]
                if error.code() in _FENCED or error.fatal():
                    raise Fenced from failure
                if not error.retriable() or time.monotonic() > end:
                    raise


def _may_pass(errors: Sequence[KafkaError]) -> bool:
    """Return whether all errors may be due to an outage."""
    outages = {KafkaError._MSG_TIMED_OUT, KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT, KafkaError._TRANSPORT}
    return all(error.retriable() or error.txn_requires_abort() or error.code() in outages for error in errors)
