"""A proxy with the advised limits rejects all invalid timestamps, and nothing else."""

import subprocess
import time
from pathlib import Path

import pytest
import yaml
from pyspark.sql import SparkSession

from sluicegate.pipeline.jobs.advise.job import advice_of, make_profile
from sluicegate.pipeline.runs.results import Results
from sluicegate.pipeline.source.topics import Topics
from sluicegate.protocol.integers import LONG_MAX
from tests.broker.proxy_process import COMMAND as SLUICEGATE
from tests.broker.proxy_process import ProxyProcess
from tests.config.reading import SMALLEST
from tests.integration.topics import create_topic
from tests.pipeline.commands import run, summary
from tests.pipeline.polluted import DAMAGES, HOUR, UNLIMITED, Polluter, wrong_timestamp
from tests.wire.batches import Rec, batch
from tests.wire.raw_client import RawClient, topic_data

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.long,
]
INVALID_TIMESTAMP = 32


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def test_the_advised_limits_reject_exactly_the_records_with_invalid_timestamps(
    kafka_bootstrap: str, tmp_path: Path
) -> None:

    polluted = Polluter(kafka_bootstrap, now_ms(), partitions=1).write(batches=200, span_ms=HOUR)

    policies = tmp_path / "policies.yaml"
    policies.write_text(
        f"{SMALLEST}topics: [{{match: '*', message.timestamp.after.max.ms: 1h, enforce: {{percent: 10}}, "
        "owner: {team: payments}}]"
    )

    output = run(
        *("advise", "--bootstrap", kafka_bootstrap, "--topic", polluted.topic, "--out", str(tmp_path / "advice")),
        *("--policies", str(policies)),
    )

    found = summary(tmp_path / "advice")["topics"][polluted.topic]
    assert found["rejected_behind"] + found["rejected_ahead"] == sum(polluted.counts.values())
    assert found["valid_rejected"] == 0
    assert found["kafka_4_rejected"] == sum(polluted.counts[d] for d in ("microseconds", "nanoseconds", "future"))
    assert found["owner"] == "payments"
    full = found["full_enforcement"]
    assert (full["enforced_for"], full["after_max_ms"]) == ("10 % of clients", HOUR)
    assert full["rejected_at_least"] == full["rejected_at_most"] == found["kafka_4_rejected"]
    assert f"would have rejected {found['kafka_4_rejected']:,} of" in " ".join(output.split())
    assert "Owner: payments." in (tmp_path / "advice" / "report.html").read_text()
    file = tmp_path / "advice" / "sluicegate.yaml"
    assert file.read_text() in output
    assert subprocess.run([SLUICEGATE, "check", str(file)], check=False).returncode == 0
    (tmp_path / "proxy").mkdir()
    proxy = ProxyProcess(tmp_path / "proxy", kafka_bootstrap, {"topics": yaml.safe_load(file.read_text())["topics"]})
    try:
        proxy.start()
        with RawClient(f"127.0.0.1:{proxy.broker_port(1)}") as client:
            for damage in ("good", *DAMAGES):
                records = [Rec(wrong_timestamp(damage, now_ms())), Rec(wrong_timestamp(damage, now_ms()))]
                response = client.produce(9, [topic_data(polluted.topic, (0, batch(records)))])
                assert isinstance(response, dict)
                (entry,) = response["responses"][0]["partition_responses"]
                assert (damage, entry["error_code"]) == (damage, 0 if damage == "good" else INVALID_TIMESTAMP)
    finally:
        proxy.stop()


def test_advises_no_limit_from_missing_timestamps_or_log_append_times(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path
) -> None:
    """In the proxy, too, -1 passes every limit, and with LogAppendTime the producers' timestamps do not count."""
    stamped = create_topic(kafka_bootstrap, UNLIMITED | {"message.timestamp.type": "LogAppendTime"}, 1)
    untimed = create_topic(kafka_bootstrap, UNLIMITED, 1)
    times = [-1 if i % 5 == 3 else now_ms() - HOUR + i * 1000 for i in range(60)]
    with RawClient(kafka_bootstrap) as client:
        for topic, written in ((stamped, [time * 1_000_000 for time in times]), (untimed, [*times, -5])):
            client.produce(9, [topic_data(topic, (0, batch([Rec(time) for time in written])))])
    topics = Topics(kafka_bootstrap, (stamped, untimed))

    made = make_profile(spark, topics, Results(spark, str(tmp_path)), now_ms(), HOUR)
    found = {each.topic: each for each in advice_of(topics, made, 0)}

    assert (found[stamped].broker_sets_times, found[stamped].behind.bound_ms) == (True, LONG_MAX)
    assert (found[untimed].behind.bound_ms, found[untimed].behind.rejected) == (60_000, 1)
