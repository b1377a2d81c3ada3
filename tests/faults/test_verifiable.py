"""Kafka's own verifiable producer and consumer work through the proxy while both sides of it fail.

Each record that the producer reports as stored is consumed once, at the reported offset. `make verifiable` runs the
test for ten minutes.
"""

import json
import os
import signal
import subprocess
import time
from itertools import cycle, product
from pathlib import Path
from typing import Any

import pytest

from tests.broker.child_processes import killed_with_parent
from tests.broker.eventually import eventually
from tests.broker.kafka import Kafka
from tests.broker.proxy_process import ProxyProcess
from tests.faults.relay import DirectedFault, Direction, FaultyRelay, RelayFaultKind
from tests.integration.topics import UNVALIDATED, create_topic
from tests.oracle.java_program import java_command
from tests.oracle.kafka_java import KAFKA_NEW, kafka_folder

pytestmark = pytest.mark.long

_SECONDS = float(os.environ.get("SLUICEGATE_VERIFIABLE_SECONDS", "20"))
_RECORDS_A_SECOND = 100
_PARTITIONS = 3
_CLIENTS, _BROKERS = "127.0.0.2", "127.0.0.3"
_FAULTS = [
    DirectedFault(kind, way)
    for kind in (RelayFaultKind.RESET, RelayFaultKind.DELAY, RelayFaultKind.CUT, RelayFaultKind.STALL)
    for way in (Direction.THERE, Direction.BACK)
]
_PRODUCER = """retries=2147483647
enable.idempotence=true
delivery.timeout.ms=600000
request.timeout.ms=10000
"""


class Tool:
    """A verifiable client; its output is one JSON object a line."""

    def __init__(self, name: str, folder: Path, *arguments: str, version: str = KAFKA_NEW) -> None:
        self._output = folder / name
        program = java_command(kafka_folder(version), f"org.apache.kafka.tools.Verifiable{name}")
        with self._output.open("wb") as output, (folder / f"{name}.log").open("wb") as log:
            self.process = subprocess.Popen(killed_with_parent([*program, *arguments]), stdout=output, stderr=log)

    def events(self, name: str) -> list[dict[str, Any]]:
        lines = self._output.read_text().splitlines(keepends=True)
        found = [json.loads(line) for line in lines if line.startswith("{") and line.endswith("\n")]
        return [event for event in found if event["name"] == name]

    def stop(self) -> None:
        """End the client like Ctrl-C, so that it completes started operations."""
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(300)
        finally:
            self.process.kill()
            self.process.wait()


@pytest.mark.timeout(_SECONDS + 1200)
def test_records_reported_as_stored_are_consumed_once_at_their_offset(tmp_path: Path) -> None:
    broker = Kafka(KAFKA_NEW, tmp_path / "kafka", relay_host=_BROKERS)
    try:
        broker.start()
        topic = create_topic(broker.bootstrap, UNVALIDATED, _PARTITIONS)
        proxy = ProxyProcess(tmp_path, broker.relayed_bootstrap)
        proxy.config["listen"]["advertised_host"] = _CLIENTS
        (node,) = broker.nodes
        ports = [int(proxy.bootstrap.rpartition(":")[2]), proxy.broker_port(node.node_id)]
        before, behind = FaultyRelay(_CLIENTS, ports, 1), FaultyRelay(_BROKERS, [node.relayed_port], 2)
        with before, behind:
            try:
                proxy.start()
                stored, consumed = _under_faults(f"{_CLIENTS}:{ports[0]}", topic, (before, behind), tmp_path)
            finally:
                proxy.stop()
    finally:
        broker.stop()

    places = {(event["partition"], event["offset"]): event["value"] for event in consumed}
    assert len(stored) > _SECONDS  # the producer stored records during the fault
    assert before.hits > 0
    assert behind.hits > 0
    assert [event for event in stored if places[event["partition"], event["offset"]] != event["value"]] == []
    assert len(set(places.values())) == len(places)  # no value occurs twice
    hits = f"faults hit {before.hits} and {behind.hits} times"
    print(f"{len(stored)} records stored and consumed in {_SECONDS:.0f} s; {hits}")


def _under_faults(
    bootstrap: str, topic: str, relays: tuple[FaultyRelay, FaultyRelay], folder: Path
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the events of stored and of consumed records, after a fault each two seconds."""
    settings = folder / "producer.properties"
    settings.write_text(_PRODUCER)
    at = ("--bootstrap-server", bootstrap, "--topic", topic)
    consumer = Tool("Consumer", folder, *at, "--group-id", "verifiable", "--reset-policy", "earliest", "--verbose")
    producer = Tool(
        "Producer",
        folder,
        *at,
        "--acks",
        "-1",
        "--throughput",
        str(_RECORDS_A_SECOND),
        "--command-config",
        str(settings),
    )
    try:
        eventually(lambda: bool(producer.events("producer_send_success")), 300, what="a stored record")
        end = time.monotonic() + _SECONDS
        for trouble, relay in cycle(product(_FAULTS, relays)):
            if time.monotonic() > end:
                break
            relay.begin(trouble)
            time.sleep(1)  # the duration of the fault
            relay.heal()
            time.sleep(1)
        producer.stop()
        stored = producer.events("producer_send_success")
        eventually(lambda: len(consumer.events("record_data")) >= len(stored), 300, what="all records consumed")
        return stored, consumer.events("record_data")
    finally:
        producer.process.kill()
        producer.process.wait()
        consumer.stop()
