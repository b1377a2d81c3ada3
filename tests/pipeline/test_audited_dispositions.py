"""An audit of topics that are marked, copied and masked reports the same figures as the proxy, rule by rule."""

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.broker.eventually import eventually
from tests.broker.proxy_process import ProxyProcess
from tests.integration.topics import create_topic
from tests.pipeline.polluted import HOUR, UNLIMITED
from tests.pipeline.test_audit import audit_topic, violations_by
from tests.wire.batches import LZ4, NONE, ZSTD, Rec, batch
from tests.wire.raw_client import RawClient, topic_data

pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
BOUNDS = {"message.timestamp.before.max.ms": HOUR, "message.timestamp.after.max.ms": HOUR}
RULES: list[dict[str, Any]] = [
    {"name": "brief", "value": {"max_size": 120}},
    {"name": "few headers", "headers": {"max_count": 1}},
    {"name": "keyed", "key": {"required": True}, "mode": "observe"},
    {"name": "positive", "cel": "value.n > 0"},
]
MAIL = b'{"n": 1, "mail": "me@example.com"}'
LAST = 9
"""The number of records in the last batch; no other batch has this number."""
HEADER = [(b"sluicegate.rule", b"forged")]


def batches_of_all_kinds(now: int) -> list[bytes]:
    """Return batches that violate bounds, rules, both or nothing; some have sensitive fields."""

    def record_with(value: bytes = b'{"n": 1}', time_ms: int = now, key: bytes | None = b"k", headers: Any = ()) -> Rec:
        return Rec(time_ms, key, value, list(headers))

    return [
        batch([record_with(), record_with(headers=HEADER)], LZ4),
        batch(
            [
                record_with(b'{"n": -1}'),
                record_with(b'{"n": 1, "x": "' + b"x" * 120 + b'"}', key=None),
                record_with(MAIL),
            ],
            NONE,
        ),
        batch(
            [record_with(time_ms=5), record_with(MAIL, time_ms=7), record_with(b'{"n": 0}', headers=HEADER * 2)], ZSTD
        ),
        batch(
            [record_with(MAIL), record_with(MAIL), record_with(b'{"n": 1, "mail": null, "card": "4111"}', key=None)],
            LZ4,
        ),
        batch([record_with(b'{"n": 1, "mail": "***"}'), record_with(b'{"n": 2, "mail": "***"}')], NONE),
        batch([record_with(b'{"n": 1, "password": "x"}'), record_with(MAIL)], NONE),
        batch([record_with(b'{"n": 1, "mail": 7}'), record_with(b"no json")], LZ4),
        batch([record_with(headers=HEADER * 2), record_with()], ZSTD),
        batch([record_with(b'{"n": -1}')] * LAST, NONE),
    ]


def produce_codes(client: RawClient, topic: str, batches: list[bytes]) -> list[int]:
    return [
        client.produce(9, [topic_data(topic, (0, each))])["responses"][0]["partition_responses"][0]["error_code"]
        for each in batches
    ]


def masked_records_by_rule(proxy: ProxyProcess) -> dict[str, int]:
    """Return the number of masked records by rule from the proxy's metrics."""
    lines = [
        line for line in proxy.get("/metrics")[1].splitlines() if line.startswith("sluicegate_rule_records_total{")
    ]
    masks = [line for line in lines if any(f'outcome="accepted",rule="{name}"' in line for name in ("mail", "card"))]
    return {line.partition('rule="')[2].partition('"')[0]: int(float(line.rpartition(" ")[2])) for line in masks}


KINDS: dict[str, dict[str, Any]] = {
    "marked": {"mode": "mark"},
    "copied": {"mode": "observe", "quarantine": "copies"},
    "masked": {
        "mode": "observe",
        "sensitive": [
            {"name": "mail", "action": "mask", "fields": ["mail"]},
            {"name": "card", "action": "hash", "fields": ["card"], "key_file": "key"},
            {"name": "secret", "action": "reject", "fields": ["password"]},
        ],
    },
}


UNSTORED = Counter({("observe", "rule_violated", "positive", unit): 1 for unit in ("batches", "bad records")})
"""The violation of an observed rule in the batch that is rejected because its JSON cannot be masked."""


MODES: dict[str, dict[str, Any]] = {
    "observed": {"mode": "observe"},
    "enforced": {"mode": "reject"},
    "unenforced": {"mode": "reject", "enforce": {"percent": 0}},
}
"""The modes of topics in which a batch violates rejecting and observing rules."""


@pytest.fixture(scope="module")
def proxy(kafka_bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyProcess]:
    folder = tmp_path_factory.mktemp("dispositions")
    (folder / "key").write_text("0123456789abcdef")
    KINDS["masked"]["sensitive"][1]["key_file"] = str(folder / "key")
    copies = create_topic(kafka_bootstrap, UNLIMITED, 1)
    KINDS["copied"]["quarantine"] = copies
    topics = [{"match": f"{kind}-*", "rules": RULES, **BOUNDS, **keys} for kind, keys in (KINDS | MODES).items()]
    process = ProxyProcess(folder, kafka_bootstrap, {"topics": topics})
    try:
        yield process.start()
    finally:
        process.stop()


def findings_of_stored(summary: dict[str, Any], topic: str) -> Counter[Any]:
    found: Counter[Any] = Counter()
    for row in summary["topics"][topic]["findings"]:
        found[row["verdict"], row["reason"], row["rule"], "batches"] = row["batches"]
        found[row["verdict"], row["reason"], row["rule"], "bad records"] = row["bad_records"]
    return found


@pytest.mark.parametrize("kind", list(KINDS))
def test_audit_of_source_and_forwarded_topics_equals_proxy_counts(
    kind: str, spark: SparkSession, kafka_bootstrap: str, proxy: ProxyProcess, tmp_path: Path
) -> None:
    behind = create_topic(kafka_bootstrap, UNLIMITED, 1, prefix=kind)
    direct = create_topic(kafka_bootstrap, UNLIMITED, 1, prefix=kind)
    batches = batches_of_all_kinds(time.time_ns() // 1_000_000)
    broker = kafka_bootstrap.split(",", maxsplit=1)[0]

    with RawClient(broker) as client:
        assert produce_codes(client, direct, batches) == [0] * len(batches)
    with RawClient(f"127.0.0.1:{proxy.broker_port(1)}") as client:
        codes = produce_codes(client, behind, batches)
    eventually(lambda: any(event["records"] == LAST for event in proxy.violations_of(behind)), what="the last event")
    events, _ = violations_by(proxy.violations_of(behind))

    file = proxy.folder / "sluicegate.yaml"
    of_clear = findings_of_stored(audit_topic(spark, kafka_bootstrap, direct, file, tmp_path / "direct"), direct)
    of_stored = findings_of_stored(audit_topic(spark, kafka_bootstrap, behind, file, tmp_path / "behind"), behind)
    masks = Counter({key: count for key, count in of_clear.items() if key[0] == "mask"})
    assert of_clear - masks == events
    assert {key[2] for key in events} >= {rule["name"] for rule in RULES}
    assert (codes == [0] * len(batches)) == (kind != "masked")
    rejections = Counter({key: count for key, count in events.items() if key[0] == "reject"})
    hashes = Counter({key: count for key, count in masks.items() if key[2] == "card"})
    observed_of_rejected = UNSTORED if kind == "masked" else Counter()
    assert of_stored == events - rejections - observed_of_rejected + hashes
    if kind == "masked":
        assert {key[2]: count for key, count in masks.items() if key[3] == "bad records"} == masked_records_by_rule(
            proxy
        )


def test_each_rule_has_equal_counts_when_observed_enforced_and_audited(
    spark: SparkSession, kafka_bootstrap: str, proxy: ProxyProcess, tmp_path: Path
) -> None:
    topics = {kind: create_topic(kafka_bootstrap, UNLIMITED, 1, prefix=kind) for kind in MODES}
    batches = batches_of_all_kinds(time.time_ns() // 1_000_000)
    with RawClient(f"127.0.0.1:{proxy.broker_port(1)}") as client:
        codes = {kind: produce_codes(client, topic, batches) for kind, topic in topics.items()}

    counts = {}
    for kind, topic in topics.items():
        eventually(
            lambda of=topic: any(event["records"] == LAST for event in proxy.violations_of(of)), what="the last event"
        )
        counts[kind] = bad_records_by_rule(violations_by(proxy.violations_of(topic))[0])

    assert any(codes["enforced"]) and not any(codes["observed"] + codes["unenforced"])
    assert set(counts["enforced"]) == {None, *(rule["name"] for rule in RULES)}
    assert counts["observed"] == counts["unenforced"] == counts["enforced"]
    summary = audit_topic(spark, kafka_bootstrap, topics["observed"], proxy.folder / "sluicegate.yaml", tmp_path)
    assert bad_records_by_rule(findings_of_stored(summary, topics["observed"])) == counts["enforced"]


def bad_records_by_rule(figures: Counter[Any]) -> Counter[str | None]:
    """Return the number of bad records by rule, in rejected and in forwarded batches."""
    found: Counter[str | None] = Counter()
    for (_, _, rule, unit), count in figures.items():
        if unit == "bad records":
            found[rule] += count
    return found
