"""A data contract on the wire and at rest: the same file gives the same figures, and checks of all stored records."""

import json
import socket
import time
from collections import Counter
from io import BytesIO
from pathlib import Path
from typing import Any

import confluent_kafka
import fastavro
import pytest
from pyspark.sql import SparkSession

from sluicegate.pipeline.api import audit
from tests.broker.proxy_process import ProxyProcess
from tests.config.contracts.written import ORDERS
from tests.integration.topics import UNVALIDATED, create_topic
from tests.registry.stand_in import StandIn, said

pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
VALUES: list[Any] = [
    {"id": "1", "amount": 1, "currency": "EUR"},
    {"id": "2", "amount": 2, "currency": "USD"},
    {"id": "2", "amount": 2, "currency": None},
    {"id": "3", "amount": -2, "currency": "DM"},
    {"id": "4", "currency": "DM"},
    {"id": "5", "amount": 5},
    {"id": "5", "amount": 5},
    {"id": "6", "amount": 5, "currency": ""},
]
MORE = """      - {metric: missingValues, mustBeBetween: [2, 4], arguments: {missingValues: [null, '']}}
          - {metric: invalidValues, mustBeLessThan: 25, unit: percent, arguments: {pattern: '^[A-Z]{3}$'}}
"""


def test_the_figures_are_those_of_the_proxy_and_all_records_are_counted(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path
) -> None:
    topic = create_topic(kafka_bootstrap, UNVALIDATED)
    contract = ORDERS.replace("orders.v1", topic).replace(
        "    quality:\n      - {id: enough", f"    {MORE}    quality:\n      - {{id: enough"
    )
    (tmp_path / "orders.odcs.yaml").write_text(contract)
    proxy = ProxyProcess(tmp_path, kafka_bootstrap, {"contracts": [{"path": "*.odcs.yaml", "mode": "observe"}]})
    try:
        proxy.start()
        producer = confluent_kafka.Producer({"bootstrap.servers": proxy.bootstrap})
        for value in VALUES:
            producer.produce(topic, json.dumps(value).encode(), partition=0)
            producer.flush(30)
        producer.produce(topic, None, b"deleted")
        producer.flush(30)
        events = proxy.wait_for_violations(topic, 3)
    finally:
        proxy.stop()
    by_rule = {"contract.schema": 0, "contract.known-currency": 0}
    for event in events:
        for broken in event["rules"]:
            by_rule[broken["rule"]] += broken["bad_records"]

    found = audit(spark, kafka_bootstrap, topic, tmp_path / "out", tmp_path / "sluicegate.yaml")

    summary = found.summary["topics"][topic]
    assert {row["rule"]: row["bad_records"] for row in summary["findings"]} == by_rule
    assert by_rule == {"contract.schema": 2, "contract.known-currency": 3}
    checks = {check["check"].partition(":")[0]: check for check in summary["contract"]["checks"]}
    assert {name: (check["found"], check["passed"]) for name, check in checks.items() if name != "latency"} == {
        "enough": (8, True),
        "id.unique": (2, False),
        "some-currency": (37.5, True),
        "currency.missingValues": (4, False),
        "currency.invalidValues": (37.5, False),
    }
    assert checks["latency"]["passed"] and 0 <= checks["latency"]["found"] < time.time() * 1000
    assert summary["contract"]["not_checked"] == [
        "sql: its type is sql",
        "service level availability: stored records do not show it",
    ]
    assert any("id.unique: duplicateValues of id mustBe 0, found 2" in warning for warning in found.warnings)


AVRO = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "amount", "type": ["null", "double"]},
        {"name": "currency", "type": ["null", "string"]},
    ],
}


def registry_of_one_schema(topic: str) -> StandIn:
    def answer(client: socket.socket, head: bytes) -> bool:
        found: Any = {"schema": json.dumps(AVRO)}
        if b"/versions" in head.split(b"\r", 1)[0]:
            found = [{"subject": f"{topic}-value", "version": 1}]
        client.sendall(said("200 OK", json.dumps(found).encode()))
        return True

    return StandIn(answer)


def in_avro(value: dict[str, Any]) -> bytes:
    out = BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(AVRO), {"amount": None, "currency": None} | value)
    return b"\0\0\0\0\1" + out.getvalue()


def test_records_in_avro_have_the_figures_of_the_same_records_in_json(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path
) -> None:
    topic = create_topic(kafka_bootstrap, UNVALIDATED)
    contract = ORDERS.replace("orders.v1", topic).replace("format: json", "format: avro")
    (tmp_path / "orders.odcs.yaml").write_text(contract)
    item = {"path": "*.odcs.yaml", "mode": "observe", "registry": "main"}
    with registry_of_one_schema(topic) as registry:
        settings = {"contracts": [item], "registries": {"main": {"url": registry.url}}}
        proxy = ProxyProcess(tmp_path, kafka_bootstrap, settings)
        try:
            proxy.start()
            producer = confluent_kafka.Producer({"bootstrap.servers": proxy.bootstrap, "linger.ms": 500})
            for value in VALUES:
                producer.produce(topic, in_avro(value), partition=0)
            producer.produce(topic, None, b"deleted", partition=0)
            producer.flush(30)
            events = proxy.wait_for_violations(topic, 1)
        finally:
            proxy.stop()
        found = audit(spark, kafka_bootstrap, topic, tmp_path / "out", tmp_path / "sluicegate.yaml")

    by_rule: Counter[str] = Counter()
    for event in events:
        by_rule.update({broken["rule"]: broken["bad_records"] for broken in event["rules"]})
    summary = found.summary["topics"][topic]
    assert {row["rule"]: row["bad_records"] for row in summary["findings"]} == by_rule
    assert by_rule == {"contract.schema": 2, "contract.known-currency": 3}
    assert "id.unique: an audit does not read the fields of avro records" in summary["contract"]["not_checked"]
