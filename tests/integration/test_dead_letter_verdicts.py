"""`LetterValidator` has the same verdict on each letter as a running proxy, the oracle, has on its record."""

import os
import random
import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from sluicegate.dead_letters import Cluster, LetterVerdict, letters_of
from sluicegate.proxy.reload.letter_policies import read_policies
from sluicegate.validation.verdict import TIMED
from tests.broker.proxy_process import ProxyProcess
from tests.dead_letters.desk import SECONDS, configuration, from_topic, new_topic, write
from tests.dead_letters.letters import SLUICEGATE

COUNT = 10_000 if os.environ.get("SLUICEGATE_THOROUGH") else 200
HOUR_MS = 3_600_000
BOUND = {"message.timestamp.before.max.ms": "1h", "message.timestamp.after.max.ms": "1h"}
INVALID_TIMESTAMP, INVALID_RECORD = 32, 87


@pytest.mark.timeout(3600)
def test_each_letter_gets_the_verdict_of_a_proxy(kafka_bootstrap: str, tmp_path: Path) -> None:
    original, dead = new_topic(kafka_bootstrap, "orders"), new_topic(kafka_bootstrap, "dead")
    records = some_records(time.time_ns() // 1_000_000)
    own = from_topic(SLUICEGATE, original)
    rows = [
        (key, value, tuple((name, f"{at}".encode() if name.endswith(b".timestamp") else text) for name, text in own))
        for at, key, value in records
    ]
    write(kafka_bootstrap, dead, rows)
    rules = [{"name": "order", "value": {"schema": {"format": "json", "text": '{"required": ["n"]}'}}}]
    topics = [{"match": original, "cleanup.policy": "compact", **BOUND, "rules": rules}]
    folder = tmp_path / "proxy"
    folder.mkdir()
    proxy = ProxyProcess(folder, kafka_bootstrap, {"topics": topics})
    try:
        proxy.start()
        responses = responses_to(proxy.bootstrap, original, records)
    finally:
        proxy.stop()

    letters = list(letters_of(Cluster({"bootstrap.servers": kafka_bootstrap}), dead))
    validator = read_policies(Path(configuration(tmp_path, kafka_bootstrap, topics=topics)), (original,)).validator()

    assert [error_of(validator.verdict(letter)) for letter in letters] == responses
    assert [error_of(verdict) for verdict in validator.verdicts(letters)] == responses
    assert set(responses) == {0, INVALID_TIMESTAMP, INVALID_RECORD}


def some_records(now_ms: int) -> list[tuple[int, bytes | None, bytes | None]]:
    """Return timestamps, keys and values, of which three in four have no fault."""
    chance = random.Random(67)
    times = [now_ms - HOUR_MS // 2] * 12 + [now_ms * 1_000_000, now_ms // 1000, now_ms - 9 * HOUR_MS, 2 * now_ms]
    keys = [b"k"] * 15 + [None]
    values = [b'{"n": 1}', None] * 6 + [b"no JSON", b"{}", b"", b'{"n": 1']
    return [(chance.choice(times), chance.choice(keys), chance.choice(values)) for _ in range(COUNT)]


def responses_to(bootstrap: str, topic: str, records: list[tuple[int, bytes | None, bytes | None]]) -> list[int]:
    """Return the error code of each record, or 0. Each record is in a request of its own."""
    codes: list[int] = []
    producer = Producer({"bootstrap.servers": bootstrap, "message.timeout.ms": 60_000, "linger.ms": 0})

    def delivered(error: Any, _message: object) -> None:
        codes.append(0 if error is None else error.code())

    for at, key, value in records:
        producer.produce(topic, value, key, 0, delivered, timestamp=at)
        assert producer.flush(SECONDS) == 0
    return codes


def error_of(verdict: LetterVerdict) -> int:
    """Return the error code that a proxy responds with."""
    if verdict.is_accepted:
        return 0
    return INVALID_TIMESTAMP if verdict.code in TIMED else INVALID_RECORD
