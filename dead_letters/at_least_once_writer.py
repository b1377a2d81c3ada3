"""Writes records to a cluster other than that of the marks: first the records, then their marks."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from sluicegate.dead_letters.cluster import Cluster, ClusterUnavailable
from sluicegate.dead_letters.delivery_reports import serve
from sluicegate.dead_letters.marks import Mark
from sluicegate.dead_letters.plan import PlannedRecord
from sluicegate.dead_letters.producing import REJECTIONS, OnDelivery, producer_settings, send_mark, send_record

_SECONDS = 60.0


class AtLeastOnceWriter:
    """A pair of producers: one for the records, and one for the marks in the cluster of the dead letters.

    If the run ends after records were written but before their marks were, a later run writes these records again. Two
    concurrent runs do not fence each other.
    """

    def __init__(self, target: Cluster, source: Cluster, mark_topic: str) -> None:
        self._mark_topic = mark_topic
        self._records = Producer(producer_settings(target))
        self._marks = Producer(producer_settings(source))
        self._written: set[tuple[int, int]] = set()
        self._errors: list[KafkaError] = []

    def write(self, records: Sequence[PlannedRecord], marks: Sequence[Mark]) -> str | None:
        """Write records, then their marks. If a record is rejected, write no marks and return its error code.

        After a rejection, the next call does not repeat the records that were already written. Raises
        ClusterUnavailable.
        """
        self._errors.clear()
        try:
            for record in records:
                place = (record.source.partition, record.source.offset)
                if place not in self._written:
                    self._send(record, partial(self._delivered, place))
            _flush(self._records, self._errors)
            rejection = self._rejection()
            if rejection is not None:
                return rejection
            for mark in marks:
                send_mark(self._marks, self._mark_topic, mark, partial(self._delivered, None), self._errors)
            _flush(self._marks, self._errors)
        except KafkaException as failure:
            raise ClusterUnavailable(str(failure.args[0].str())) from failure
        if self._errors:
            raise ClusterUnavailable(str(self._errors[0].str()))
        self._written.difference_update((record.source.partition, record.source.offset) for record in records)
        return None

    def _send(self, record: PlannedRecord, delivered: OnDelivery) -> None:
        try:
            send_record(self._records, record, delivered, self._errors)
        except KafkaException as failure:  # librdkafka itself rejected the record
            self._errors.append(failure.args[0])

    def _rejection(self) -> str | None:
        """Return the code of the first rejection, or None. Raises KafkaException for an error that no record caused.

        A broker rejects the whole batch. For the batch's other records, librdkafka reports a different error.
        """
        for error in self._errors:
            if error.code() not in REJECTIONS and error.code() != KafkaError._INVALID_DIFFERENT_RECORD:
                raise KafkaException(error)
        blaming = (REJECTIONS[error.code()] for error in self._errors if error.code() in REJECTIONS)
        return next(blaming, REJECTIONS[KafkaError.INVALID_RECORD]) if self._errors else None

    def _delivered(self, place: tuple[int, int] | None, error: Any, _message: Any) -> None:
        if error is not None:
            self._errors.append(error)
        elif place is not None:
            self._written.add(place)


def _flush(producer: Producer, errors: Sequence[KafkaError]) -> None:
    """Wait until every record is delivered or has failed: at most librdkafka's delivery timeout (5 minutes)."""
    while len(producer):
        serve(lambda: producer.flush(_SECONDS), errors)
