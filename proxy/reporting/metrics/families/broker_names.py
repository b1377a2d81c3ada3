"""Declares a broker's own metrics, under the names that a JMX exporter uses."""

from collections.abc import Mapping
from dataclasses import replace

from sluicegate.proxy.reporting.metrics.batch_events import BatchEvent
from sluicegate.proxy.reporting.metrics.counters import Snapshot
from sluicegate.proxy.reporting.metrics.family import Family, batch_counter, counter
from sluicegate.validation.broker_meters import BrokerMeter, has_failed

_PREFIX = "kafka_server_brokertopicmetrics_"


def _of_meter(meter: BrokerMeter, text: str, advice: str) -> Family:
    def read(snapshot: Snapshot) -> float:
        return snapshot.counters.broker_invalid[meter]

    return counter(_PREFIX + meter, text, advice, read)


_FAILED = batch_counter(
    _PREFIX + "failedproducerequests",
    "Rejected partitions of Produce requests that a broker counts as failed, by topic, and in total without a topic. "
    "A broker does not count a wrong CRC or an excessive size.",
    "Existing alerts usually use this metric. As on a broker, the series without `topic` is the sum of the others.",
    BatchEvent.REJECTED,
    BatchEvent.QUARANTINED,
    when=has_failed,
)


def _failed_and_sum(snapshot: Snapshot) -> Mapping[tuple[str, ...], float]:
    by_topic = snapshot.counters.batch_counts[_FAILED.name]
    return {(): by_topic.total(), **{(topic,): count for topic, count in by_topic.items()}}


BROKER_NAMES: tuple[Family, ...] = (
    _of_meter(
        BrokerMeter.NO_KEY,
        "Records without a key in rejected batches for compacted topics. If the batch also has bad timestamps, only "
        "its listed record errors count.",
        "A producer without keys writes to a compacted topic.",
    ),
    _of_meter(
        BrokerMeter.MAGIC,
        "Records in rejected batches whose magic differs from that of their batch.",
        "The client is faulty, or an old client sends through a converter.",
    ),
    _of_meter(
        BrokerMeter.CRC,
        "Rejected batches that have a wrong CRC or are shorter than a header.",
        "An increase means data corruption on the network or in a client. Brokers behind the proxy count stand-ins "
        "for rejected batches "
        "here: at most one a second for each connection and partition.",
    ),
    _of_meter(
        BrokerMeter.SEQUENCE,
        "Batches rejected because of inconsistent counts or offsets, because clients sent control batches, or because "
        "a producer id lacks a sequence.",
        "A client writes inconsistent batches.",
    ),
    replace(_FAILED, read=_failed_and_sum),
)
