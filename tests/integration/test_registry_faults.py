"""After a bug in the registry client, or with an unreachable registry, `on_outage` determines a batch's outcome."""

import json
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sluicegate.protocol.messages.produce import PRODUCE_RESPONSE
from tests.broker.proxy_process import ProxyProcess
from tests.integration.topics import DEFAULTS, UNVALIDATED, create_topic
from tests.wire.batches import Rec, batch
from tests.wire.raw_client import PRODUCE, RawClient, produce_body, topic_data

OK, RETRIABLE, POLICY_VIOLATION = 0, 7, 44
CODES = {"retriable": RETRIABLE, "forward": OK, "reject": POLICY_VIOLATION}
WITH_A_BUG = """from sluicegate.proxy.registry import schema_registry
def fails(*_):
    raise KeyError("a key")
schema_registry.ConfluentApi.fetch_schema = fails
from sluicegate.proxy.cli.main import main
main()"""


@pytest.fixture(scope="module")
def unused_url() -> Iterator[str]:
    """Yield the URL of a port on which nothing listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


def proxy_with_registry(folder: Path, bootstrap: str, registry: str) -> ProxyProcess:
    rule = {"name": "body", "value": {"schema": {"registry": "main", "subject": "any"}}}
    topics: list[dict[str, Any]] = [{"match": f"{kind}-*", "rules": [rule | {"on_outage": kind}]} for kind in CODES]
    registries = {"main": {"url": registry, "username": "me", "password": "hunter2"}}
    return ProxyProcess(folder, bootstrap, {"defaults": DEFAULTS, "topics": topics, "registries": registries})


def code_and_message(client: RawClient, topic: str, schema_id: int) -> tuple[int, str]:
    """Send a record that names a schema; return code and message."""
    data = batch([Rec(time.time_ns() // 1_000_000, value=b"\0" + schema_id.to_bytes(4) + b"x")])
    asked = client.send(PRODUCE, 9, produce_body(9, [topic_data(topic, (0, data))]))
    response: Any = client.response_to(asked, PRODUCE, 9, PRODUCE_RESPONSE, 30)
    entry = response["responses"][0]["partition_responses"][0]
    return entry["error_code"], entry.get("error_message") or ""


@pytest.mark.internal_error
@pytest.mark.parametrize(
    ("has_bug", "words"), [(True, "internal error in sluicegate (KeyError at"), (False, "connection refused")]
)
def test_a_registry_fault_is_a_reported_outage_and_connections_stay_open(
    has_bug: bool, words: str, unused_url: str, kafka_bootstrap: str, tmp_path: Path
) -> None:
    topics = {kind: create_topic(kafka_bootstrap, UNVALIDATED, 1, prefix=kind) for kind in CODES}
    proxy = proxy_with_registry(tmp_path, kafka_bootstrap, unused_url)
    if has_bug:
        proxy.command = [sys.executable, "-c", WITH_A_BUG]
    try:
        proxy.start()
        with RawClient(f"127.0.0.1:{proxy.broker_port(1)}", timeout=30) as client:
            seen_alone, schema_id = "", 0
            end = time.monotonic() + 60
            while not seen_alone:
                assert time.monotonic() < end, "no log line about a registry backoff"
                for kind, topic in topics.items():
                    schema_id += 1
                    code, message = code_and_message(client, topic, schema_id)
                    assert code == CODES[kind], message
                    assert kind == "forward" or words in message.lower() or words in message
                seen_alone = "".join(line for line in proxy.log().splitlines() if "backoff started" in line)
        metrics = proxy.get("/metrics")[1]
    finally:
        proxy.stop()

    line = json.loads(seen_alone)
    assert (line["registry"], line["failures"]) == ("main", 3)
    assert "on_outage" in line["advice"], "the advice names the policy"
    assert 'sluicegate_registry_backoffs_total{registry="main"} 1.0' in metrics
    assert proxy.log().count("backoff started") == 1
    assert ('sluicegate_internal_errors_total{outcome="outage"} 0.0' in metrics) is not has_bug
    assert 'sluicegate_internal_errors_total{outcome="closed"} 0.0' in metrics
    assert ("schema registry request failed" in proxy.log()) is has_bug
    for where in (metrics, proxy.log(), str(proxy.violations())):
        assert "hunter2" not in where
