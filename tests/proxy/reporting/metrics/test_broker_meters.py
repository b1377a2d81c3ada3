"""Meters also count messages of magic 0 and 1, which the brokers in the conformance test do not accept."""

import pytest
import yaml

from sluicegate.protocol.framing import frame_of
from sluicegate.protocol.headers import build_request_header
from sluicegate.validation.broker_meters import BrokerMeter
from tests.conformance.cases import CASES
from tests.conformance.pair import proxy_settings
from tests.proxy.session.playbook import NOW, Playbook
from tests.wire.raw_client import PRODUCE, produce_body, topic_data

VERSION = 2
FAILED = "failed"
SEEN: dict[tuple[str, str], dict[str, int]] = {
    ("legacy: mixed magic", "bounded"): {BrokerMeter.MAGIC: 1, FAILED: 1},
    ("legacy: inner of other magic", "append-time"): {BrokerMeter.MAGIC: 1, FAILED: 1},
    ("legacy: a message and a v2 batch in an old request", "bounded"): {BrokerMeter.MAGIC: 1, FAILED: 1},
    ("legacy: v2 batch and a message in an old request", "bounded"): {FAILED: 1},
    ("legacy: v2 batch and a length of 0 in an old request", "bounded"): {},
    ("legacy: v2 batch and a length of int max in an old request", "bounded"): {},
    ("legacy: v2 batch and one with wrong crc in an old request", "bounded"): {BrokerMeter.CRC: 1},
    ("legacy: two wrappers", "bounded"): {FAILED: 1},
    ("legacy: nested compression", "bounded"): {FAILED: 1},
    ("legacy: codec 6", "append-time"): {FAILED: 1},
    ("legacy: wrong crc", "bounded"): {BrokerMeter.CRC: 1},
    ("legacy: null key", "compacted"): {BrokerMeter.NO_KEY: 1, FAILED: 1},
}


@pytest.mark.parametrize("seen", SEEN, ids=" on ".join)
def test_broker_meters_equal_those_of_kafka(seen: tuple[str, str]) -> None:
    case = next(each for each in CASES if (each.name, each.kind) == seen)
    play = Playbook(SLUICEGATE__TOPICS=yaml.safe_dump(proxy_settings()["topics"]))
    topics = [topic_data(f"t-{kind}", *partitions) for kind, partitions in case.topics(NOW)]

    play.from_client(
        frame_of(build_request_header(PRODUCE, VERSION, 1, "raw", 1) + produce_body(VERSION, topics, case.acks))
    )

    play.ends()
    counters = play.parts.observer.counted()
    by_topic = counters.batch_counts["kafka_server_brokertopicmetrics_failedproducerequests"]
    failed = {FAILED: by_topic.total()} if by_topic else {}
    assert {**counters.broker_invalid, **failed} == SEEN[seen]


def test_null_keys_are_counted_in_batch_with_bad_timestamps() -> None:
    """Kafka 4.3.1 counts 2 records without a key for the case `keys: null key and bad time` on a compacted topic."""
    case = next(e for e in CASES if (e.name, e.kind) == ("keys: null key and bad time, none", "compacted"))
    play = Playbook(SLUICEGATE__TOPICS=yaml.safe_dump(proxy_settings()["topics"]))
    topics = [topic_data(f"t-{kind}", *partitions) for kind, partitions in case.topics(NOW)]

    play.from_client(frame_of(build_request_header(PRODUCE, 8, 1, "raw", 1) + produce_body(8, topics)))
    play.ends()

    assert play.parts.observer.counted().broker_invalid == {BrokerMeter.NO_KEY: 2}
