"""A contract's statements have the same result on the wire and at rest. Each check is written as a rule (`mustBe: 0`)
and as a check of all stored records. The rules of a proxy, the rules of an audit and the checks find the violations
that are listed here.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from pyspark.sql import SparkSession

from sluicegate.pipeline.api import audit
from tests.broker.proxy_process import ProxyProcess
from tests.config.contracts.written import contract_with_fields
from tests.integration.topics import UNVALIDATED, create_topic

pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
LOCAL, ZONED = "2026-11-30T09:05:00", "2026-11-30T09:05:00+01:00"
BOUNDS = {"minimum": 0, "exclusiveMinimum": True, "maximum": 100, "exclusiveMaximum": False}
CHECKS: dict[str, dict[str, Any]] = {
    "codes": {"metric": "invalidValues", "arguments": {"validValues": ["1", 2, 3]}},
    "flags": {"metric": "invalidValues", "arguments": {"validValues": ["true"]}},
    "texts": {"metric": "invalidValues", "arguments": {"validValues": [1, 2.5]}},
    "ratios": {"metric": "invalidValues", "arguments": {"validValues": ["2.5", 7]}},
    "minus": {"metric": "missingValues", "arguments": {"missingValues": ["-1", None]}},
    "nested": {"metric": "nullValues"},
}


def checked(name: str, kind: str, check: str) -> dict[str, Any]:
    """Return a property with a check as a rule and as a check of all records."""
    both = [{"id": check, "mustBe": 0}, {"id": f"{check}-stored", "mustBeLessThan": 1000}]
    return {"name": name, "logicalType": kind, "quality": [CHECKS[check] | each for each in both]}


def holder(name: str, inner: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "logicalType": "object", "properties": [inner]}


def of_time(name: str, kind: str, **options: Any) -> dict[str, Any]:
    return {"name": name, "logicalType": kind, "logicalTypeOptions": options}


IN_A_LIST = {"name": "lines", "logicalType": "array", "items": checked("line", "string", "nested")}
PROPERTIES = [
    {"name": "n", "logicalType": "integer", "logicalTypeOptions": BOUNDS},
    checked("code", "integer", "codes"),
    checked("flag", "boolean", "flags"),
    checked("text", "string", "texts"),
    checked("ratio", "number", "ratios"),
    checked("minus", "integer", "minus"),
    holder("a", holder("b", checked("c", "string", "nested"))),
    of_time("local", "timestamp", timezone=False),
    of_time("zone", "timestamp", defaultTimezone="Europe/Berlin"),
    of_time("part", "time", format="HH:mm[:ss[.SSS]]"),
    {"name": "time", "logicalType": "time"},
    IN_A_LIST,
]
GOOD = {"n": 1, "code": 1, "flag": True, "text": "1", "ratio": 7, "minus": 5, "a": {"b": {"c": "x"}}, "lines": [None]}
"""A record without violations. Fields may be absent from other records."""
CHANGES: list[tuple[dict[str, Any], str]] = [
    ({}, ""),
    ({"n": 0}, "schema"),
    ({"n": 100}, ""),
    ({"n": 101}, "schema"),
    ({"code": 2.0}, ""),
    ({"code": None}, ""),
    ({"code": 4}, "codes"),
    ({"flag": False}, "flags"),
    ({"text": "2.5"}, ""),
    ({"text": "2.50"}, "texts"),
    ({"text": "1.0"}, "texts"),
    ({"ratio": 2.5}, ""),
    ({"ratio": 7.0}, ""),
    ({"ratio": 8}, "ratios"),
    ({"minus": -1}, "minus"),
    ({"minus": None}, "minus"),
    ({"a": {"b": {"c": None}}}, "nested"),
    ({"a": {"b": {}}}, "nested"),
    ({"a": {"b": None}}, "nested"),
    ({"a": {}}, "nested"),
    ({"a": None}, "nested"),
    ({"local": f"{LOCAL}.5"}, ""),
    ({"local": ZONED}, "schema"),
    ({"zone": LOCAL}, ""),
    ({"zone": ZONED}, ""),
    ({"zone": "2026-11-30"}, "schema"),
    ({"part": "09:05"}, ""),
    ({"part": "09:05:07.250"}, ""),
    ({"part": "09:05:07.25"}, "schema"),
    ({"time": "09:05:00.123456"}, ""),
    ({"time": "09:05"}, "schema"),
]
"""Changes to the good record, and the name of the check that each change violates."""


def test_proxy_rules_audit_rules_and_contract_checks_have_equal_findings(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path
) -> None:
    topic = create_topic(kafka_bootstrap, UNVALIDATED)
    contract = (
        contract_with_fields(json.dumps(PROPERTIES))
        .replace("v3.1.0", "v3.0.2")
        .replace("name: t\n", f"name: {topic}\n")
    )
    (tmp_path / "c.odcs.yaml").write_text(contract)
    settings = {"contracts": [{"path": "c.odcs.yaml", "mode": "observe"}]}
    proxy = ProxyProcess(tmp_path, kafka_bootstrap, settings)
    violated = Counter(name for _, name in CHANGES if name)
    try:
        proxy.start()
        producer = confluent_kafka.Producer({"bootstrap.servers": proxy.bootstrap, "batch.num.messages": 1})
        for change, _ in CHANGES:
            producer.produce(topic, json.dumps(GOOD | change).encode(), b"key", 0)
        producer.produce(topic, json.dumps({k: v for k, v in GOOD.items() if k != "a"}).encode(), b"key", 0)
        violated["nested"] += 1
        assert producer.flush(120) == 0
        events = proxy.wait_for_violations(topic, violated.total())
    finally:
        proxy.stop()

    summary = audit(spark, kafka_bootstrap, [topic], tmp_path / "out", tmp_path / "sluicegate.yaml").summary

    in_events = Counter[str]()
    for event in events:
        in_events.update({each["rule"].removeprefix("contract."): each["bad_records"] for each in event["rules"]})
    found = summary["topics"][topic]
    assert in_events == violated
    assert {each["rule"].removeprefix("contract."): each["bad_records"] for each in found["findings"]} == violated
    checks = {each["check"].partition("-stored:")[0]: each["found"] for each in found["contract"]["checks"]}
    assert checks == {name: violated[name] for name in CHECKS}
    assert found["contract"]["not_checked"] == [
        f"{name}: quality of the items of a list or map is not read" for name in ("nested", "nested-stored")
    ]
