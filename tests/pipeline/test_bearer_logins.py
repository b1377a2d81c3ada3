"""Jobs log in to a broker that requires bearer tokens, and Spark does not write or show any secret of the login."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.broker.eventually import eventually
from tests.broker.kafka import Kafka
from tests.pipeline import java_options
from tests.pipeline.bearers import CLIENT, SECRET, ScriptedTokenEndpoint, bearer_broker, token_endpoint, unsecured_token
from tests.pipeline.commands import run, summary
from tests.pipeline.polluted import UNLIMITED

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.long,
]
TOPIC, EVENTS = "orders", "events"
NOW = time.time_ns() // 1_000_000
PREFIX = "sasl.oauthbearer."


@pytest.fixture(scope="module")
def endpoint() -> Iterator[ScriptedTokenEndpoint]:
    with token_endpoint() as found:
        yield found


@pytest.fixture(scope="module")
def broker(endpoint: ScriptedTokenEndpoint, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """Yield a broker with a topic of 20 valid records and 5 in nanoseconds, which librdkafka wrote with its login."""
    kafka = bearer_broker(tmp_path_factory.mktemp("bearers"))
    try:
        kafka.start()
        theirs = {"bootstrap.servers": kafka.bootstrap, **login_by_secret(endpoint)}
        producer = Producer(theirs)
        new = [NewTopic(name, 1, 1, config=UNLIMITED) for name in (TOPIC, EVENTS)]
        admin = AdminClient(theirs)
        for made in admin.create_topics(new).values():
            made.result(60)
        for i in range(25):
            producer.produce(TOPIC, b"v", b"k", timestamp=(NOW - 1000 + i) * (1_000_000 if i % 5 == 4 else 1))
        producer.produce(EVENTS, b'{"version": 1}')
        assert producer.flush(60) == 0
        yield kafka
    finally:
        kafka.stop()


def login_by_secret(endpoint: ScriptedTokenEndpoint) -> dict[str, str]:
    return {
        "security.protocol": "sasl_plaintext",
        "sasl.mechanism": "OAUTHBEARER",
        f"{PREFIX}method": "oidc",
        f"{PREFIX}token.endpoint.url": endpoint.url,
        f"{PREFIX}client.id": CLIENT,
        f"{PREFIX}client.secret": SECRET,
    }


def login_by_file(file: Path) -> dict[str, str]:
    return {
        "security.protocol": "sasl_plaintext",
        "sasl.mechanism": "OAUTHBEARER",
        f"{PREFIX}token.endpoint.url": file.as_uri(),
    }


def properties_file(folder: Path, settings: dict[str, str]) -> str:
    file = folder / "client.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    return str(file)


def test_repair_logs_in_with_client_secret_from_file(
    broker: Kafka, endpoint: ScriptedTokenEndpoint, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text(SECRET)
    login = login_by_secret(endpoint) | {f"{PREFIX}client.secret": f"${{directory:{tmp_path}:secret}}"}
    about = ("--bootstrap", broker.bootstrap, "--topic", TOPIC, "--config", properties_file(tmp_path, login))

    run("repair", *about, "--apply", "--out", str(tmp_path / "out"))

    assert summary(tmp_path / "out")["topics"][TOPIC]["repaired"] == {"nanoseconds": 5}
    assert _count(broker, endpoint, f"{TOPIC}-clean") == 25


def _count(broker: Kafka, endpoint: ScriptedTokenEndpoint, topic: str) -> int:
    """Return the number of records that a consumer with librdkafka's own login reads."""
    client = {"bootstrap.servers": broker.bootstrap, "group.id": "g", "auto.offset.reset": "earliest"}
    consumer = Consumer({**client, **login_by_secret(endpoint), "isolation.level": "read_committed"})
    try:
        consumer.subscribe([topic])
        found: list[Any] = []
        eventually(lambda: found.extend(consumer.consume(100, 0.5)) or len(found) >= 25, what="25 records")
        return len([message for message in found if message.error() is None])
    finally:
        consumer.close()


def test_profile_logs_in_with_token_from_file(broker: Kafka, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(unsecured_token())
    about = ("--bootstrap", broker.bootstrap, "--topic", TOPIC, "--out", str(tmp_path / "out"))

    run("profile", *about, "--config", properties_file(tmp_path, login_by_file(tmp_path / "token")))

    assert summary(tmp_path / "out")["topics"][TOPIC]["damage"]["nanoseconds"] == 5


PROGRAM = """
import json, sys, time, urllib.request
from pathlib import Path
from pyspark.sql import SparkSession
from sluicegate.pipeline import TopicSource, plan_repair, profile, verify
from sluicegate.pipeline.runs.results import Results
from sluicegate.pipeline.source.topics import Topics
from sluicegate.pipeline.jobs.violations import job
from sluicegate.pipeline.jobs.violations.events import events_from_topic

folder, bootstrap, settings = Path(sys.argv[1]), sys.argv[2], json.loads(Path(sys.argv[3]).read_text())
(folder / "log").mkdir()
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.eventLog.enabled", "true").config("spark.eventLog.dir", (folder / "log").as_uri())
    .config("spark.eventLog.compress", "false").config("spark.ui.enabled", "true").config("spark.ui.port", "0")
    .config("spark.sql.shuffle.partitions", "2")
    .config("spark.sql.streaming.stateStore.providerClass",
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("INFO")
profile(spark, bootstrap, "orders", folder / "profile", settings=settings)
plan_repair(spark, bootstrap, "orders", folder / "repair", settings=settings)
verify(spark, bootstrap, "orders", "events", folder / "verify", settings=settings)
results = Results(spark, str(folder / "violations"))
results.make()
job.run(events_from_topic(spark, Topics(bootstrap, ("events",), settings), 100), results, "5 minutes", 600,
        follow=False, every_seconds=1, after_batch=lambda totals: None)
spark.dataSource.register(TopicSource)
own = spark.read.format("sluicegate").options(**Topics(bootstrap, ("orders",), settings).options).load()
assert own.count() == 25
own.explain("extended")
web = spark.sparkContext.uiWebUrl
application = f"{web}/api/v1/applications/{spark.sparkContext.applicationId}"
shown = [f"{application}/{page}" for page in ("sql?details=true&planDescription=true&length=1000", "jobs", "stages",
         "environment", "allexecutors")]
shown += [f"{web}/{page}/" for page in ("jobs", "stages", "environment", "executors", "SQL", "StreamingQuery")]
for number in range(len(json.load(urllib.request.urlopen(shown[0])))):
    shown.append(f"{web}/SQL/execution/?id={number}")
for number, url in enumerate(shown):
    (folder / f"shown-{number}.txt").write_bytes(urllib.request.urlopen(url).read())
print(len(shown), "pages")
spark.stop()
"""


# With SLUICEGATE_THOROUGH, both cases run.
KEPT_AS = ["the value itself", "a reference"] if os.environ.get("SLUICEGATE_THOROUGH") else ["the value itself"]


@pytest.mark.parametrize("kept_as", KEPT_AS)
def test_no_secret_is_in_event_logs_plans_checkpoints_pages_or_output(
    kept_as: str, broker: Kafka, endpoint: ScriptedTokenEndpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = login_by_secret(endpoint)
    if kept_as == "a reference":
        monkeypatch.setenv("PLANTED_ELSEWHERE", SECRET)
        settings[f"{PREFIX}client.secret"] = "${env:PLANTED_ELSEWHERE}"
    program, held = tmp_path / "program.py", tmp_path / "settings.json"
    program.write_text(PROGRAM)
    held.write_text(json.dumps(settings))
    out = tmp_path / "out"
    out.mkdir()

    report = subprocess.run(
        [sys.executable, str(program), str(out), broker.bootstrap, str(held)],
        env=os.environ | java_options.ENVIRONMENT | {"PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )

    assert report.returncode == 0, report.stdout[-3000:] + report.stderr[-3000:]
    (out / "printed.txt").write_text(report.stdout + report.stderr)
    files = [file for file in out.rglob("*") if file.is_file()]
    assert len(list(out.glob("shown-*.txt"))) > 15
    assert any("spark.eventLog.enabled" in file.read_text() for file in (out / "log").rglob("*") if file.is_file())
    secrets = (SECRET, *endpoint.given)
    assert [str(file) for file in files if any(_holds(file, secret) for secret in secrets)] == []


def _holds(file: Path, secret: str) -> bool:
    return secret.encode() in file.read_bytes() or json.dumps(secret)[1:-1].encode() in file.read_bytes()
