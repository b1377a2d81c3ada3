"""A broker's own meters, by the names that a JMX exporter gives them."""

from collections.abc import Mapping
from dataclasses import replace

from sluicegate.proxy.reporting.metrics.batch_events import BatchEvent
from sluicegate.proxy.reporting.metrics.broker_meters import Meter, has_failed
from sluicegate.proxy.reporting.metrics.counters import Snapshot
from sluicegate.proxy.reporting.metrics.family import Family, batch_counter, counter

_PREFIX = "kafka_server_brokertopicmetrics_"


def _of_meter(meter: Meter, text: str, look: str) -> Family:
    def read(snapshot: Snapshot) -> float:
        return snapshot.tally.broker_invalid[meter]

    return counter(_PREFIX + meter, text, look, read)


_FAILED = batch_counter(
    _PREFIX + "failedproducerequests",
    "Partitions of Produce requests rejected for what a broker counts as a failure, by topic and, without a topic, "
    "of all together; a wrong CRC or a size is none to it either.",
    "The alert that most have. As at a broker, the series without `topic` is the sum of the others.",
    BatchEvent.REJECTED,
    BatchEvent.QUARANTINED,
    when=has_failed,
)


def _failed_and_sum(snapshot: Snapshot) -> Mapping[tuple[str, ...], float]:
    by_topic = snapshot.tally.batch_counts[_FAILED.name]
    return {(): by_topic.total(), **{(topic,): count for topic, count in by_topic.items()}}


BROKER_NAMES: tuple[Family, ...] = (
    _of_meter(
        Meter.NO_KEY,
        "Records without a key for compacted topics, in batches that were rejected. Of a batch that has bad times too, "
        "those among its listed record errors.",
        "A producer writes to a compacted topic that was not meant for it.",
    ),
    _of_meter(
        Meter.MAGIC,
        "Records of another magic than their batch, in batches that were rejected.",
        "A broken client or an old one behind a converter.",
    ),
    _of_meter(
        Meter.CRC,
        "Batches rejected whose CRC does not fit, or which are shorter than their header.",
        "Damage on the way, or in a client. Behind the proxy brokers count stand-ins for rejected batches here, "
        "at most "
        "one a second for each connection and partition.",
    ),
    _of_meter(
        Meter.SEQUENCE,
        "Batches rejected for counts and offsets that do not agree, control batches from clients, and producer ids "
        "without a sequence.",
        "A broken client.",
    ),
    replace(_FAILED, read=_failed_and_sum),
)
