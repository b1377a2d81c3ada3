"""The proxy shows no record contents. If a topic has samples, only events contain the beginnings of keys and values."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sluicegate.protocol.messages.produce import PRODUCE_RESPONSE
from tests.broker.eventually import eventually
from tests.broker.proxy_process import ProxyProcess
from tests.integration.topics import DEFAULTS, UNVALIDATED, create_topic
from tests.wire.batches import CODECS, NONE, Rec, batch
from tests.wire.raw_client import PRODUCE, RawClient, produce_body, topic_data

SECRET = b"Geheimnis"
HEADER = (b"X-" + SECRET, SECRET)
SCHEMA = {
    "type": "object",
    "properties": {"amount": {"type": "integer", "minimum": 1}},
    "additionalProperties": False,
}
RULES: list[dict[str, Any]] = [
    {"name": "sizes", "key": {"min_size": 500}, "value": {"max_size": 1}, "mode": "observe"},
    {"name": "text", "key": {"utf8": True}, "value": {"utf8": True}},
    {"name": "json", "value": {"json": {"duplicate_keys": "reject"}}},
    {"name": "schema", "value": {"schema": {"file": "amount.json", "format": "json"}}},
    {"name": "positive", "cel": "value.amount > 0 && key == 'k' && headers.tenant == 'acme'"},
    {"name": "tenant", "headers": {"required": ["tenant"], "patterns": {"x-*": "a*", "tenant": "a*"}, "max_count": 1}},
]


def defective_records(now: int) -> list[Rec]:
    """Return records with different defects."""
    return [
        Rec(now * 1000, SECRET, SECRET, (HEADER,)),
        Rec(now, SECRET + b"\xff", SECRET + b"\xff", (HEADER, HEADER, (b"tenant", SECRET))),
        Rec(now, SECRET, b'{"' + SECRET + b'": ', (HEADER,)),
        Rec(now, SECRET, b'{"%s": 1, "%s": 2, "amount": "%s"}' % (SECRET, SECRET, SECRET), (HEADER,)),
        Rec(now, SECRET, b'{"amount": "\x1b[31m%s"}' % SECRET, ((b"tenant", SECRET),)),
    ]


def bad_batches(now: int) -> Iterator[bytes]:
    made = defective_records(now)
    for codec in CODECS.values():
        yield batch(made[:1], codec)
        yield batch(made[1:], codec)
    whole = batch(made, NONE)
    yield batch(made, crc=1)
    yield batch(made, count=9, last_offset_delta=8)
    yield batch(made, tail=SECRET)
    yield whole[:20] + SECRET + whole[29:]


@pytest.fixture(scope="module")
def proxy(kafka_bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyProcess]:
    folder = tmp_path_factory.mktemp("proxy")
    schema = folder / "amount.json"
    schema.write_text(json.dumps(SCHEMA))
    rules = [*RULES]
    rules[3] = {"name": "schema", "value": {"schema": {"file": str(schema), "format": "json"}}}
    topics: list[dict[str, Any]] = [
        {"match": "shown-ruled-*", "rules": rules, "samples": True},
        {"match": "shown-*", "samples": True},
        {"match": "*observed-*", "mode": "observe", "rules": rules},
        {"match": "*ruled-*", "rules": rules},
        {"match": "*fixed-*", "fix": {"timestamp": "now"}, "rehearse": {"message.timestamp.after.max.ms": ["1m"]}},
    ]
    settings = {"defaults": DEFAULTS, "topics": topics, "log": {"level": "debug"}}
    process = ProxyProcess(folder, kafka_bootstrap, settings)
    try:
        yield process.start()
    finally:
        process.stop()


def send_bad_batches(proxy: ProxyProcess, topic: str) -> str:
    """Send bad batches to a topic and return all responses as text."""
    shown = []
    for data in bad_batches(time.time_ns() // 1_000_000):
        with RawClient(f"127.0.0.1:{proxy.broker_port(1)}") as client:
            asked = client.send(PRODUCE, 9, produce_body(9, [topic_data(topic, (0, data))]), "app")
            shown.append(repr(client.response_to(asked, PRODUCE, 9, PRODUCE_RESPONSE)))
    return "".join(shown)


@pytest.mark.parametrize("prefix", ["plain", "ruled", "observed", "fixed"])
def test_record_contents_are_never_shown_by_default(prefix: str, kafka_bootstrap: str, proxy: ProxyProcess) -> None:
    topic = create_topic(kafka_bootstrap, UNVALIDATED, prefix=prefix)

    responses = send_bad_batches(proxy, topic)

    events = proxy.wait_for_violations(topic, 2 * len(CODECS) if prefix in ("ruled", "observed") else len(CODECS))
    assert "'error_code': 87" in responses or prefix == "observed"
    assert all("key" not in sample and "value" not in sample for event in events for sample in event["samples"])
    for where in (responses, json.dumps(events), proxy.log(), proxy.get("/metrics")[1]):
        assert SECRET.decode() not in where
    assert SECRET.hex() not in proxy.log()


@pytest.mark.parametrize("prefix", ["shown", "shown-ruled"])
def test_with_samples_only_events_show_the_beginning_of_a_record(
    prefix: str, kafka_bootstrap: str, proxy: ProxyProcess
) -> None:
    topic = create_topic(kafka_bootstrap, UNVALIDATED, prefix=prefix)

    responses = send_bad_batches(proxy, topic)

    events = proxy.wait_for_violations(topic, len(CODECS))
    shown = [sample for event in events for sample in event["samples"]]
    assert {sample["key"]["text"] for sample in shown} >= {SECRET.decode()}
    if prefix == "shown-ruled":
        assert {"size": 9 + 1, "text": SECRET.decode() + "\\xff"} in [sample["value"] for sample in shown]
        assert '{"amount": "\\x1b[31mGeheimnis"}' in [sample["value"]["text"] for sample in shown]
    assert HEADER[0].decode() not in json.dumps(events)
    for where in (responses, proxy.log(), proxy.get("/metrics")[1]):
        assert SECRET.decode() not in where


@pytest.mark.long
def test_a_reload_can_switch_samples_on_and_off(kafka_bootstrap: str, tmp_path: Path) -> None:
    topic = create_topic(kafka_bootstrap, UNVALIDATED)
    process = ProxyProcess(tmp_path, kafka_bootstrap, {"defaults": DEFAULTS})
    shown = []
    try:
        process.start()
        for number, samples in enumerate((True, False, True), 1):
            new = tmp_path / "new.yaml"
            new.write_text(json.dumps(process.config | {"defaults": DEFAULTS | {"samples": samples}}))
            new.replace(tmp_path / "sluicegate.yaml")
            eventually(lambda n=number: process.metric("sluicegate_config_reloads_total") == n)
            with RawClient(f"127.0.0.1:{process.broker_port(1)}") as client:
                client.produce(9, [topic_data(topic, (0, batch([Rec(1, SECRET)])))])
            shown.append(process.wait_for_violations(topic, number)[-1]["samples"][0].get("key"))
    finally:
        process.stop()

    sample = {"size": len(SECRET), "text": SECRET.decode()}
    assert shown == [sample, None, sample]
