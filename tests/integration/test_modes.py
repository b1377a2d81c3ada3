"""Mode observe forwards and reports bad records, and rehearsed bounds report the batches that they would reject."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from sluicegate.protocol.messages.produce import PRODUCE_RESPONSE
from tests.broker.eventually import eventually
from tests.broker.proxy_process import ProxyProcess
from tests.integration.topics import DEFAULTS, UNVALIDATED, create_topic
from tests.wire.batches import CODECS, LZ4, Rec, batch
from tests.wire.raw_client import PRODUCE, RawClient, produce_body, topic_data

HOUR = 3_600_000
INVALID_TIMESTAMP = 32


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@pytest.fixture(scope="module")
def proxy(kafka_bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyProcess]:
    """Yield a proxy with observed topics and topics with rehearsed bounds; all other topics reject."""
    topics = [
        {"match": "observed-*", "mode": "observe"},
        {"match": "tried-*", "rehearse": {"message.timestamp.after.max.ms": ["1m", "30m"]}},
    ]
    process = ProxyProcess(tmp_path_factory.mktemp("proxy"), kafka_bootstrap, {"defaults": DEFAULTS, "topics": topics})
    try:
        yield process.start()
    finally:
        process.stop()


def produce_codes(address: str, batches: list[bytes], topic: str, version: int = 9) -> list[int]:
    """Send the batches one after the other and return their codes."""
    with RawClient(address) as client:
        return [error_code_in(client.produce(version, [topic_data(topic, (0, each))])) for each in batches]


def error_code_in(response: Any) -> int:
    assert isinstance(response, dict), response
    code: int = response["responses"][0]["partition_responses"][0]["error_code"]
    return code


def metric_value(proxy: ProxyProcess, name: str, **labels: str) -> float:
    """Return a metric with these labels."""
    shown = ",".join(f'{label}="{value}"' for label, value in sorted(labels.items()))
    lines = [line for line in proxy.get("/metrics")[1].splitlines() if line.startswith(f"{name}{{{shown}}} ")]
    return sum(float(line.rpartition(" ")[2]) for line in lines)


def make_topic_known(proxy: ProxyProcess, topic: str) -> None:
    """Make the proxy learn from the cluster that the topic exists, so that the topic gets its own label."""
    with RawClient(proxy.bootstrap) as client:
        client.metadata(topic)


def log_of(address: str, topic: str) -> bytes:
    with RawClient(address) as client:
        return client.log_of(topic, 0)


def test_an_observed_topic_stores_the_same_as_without_a_proxy_and_reports_violations(
    kafka_bootstrap: str, proxy: ProxyProcess
) -> None:
    """The same mixed stream; the broker itself rejects parts of it."""
    seen, direct = (create_topic(kafka_bootstrap, UNVALIDATED, prefix=prefix) for prefix in ("observed", "direct"))
    make_topic_known(proxy, seen)
    now = now_ms()
    good, ahead = [Rec(now)], [Rec(now), Rec(now * 1_000_000), Rec(now + 2 * HOUR)]
    stream = [batch(records, codec) for codec in CODECS.values() for records in (good, ahead, [Rec(0)])]
    stream += [batch(good, crc=7), batch(good, count=2, last_offset_delta=1), b""]

    through = produce_codes(f"127.0.0.1:{proxy.broker_port(1)}", stream, seen)
    without = produce_codes(kafka_bootstrap, stream, direct)

    assert through == without
    assert through.count(0) == 3 * len(CODECS)
    assert log_of(kafka_bootstrap, seen) == log_of(kafka_bootstrap, direct)
    events = proxy.wait_for_violations(seen, 2 * len(CODECS) + 3)
    assert {event["mode"] for event in events} == {"observe"}
    assert len(events) == 2 * len(CODECS) + 3
    assert (events[0]["error"], events[0]["bad_records"]) == ("INVALID_TIMESTAMP", 2)
    assert "looks like nanoseconds" in events[0]["samples"][0]["diagnosis"]
    proxy.wait_for_line("batch forwarded despite violations")
    assert metric_value(proxy, "sluicegate_observed_batches_total", error="INVALID_TIMESTAMP", topic=seen) == 2 * len(
        CODECS
    )


def test_a_batch_beside_an_observed_topic_is_still_rejected(kafka_bootstrap: str, proxy: ProxyProcess) -> None:
    seen = create_topic(kafka_bootstrap, UNVALIDATED, prefix="observed")
    validated = create_topic(kafka_bootstrap, UNVALIDATED, prefix="validated")
    bad = batch([Rec(now_ms() * 1_000_000)])

    with RawClient(f"127.0.0.1:{proxy.broker_port(1)}") as client:
        response = client.produce(9, [topic_data(seen, (0, bad)), topic_data(validated, (0, bad))])

    assert isinstance(response, dict)
    found = {topic["name"]: topic["partition_responses"][0]["error_code"] for topic in response["responses"]}
    assert found == {seen: 0, validated: 32}


def test_rehearsed_bounds_are_counted_by_topic_and_client(kafka_bootstrap: str, proxy: ProxyProcess) -> None:
    tried = create_topic(kafka_bootstrap, UNVALIDATED, prefix="tried")
    make_topic_known(proxy, tried)
    now = now_ms()
    batches = [
        batch([Rec(now), Rec(now - HOUR)], LZ4),
        batch([Rec(now + 2 * 60_000), Rec(now), Rec(now + 45 * 60_000)], LZ4),
        batch([Rec(now + 2 * 60_000)] * 5),
    ]

    found = produce_codes(f"127.0.0.1:{proxy.broker_port(1)}", [*batches, *batches], tried)

    assert found == [0] * 6
    events = proxy.wait_for_violations(tried, 4)
    minute, half = ({"key": "message.timestamp.after.max.ms", "max_ms": ms} for ms in (60_000, 1_800_000))
    assert [event["rehearsed"] for event in events] == 2 * [
        [minute | {"bad_records": 2}, half | {"bad_records": 1}],
        [minute | {"bad_records": 5}],
    ]
    assert {event["mode"] for event in events} == {"rehearse"}

    def rehearsed_records(ms: int) -> float:
        bound = f"message.timestamp.after.max.ms={ms}"
        return metric_value(proxy, "sluicegate_rehearsed_records_total", bound=bound, topic=tried)

    assert (rehearsed_records(60_000), rehearsed_records(1_800_000)) == (14, 2)
    assert proxy.metric("sluicegate_rehearsed_client_batches_total") == 6
    eventually(lambda: "rehearsed bound exceeded" in proxy.log())


@pytest.mark.long
def test_thousands_of_clients_leave_few_series_and_no_memory(kafka_bootstrap: str, proxy: ProxyProcess) -> None:
    tried = create_topic(kafka_bootstrap, UNVALIDATED, prefix="tried")
    before = proxy.metric("sluicegate_rehearsed_client_batches_total")
    body = produce_body(9, [topic_data(tried, (0, batch([Rec(now_ms() + 10 * 60_000)])))])

    def send_as_clients(numbers: range) -> None:
        with RawClient(f"127.0.0.1:{proxy.broker_port(1)}") as client:
            for some in range(numbers.start, numbers.stop, 50):
                for number in range(some, some + 50):
                    client.send(PRODUCE, 9, body, client_id=f"client-{number}")
                for _ in range(50):
                    assert isinstance(client.receive(), bytes)

    def series_with_client_id() -> list[str]:
        lines = proxy.get("/metrics")[1].splitlines()
        return [line for line in lines if line.startswith("sluicegate_") and "client_id=" in line]

    send_as_clients(range(1_000))
    early, held = len(series_with_client_id()), resident_mb(proxy)
    send_as_clients(range(1_000, 4_000))

    assert proxy.metric("sluicegate_rehearsed_client_batches_total") == before + 4_000
    assert len(series_with_client_id()) == early < 500
    assert resident_mb(proxy) < held + 3.75  # 1.25 KiB for each additional client


def resident_mb(proxy: ProxyProcess) -> float:
    """Return the resident memory of its process (MB)."""
    assert proxy.process is not None
    status = Path(f"/proc/{proxy.process.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def test_gradual_enforcement_observes_other_clients_and_a_reload_includes_them(
    kafka_bootstrap: str, tmp_path: Path
) -> None:
    """Of the client ids, checkout is among the first 2 %, and billing among the first 80 %."""
    topic = create_topic(kafka_bootstrap, UNVALIDATED, prefix="gradual")
    entry: dict[str, Any] = {"match": "gradual-*", "enforce": {"percent": 10}}
    proxy = ProxyProcess(tmp_path, kafka_bootstrap, {"defaults": DEFAULTS, "topics": [entry]})
    try:
        proxy.start()
        make_topic_known(proxy, topic)

        def send_as_client(client_id: str, ahead_ms: int) -> int:
            body = produce_body(9, [topic_data(topic, (0, batch([Rec(now_ms() + ahead_ms)], LZ4)))])
            with RawClient(f"127.0.0.1:{proxy.broker_port(1)}") as client:
                asked = client.send(PRODUCE, 9, body, client_id)
                return error_code_in(client.response_to(asked, PRODUCE, 9, PRODUCE_RESPONSE))

        assert [send_as_client(client_id, 0) for client_id in ("checkout", "billing")] == [0, 0]
        assert [send_as_client(client_id, 2 * HOUR) for client_id in ("checkout", "billing")] == [INVALID_TIMESTAMP, 0]
        eventually(lambda: len(proxy.violations_of(topic)) == 2, what="both events")
        events = {event["client_id"]: (event["mode"], event["enforced"]) for event in proxy.violations_of(topic)}
        assert events == {"checkout": ("reject", True), "billing": ("observe", False)}
        for metric in ("rejected", "observed"):
            found = metric_value(proxy, f"sluicegate_{metric}_batches_total", error="INVALID_TIMESTAMP", topic=topic)
            assert found == 1, metric
        policy = json.loads(proxy.get(f"/api/policy?topic={topic}")[1])
        values = {value["key"]: value["value"] for value in policy["effective"]}
        assert (values["mode"], values["enforce"]) == ("reject", "10 % of clients")

        entry["enforce"] = {"percent": 100}
        (tmp_path / "sluicegate.yaml").write_text(yaml.safe_dump(proxy.config))
        eventually(lambda: send_as_client("billing", 2 * HOUR) == INVALID_TIMESTAMP, what="enforcement for all clients")
        assert [send_as_client(client_id, 0) for client_id in ("checkout", "billing")] == [0, 0]
    finally:
        proxy.stop()
