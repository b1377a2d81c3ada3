"""Reads a broker's own meters through Prometheus's JMX exporter, with the usual rules for Kafka."""

import os
import re
import urllib.request
from pathlib import Path

import pytest

from tests.broker.ports import free_ports
from tests.oracle.kafka_java import ROOT

PREFIX = "kafka_server_brokertopicmetrics_"
_COMPARED = re.compile(rf"{PREFIX}((?:nokey|invalid|failedproduce)\w+_total)(?:\{{topic=\"([^\"]*)\",?\}})? ([\d.e+]+)")
# As in the exporter's example for Kafka, `…PerSec` becomes `…_total`, and a topic becomes a label.
_RULES = r"""lowercaseOutputName: true
includeObjectNames: ["kafka.server:type=BrokerTopicMetrics,*"]
rules:
  - pattern: kafka.(\w+)<type=(.+), name=(.+)PerSec\w*, (.+)=(.+)><>Count
    name: kafka_$1_$2_$3_total
    type: COUNTER
    labels: {"$4": "$5"}
  - pattern: kafka.(\w+)<type=(.+), name=(.+)PerSec\w*><>Count
    name: kafka_$1_$2_$3_total
    type: COUNTER
"""

Meters = dict[tuple[str, str | None], float]
"""Values by meter and topic; None for all topics."""


class JmxExporter:
    """The exporter of one broker. `options`: options of Java for that broker."""

    def __init__(self, folder: Path) -> None:
        self._port = free_ports(1)
        rules = folder / "jmx.yaml"
        rules.write_text(_RULES)
        self.options = (f"-javaagent:{_agent()}=127.0.0.1:{self._port}:{rules}",)

    def scrape(self) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/metrics", timeout=30) as response:
            text: str = response.read().decode()
            return text


def meters_in(scrape: str) -> Meters:
    """Return the meters of bad records and failed requests in a scrape of a broker or the proxy, without zeros."""
    found = (_COMPARED.fullmatch(line) for line in scrape.splitlines())
    return {(match[1], match[2]): float(match[3]) for match in found if match and float(match[3])}


def meter_increases(before: Meters, after: Meters) -> Meters:
    return {key: value - before.get(key, 0) for key, value in after.items() if value != before.get(key, 0)}


def _agent() -> Path:
    folder = ROOT / ".kafka" / "jmx"
    if not (folder / ".complete").exists():
        message = "the JMX exporter is missing: run `make kafka` (Maven is needed)"
        if os.environ.get("SLUICEGATE_REQUIRE_BROKER"):
            pytest.fail(message)
        pytest.skip(message)
    (jar,) = folder.glob("jmx_prometheus_javaagent-*.jar")
    return jar
