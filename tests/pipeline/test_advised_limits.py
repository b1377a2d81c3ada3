"""Advice taken: a proxy with the limits advised refuses what is damaged, and nothing else."""

import subprocess
import time
from pathlib import Path

import pytest
import yaml

from tests.broker.proxy_process import COMMAND as SLUICEGATE
from tests.broker.proxy_process import ProxyProcess
from tests.pipeline.commands import run, summary
from tests.pipeline.polluted import DAMAGES, HOUR, Polluter, spoilt
from tests.wire.batches import Rec, batch
from tests.wire.raw_client import RawClient, topic_data

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
INVALID_TIMESTAMP = 32


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def test_the_limits_advised_refuse_exactly_what_is_damaged(kafka_bootstrap: str, tmp_path: Path) -> None:

    polluted = Polluter(kafka_bootstrap, now_ms(), partitions=1).write(batches=200, span_ms=HOUR)

    said = run("advise", "--bootstrap", kafka_bootstrap, "--topic", polluted.topic, "--out", str(tmp_path / "advice"))

    found = summary(tmp_path / "advice")["topics"][polluted.topic]
    assert found["refused_behind"] + found["refused_ahead"] == sum(polluted.counts.values())
    assert found["sound_refused"] == 0
    assert found["kafka_4_refused"] == sum(polluted.counts[d] for d in ("microseconds", "nanoseconds", "future"))
    file = tmp_path / "advice" / "sluicegate.yaml"
    assert file.read_text() in said
    assert subprocess.run([SLUICEGATE, "check", str(file)], check=False).returncode == 0
    (tmp_path / "proxy").mkdir()
    proxy = ProxyProcess(tmp_path / "proxy", kafka_bootstrap, {"topics": yaml.safe_load(file.read_text())["topics"]})
    try:
        proxy.start()
        with RawClient(f"127.0.0.1:{proxy.broker_port(1)}") as client:
            for damage in ("good", *DAMAGES):
                records = [Rec(spoilt(damage, now_ms())), Rec(spoilt(damage, now_ms()))]
                answer = client.produce(9, [topic_data(polluted.topic, (0, batch(records)))])
                assert isinstance(answer, dict)
                (entry,) = answer["responses"][0]["partition_responses"]
                assert (damage, entry["error_code"]) == (damage, 0 if damage == "good" else INVALID_TIMESTAMP)
    finally:
        proxy.stop()
