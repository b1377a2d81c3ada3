"""A broker's own meters, as Prometheus's JMX exporter shows them with the rules that most have for Kafka."""

import os
import re
import urllib.request
from pathlib import Path

import pytest

from tests.broker.ports import free_ports
from tests.oracle.kafka_java import ROOT

PREFIX = "kafka_server_brokertopicmetrics_"
_COMPARED = re.compile(rf"{PREFIX}((?:nokey|invalid|failedproduce)\w+_total)(?:\{{topic=\"([^\"]*)\",?\}})? ([\d.e+]+)")
# As in the exporter's own example for Kafka: `…PerSec` becomes `…_total`, a topic becomes a label.
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
"""By meter and topic; None: of all topics."""


class JmxExporter:
    """Goes with one broker, whose Java gets `options`."""

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
    """What a scrape, of a broker or of the proxy, says of bad records and failed requests; what is 0 is left out."""
    found = (_COMPARED.fullmatch(line) for line in scrape.splitlines())
    return {(match[1], match[2]): float(match[3]) for match in found if match and float(match[3])}


def rise(before: Meters, after: Meters) -> Meters:
    return {key: value - before.get(key, 0) for key, value in after.items() if value != before.get(key, 0)}


def _agent() -> Path:
    folder = ROOT / ".kafka" / "jmx"
    if not (folder / ".complete").exists():
        message = "the JMX exporter is not here: run `make kafka` (Maven is needed)"
        if os.environ.get("SLUICEGATE_REQUIRE_BROKER"):
            pytest.fail(message)
        pytest.skip(message)
    (jar,) = folder.glob("jmx_prometheus_javaagent-*.jar")
    return jar
