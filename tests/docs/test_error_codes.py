"""docs/checks.md lists all error codes that a verdict can have, with Kafka's names."""

import re

from sluicegate.protocol.errors import ErrorCode
from sluicegate.proxy.reporting.events.reasons_reference import ENTRIES
from tests.oracle.java_program import java_command, run_java
from tests.oracle.kafka_java import KAFKA_NEW, ROOT, kafka_folder

_ROW = re.compile(r"^\| (-?\d+) \| ([A-Z_]+) \| .+ \| (yes|no) \|$", re.MULTILINE)
_IN_CODE = re.compile(r"ErrorCode\.([A-Z_]+)")
_BROKERS_OWN = {
    *("NONE", "DUPLICATE_SEQUENCE_NUMBER", "UNKNOWN_TOPIC_OR_PARTITION"),
    *("UNSUPPORTED_VERSION", "INVALID_CONFIG", "INVALID_REQUEST", "CLUSTER_AUTHORIZATION_FAILED"),
    "NOT_CONTROLLER",
}
"""Codes that are no verdicts about a batch, but about the broker or the proxy itself."""

ROWS = {int(code): (name, again) for code, name, again in _ROW.findall((ROOT / "docs/checks.md").read_text())}


def test_error_names_and_retriability_are_those_of_kafka() -> None:
    lines = run_java(java_command(kafka_folder(KAFKA_NEW), str(ROOT / "tests/oracle/ErrorCodes.java"))).splitlines()
    kafkas = {int(code): (name, again) for code, name, again in (line.split() for line in lines)}

    assert len(ROWS) > 5
    assert {code: kafkas[code] for code in ROWS} == ROWS
    assert {code: ErrorCode(code).name for code in ROWS} == {code: name for code, (name, _) in ROWS.items()}


def test_the_page_lists_every_error_code_that_validation_returns() -> None:
    validating = [ROOT / "validation", ROOT / "proxy" / "session"]
    used = {name for room in validating for file in room.rglob("*.py") for name in _IN_CODE.findall(file.read_text())}
    assert {name for name in used if ErrorCode[name].value not in ROWS} <= _BROKERS_OWN


def test_the_page_lists_every_error_code_of_a_reason() -> None:
    codes = {int(code) for entry in ENTRIES.values() for code in entry.errors}
    assert codes <= ROWS.keys()
    assert len(codes) > 5
