"""With costly schemas in a running proxy's registry, batches get the expected codes, and only some clients wait."""

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sluicegate.protocol.messages.produce import PRODUCE_RESPONSE
from tests.bounds.costly_schemas import all_of_chain_schema, json_schema_with_patterns
from tests.bounds.stage import Stage
from tests.broker.eventually import eventually
from tests.proxy.rules_process.processes import children_of, is_alive
from tests.registry.schemas_by_id import registry_of
from tests.wire.batches import NONE, Rec, batch
from tests.wire.raw_client import PRODUCE, RawClient, produce_body, topic_data

OK, RETRIABLE, INVALID_RECORD = 0, 7, 87
SHAPE, CHAIN, NO_SCHEMA, FIRST_SLOW, FIRST_HONEST = 1, 2, 3, 100, 1000
CONSTRAINED, NO_CONSTRAINTS = 5, 6
BODY = {"value": {"schema": {"registry": "main", "subject": "any"}}}
CONSTRAINTS = {"value": {"schema": BODY["value"]["schema"] | {"format": "protobuf", "protovalidate": True}}}


def schema_text(schema_id: int) -> tuple[str, str] | None:
    if schema_id == SHAPE or schema_id >= FIRST_HONEST:
        return "JSON", json.dumps({"type": "object", "required": ["id"], "title": f"T{schema_id}"})
    if schema_id == CHAIN:
        return "JSON", all_of_chain_schema(34)
    if schema_id == NO_SCHEMA:
        return "AVRO", '"strang"'
    if schema_id in (CONSTRAINED, NO_CONSTRAINTS):
        loops = f"{[*range(10)]}.all(x, {[*range(10)]}.all(y, x + y < this.size() * 10))"  # tens of microseconds
        expression = f"this.size() > 2 && {loops}" if schema_id == CONSTRAINED else "this >"
        rule = f'(buf.validate.field).cel = {{id: "id" message: "is too short" expression: "{expression}"}}'
        fields = f"string id = 1 [{rule}]; repeated Order inner = 2;"
        return "PROTOBUF", f'syntax = "proto3"; import "buf/validate/validate.proto"; message Order {{ {fields} }}'
    return ("JSON", json_schema_with_patterns(1_500, schema_id)) if schema_id >= FIRST_SLOW else None


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    on_error = [{"match": f"{kind}", "rules": [{"name": "body", "on_schema_error": kind, **BODY}]} for kind in CODES]
    with registry_of(schema_text) as registry:
        made = Stage(
            tmp_path_factory.mktemp("rules"),
            config={
                "topics": [
                    {"match": "body", "rules": [{"name": "body", **BODY}]},
                    {"match": "constrained", "rules": [{"name": "constraints", **CONSTRAINTS}]},
                    *on_error,
                ],
                "registries": {"main": {"url": registry.url}},
                "limits": {"rule_cpu_seconds": 1},
            },
        )
        try:
            yield made.start(honest=False)
        finally:
            made.stop()


CODES = {"reject": INVALID_RECORD, "retriable": RETRIABLE, "forward": OK}


def code_and_message(stage: Stage, topic: str, *values: tuple[int, bytes]) -> tuple[int, str]:
    """Send records that name schemas; return code and message."""
    records = [
        Rec(time.time_ns() // 1_000_000, b"key", b"\0" + schema_id.to_bytes(4, "big") + value)
        for schema_id, value in values
    ]
    with RawClient(f"127.0.0.1:{stage.port(1)}", timeout=60) as client:
        asked = client.send(PRODUCE, 9, produce_body(9, [topic_data(topic, (0, batch(records, NONE)))]))
        response: Any = client.response_to(asked, PRODUCE, 9, PRODUCE_RESPONSE, 60)
    entry = response["responses"][0]["partition_responses"][0]
    return entry["error_code"], entry.get("error_message") or ""


def rules_process_of(stage: Stage) -> int:
    found = [child for child in children_of(stage.pid) if children_of(child)]
    assert len(found) == 1
    return found[0]


def test_a_registered_schema_is_applied(stage: Stage) -> None:
    assert code_and_message(stage, "body", (SHAPE, b'{"id": 1}')) == (OK, "")
    code, message = code_and_message(stage, "body", (SHAPE, b"{}"))
    assert code == INVALID_RECORD
    assert (
        'does not match its JSON Schema: the root: required (the property "id" is missing) (schema 1 of registry main)'
        in message
    )


def test_a_value_that_is_too_costly_is_rejected_permanently_and_the_next_is_validated(stage: Stage) -> None:
    code, message = code_and_message(stage, "body", (CHAIN, b"1"))
    assert (code, "limits.rule_cpu_seconds (1 s of CPU time" in message) == (INVALID_RECORD, True), message
    assert code_and_message(stage, "body", (SHAPE, b'{"id": 1}')) == (OK, "")
    assert stage.proxy.metric('sluicegate_rule_evaluations_total{outcome="limits.rule_cpu_seconds"}') >= 1
    assert stage.proxy.metric('sluicegate_limits_reached_total{limit="limits.rule_cpu_seconds"}') >= 1
    assert stage.proxy.metric("sluicegate_rules_process_restarts_total") == 0
    eventually(lambda: any("limits.rule_cpu_seconds" in json.dumps(event) for event in stage.proxy.violations()), 30)
    assert "rules process limit exceeded" in stage.proxy.log()


def test_constraints_reject_only_records_that_violate_them_or_take_too_long(stage: Stage) -> None:
    good, bad = (CONSTRAINED, b"\0\n\3abc"), (CONSTRAINED, b"\0\n\2ab")
    assert code_and_message(stage, "constrained", good, good) == (OK, "")
    code, message = code_and_message(stage, "constrained", good, bad)
    assert code == INVALID_RECORD
    assert "the value does not meet the constraints of Order: id is too short (id)" in message

    code, message = code_and_message(stage, "constrained", (NO_CONSTRAINTS, good[1]))
    assert code == INVALID_RECORD
    assert "schema 6 of registry main cannot be used: the constraints of Order cannot be compiled" in message
    code, message = code_and_message(stage, "constrained", (CONSTRAINED, good[1] + b"\x12\5\n\3abc" * 120_000))
    assert (code, "too costly to validate" in message) == (INVALID_RECORD, True), message

    assert code_and_message(stage, "constrained", good) == (OK, "")
    assert stage.proxy.metric("sluicegate_rules_process_restarts_total") == 0


@pytest.mark.parametrize("kind", CODES)
def test_a_schema_that_cannot_be_compiled_is_not_an_outage(stage: Stage, kind: str) -> None:
    code, message = code_and_message(stage, kind, (NO_SCHEMA, b"x"))
    assert code == CODES[kind], message
    if kind != "forward":
        assert "schema 3 of registry main cannot be used: the schema does not define the type strang" in message
    assert code_and_message(stage, kind, (4, b"x"))[0] == INVALID_RECORD, "an unknown schema id is the record's fault"


def test_schemas_that_are_slow_to_compile_block_no_other_schema(stage: Stage) -> None:
    """One connection names a new slow schema with each request; other new schemas are validated at the same time."""
    ends = threading.Event()

    def name_slow_ones() -> None:
        schema_id = FIRST_SLOW
        while not ends.is_set():
            code, message = code_and_message(stage, "body", (schema_id, b"{}"))
            assert code in (OK, INVALID_RECORD), message
            schema_id += 1

    naming = threading.Thread(target=name_slow_ones)
    naming.start()
    try:
        found = [code_and_message(stage, "body", (FIRST_HONEST + i, b'{"id": 1}')) for i in range(10)]
    finally:
        ends.set()
        naming.join()
    assert found == [(OK, "")] * 10
    assert stage.proxy.metric('sluicegate_registry_failures_total{registry="main"}') == 0


def test_an_idle_rules_process_that_is_killed_is_logged_counted_and_replaced(stage: Stage) -> None:
    assert code_and_message(stage, "body", (SHAPE, b'{"id": 1}')) == (OK, "")
    before = stage.proxy.metric("sluicegate_rules_process_restarts_total")
    host = next(child for child in children_of(stage.pid) if children_of(child))

    os.kill(host, signal.SIGKILL)

    line = stage.proxy.wait_for_line("rules process ended")
    assert "it was ended by SIGKILL" in line
    eventually(lambda: stage.proxy.metric("sluicegate_rules_process_restarts_total") == before + 1, 30, "a count")
    code, message = code_and_message(stage, "body", (FIRST_HONEST + 500, b'{"id": 1}'))
    assert (code, message) == (OK, ""), "no batch meets the outage"


@pytest.mark.parametrize("is_killed", [False, True], ids=["stopped", "killed"])
def test_the_rules_process_ends_with_the_proxy(is_killed: bool, tmp_path: Path) -> None:
    with registry_of(schema_text) as registry:
        config = {
            "topics": [{"match": "body", "rules": [{"name": "body", **BODY}]}],
            "registries": {"main": {"url": registry.url}},
        }
        stage = Stage(tmp_path, config=config).start(honest=False)
        try:
            assert code_and_message(stage, "body", (SHAPE, b'{"id": 1}')) == (OK, "")
            host = rules_process_of(stage)
            processes = [host, *children_of(host)]
            assert stage.proxy.process is not None
            if is_killed:
                stage.proxy.process.kill()
                eventually(lambda: not any(map(is_alive, processes)), 30, "no process is left")
        finally:
            stage.stop()
    eventually(lambda: not any(map(is_alive, processes)), 30, "no process is left")
