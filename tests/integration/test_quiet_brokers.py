"""A flood of rejected records is hardly visible in a broker's own metrics and log."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker.kafka import Kafka
from tests.broker.ports import free_ports
from tests.broker.proxy_process import ProxyProcess
from tests.integration.java import java_tool
from tests.integration.test_produce import bad_batch_now, good_batch_now, leader_of
from tests.integration.topics import DEFAULTS, UNVALIDATED, create_topic
from tests.oracle.kafka_java import KAFKA_NEW, KAFKA_OLD
from tests.wire.raw_client import RawClient, topic_data

pytestmark = pytest.mark.long

REJECTED = 300
INVALID_TIMESTAMP = 32
BROKER_METERS = "kafka.server:type=BrokerTopicMetrics,name="


class WatchedKafka:
    """A broker with readable meters."""

    def __init__(self, version: str, folder: Path) -> None:
        self._port = free_ports(1)
        jmx = {"port": str(self._port), "authenticate": "false", "ssl": "false", "host": "127.0.0.1"}
        options = tuple(f"-Dcom.sun.management.jmxremote.{name}={value}" for name, value in jmx.items())
        self.kafka = Kafka(version, folder, options=(*options, "-Djava.rmi.server.hostname=127.0.0.1"))

    def count(self, meter: str) -> float:
        """Return a meter's count; 0 if nothing was counted."""
        url = f"service:jmx:rmi:///jndi/rmi://127.0.0.1:{self._port}/jmxrmi"
        asked = ("--object-name", f"{BROKER_METERS}{meter}", "--attributes", "Count", "--one-time")
        output = java_tool("org.apache.kafka.tools.JmxTool", "--jmx-url", url, *asked, "--report-format", "tsv")
        return float(next((line.split()[-1] for line in output.splitlines() if meter in line), "0"))

    def log_lines_with(self, word: str) -> list[str]:
        log = (self.kafka.folder / "node-1.log").read_text()
        return [line for line in log.splitlines() if word in line]


@pytest.fixture(params=[KAFKA_NEW, KAFKA_OLD])
def watched_kafka(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[WatchedKafka]:
    watched = WatchedKafka(request.param, tmp_path)
    try:
        watched.kafka.start()
        yield watched
    finally:
        watched.kafka.stop()


def test_rejected_records_do_not_look_like_a_disk_fault_to_the_broker(
    watched_kafka: WatchedKafka, tmp_path: Path
) -> None:
    """Regression: 300 of them raised the meter of wrong CRCs by 294 and logged errors about base offsets."""
    bootstrap = watched_kafka.kafka.bootstrap
    topic = create_topic(bootstrap, UNVALIDATED)
    proxy = ProxyProcess(tmp_path, bootstrap, {"defaults": DEFAULTS})
    try:
        proxy.start()
        with RawClient(leader_of(proxy, topic)) as client:
            codes, log_starts = set(), set()
            for _ in range(REJECTED):
                output = client.produce(9, [topic_data(topic, (0, bad_batch_now()))])
                assert isinstance(output, dict)
                entry = output["responses"][0]["partition_responses"][0]
                codes.add(entry["error_code"])
                log_starts.add(entry["log_start_offset"])
            output = client.produce(9, [topic_data(topic, (0, good_batch_now()))])
    finally:
        proxy.stop()

    assert (codes, log_starts) == ({INVALID_TIMESTAMP}, {0})
    assert isinstance(output, dict)
    assert output["responses"][0]["partition_responses"][0]["error_code"] == 0
    assert watched_kafka.count("InvalidMessageCrcRecordsPerSec") < REJECTED / 10
    assert watched_kafka.count("FailedProduceRequestsPerSec") == 0
    assert [line for line in watched_kafka.log_lines_with("ERROR") if topic in line] == []
