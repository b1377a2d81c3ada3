"""For records that Confluent's client encrypted, a proxy that observes and an audit skip the same parts and report the
same counts. The expected counts are computed from the orders in this file.
"""

import json
import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import confluent_kafka
import pytest
from pyspark.sql import SparkSession

from sluicegate.pipeline.api import audit
from sluicegate.pipeline.jobs.audit.job import Audit
from tests.broker.proxy_process import ProxyProcess
from tests.config.contracts.written import contract_with_fields
from tests.integration.topics import UNVALIDATED, create_topic
from tests.registry.stand_in import StandIn, http_response
from tests.registry.test_encrypted_records import FIELDS, ORDER, PAYLOAD, EncryptedSchema, schema_body

pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
IDS = ["o-1", "o-2", "x-3", "o", "o-5", "o-5"]
"""The ids of the orders. One is too short, one is of a different kind, and one occurs twice."""
EMAIL = [f"{i}@example.org" for i in range(len(IDS))]
CASES = [(language, kind) for language in ("JSON", "AVRO", "PROTOBUF") for kind in ("fields", "whole")]
RULE_SETS = {"fields": FIELDS, "whole": PAYLOAD}
QUALITY_OF_IDS = """[
  {id: kinds, metric: invalidValues, mustBeLessThan: 50, unit: percent, arguments: {pattern: '^o-[0-9]'}},
  {id: one-each, metric: duplicateValues, mustBe: 0}]"""
QUALITY_OF_MAILS = """[
  {id: known, metric: invalidValues, mustBeLessThan: 50, unit: percent, arguments: {validValues: [none]}},
  {id: absent, metric: nullValues, mustBeLessThan: 10},
  {id: repeated, metric: duplicateValues, mustBeLessThan: 1}]"""
CONTRACT = f"""[
  {{name: id, logicalType: string, required: true, logicalTypeOptions: {{minLength: 2}}, quality: {QUALITY_OF_IDS}}},
  {{name: email, logicalType: string, logicalTypeOptions: {{format: email, maxLength: 20}},
    quality: {QUALITY_OF_MAILS}}}]"""


@dataclass(frozen=True)
class Measured:
    """`bad`: bad records in the proxy's events by topic. `counted`: the proxy's metric by part."""

    topics: dict[tuple[str, str], str]
    bad: dict[str, int]
    counted: dict[str, float]
    audit: Audit


def registry_of(topics: dict[tuple[str, str], str]) -> StandIn:
    """Return a registry in which the schema of the n-th case has the id n, under the subjects of all topics."""
    asked = re.compile(rb"GET /schemas/ids/(\d)(/versions)?")

    def answer(client: socket.socket, head: bytes) -> bool:
        about = asked.match(head)
        found: Any = [{"subject": f"{topic}-value", "version": 1} for topic in topics.values()]
        if about is None:  # the proxy's survey of subjects
            found = []
        elif about[2] is None:
            language, kind = CASES[int(about[1]) - 1]
            found = schema_body(language, RULE_SETS[kind])
        client.sendall(http_response("200 OK", json.dumps(found).encode()))
        return True

    return StandIn(answer)


def values_of(case: tuple[str, str]) -> Iterator[bytes]:
    language, kind = case
    written = EncryptedSchema(language, RULE_SETS[kind])
    for name, email in zip(IDS, EMAIL, strict=True):
        value = written.record({**ORDER, "id": name, "email": email}).value or b""
        yield b"\0\0\0\0" + bytes([CASES.index(case) + 1]) + value[5:]


@pytest.fixture(scope="module")
def measured_topics(spark: SparkSession, kafka_bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Measured:
    folder = tmp_path_factory.mktemp("encrypted")
    topics = {case: create_topic(kafka_bootstrap, UNVALIDATED) for case in CASES}
    rule = {"name": "contract.schema", "value": {"schema": {"registry": "main"}}}
    policies = [{"match": topics[case], "mode": "observe", "rules": [rule]} for case in CASES if case[0] == "JSON"]
    contracts = []
    for (language, kind), topic in topics.items():
        if language != "JSON":
            contract = contract_with_fields(" ".join(CONTRACT.split())).replace(
                "format: json", f"format: {language.lower()}"
            )
            (folder / f"{language}-{kind}.odcs.yaml").write_text(contract.replace("name: t\n", f"name: {topic}\n"))
            contracts.append({"path": f"{language}-{kind}.odcs.yaml", "mode": "observe", "registry": "main"})
    with registry_of(topics) as schemas:
        settings = {"topics": policies, "contracts": contracts, "registries": {"main": {"url": schemas.url}}}
        proxy = ProxyProcess(folder, kafka_bootstrap, settings)
        try:
            proxy.start()
            producer = confluent_kafka.Producer({"bootstrap.servers": proxy.bootstrap})
            for case, topic in topics.items():
                for value in values_of(case):
                    producer.produce(topic, value, b"key", 0)
            assert producer.flush(120) == 0
            for case, topic in topics.items():
                if case[1] == "fields":
                    proxy.wait_for_violations(topic, 1)
            bad = {topic: sum(each["bad_records"] for each in proxy.violations_of(topic)) for topic in topics.values()}
            counted = {part: _counted(proxy, part) for part in RULE_SETS}
        finally:
            proxy.stop()
        found = audit(spark, kafka_bootstrap, list(topics.values()), folder / "out", folder / "sluicegate.yaml")
    return Measured(topics, bad, counted, found)


def _counted(proxy: ProxyProcess, part: str) -> float:
    lines = proxy.get("/metrics")[1].splitlines()
    name = "sluicegate_encrypted_records_total{"
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name) and f'"{part}"' in line)


def test_each_encrypted_record_is_counted_once_on_the_wire(measured_topics: Measured) -> None:
    assert measured_topics.counted == dict.fromkeys(RULE_SETS, 3.0 * len(IDS))


@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_proxy_and_audit_skip_the_same_encrypted_parts(case: tuple[str, str], measured_topics: Measured) -> None:
    topic, kind = measured_topics.topics[case], case[1]
    summary = measured_topics.audit.summary["topics"][topic]
    too_short = 1 if kind == "fields" else 0

    assert measured_topics.bad[topic] == too_short
    assert sum(row["bad_records"] for row in summary["findings"]) == too_short
    assert summary["encrypted"] == [{"registry": "main", "part": kind, "records": len(IDS)}]
    words = "as a whole" if kind == "whole" else "with encrypted fields"
    assert any(
        each.startswith(f"{topic}: {len(IDS)} records") and words in each for each in measured_topics.audit.warnings
    )


@pytest.mark.parametrize("case", [case for case in CASES if case[0] != "JSON"], ids="-".join)
def test_contract_checks_skip_encrypted_values(case: tuple[str, str], measured_topics: Measured) -> None:
    checks = measured_topics.audit.summary["topics"][measured_topics.topics[case]]["contract"]["checks"]
    found = {check["check"].partition(":")[0]: check["found"] for check in checks if check["found"] is not None}
    found.pop("latency", None)

    others = [name for name in IDS if not re.match("o-[0-9]", name)]
    kinds, twice = (100 * len(others) / len(IDS), 1) if case[1] == "fields" else (0, 0)
    assert found == {"kinds": pytest.approx(kinds), "one-each": twice, "known": 0, "absent": 0, "repeated": 0}
