"""If the command cannot start, it reports the reason in one line."""

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from sluicegate.pipeline import cli
from sluicegate.pipeline.commands import running
from sluicegate.pipeline.jobs.advise.job import NoProfile, read_profile
from sluicegate.pipeline.jobs.extract.parquet_files import OutputFolderError
from sluicegate.pipeline.jobs.profile import report
from sluicegate.pipeline.kafka.cluster import TopicTrouble
from sluicegate.pipeline.report.wording import moment_and_ms
from sluicegate.pipeline.runs.results import BadFolder, Results
from sluicegate.pipeline.source.tasks import map_in_tasks
from sluicegate.pipeline.source.topics import Topics
from tests.broker.ports import free_ports
from tests.integration.secure_brokers import TOPIC, GuardedBroker, client_login
from tests.integration.topics import create_topic
from tests.pipeline.commands import COMMAND, ENVIRONMENT, run, run_in_new_process, summary
from tests.pipeline.polluted import UNLIMITED

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def test_reports_an_unknown_topic_in_one_line(kafka_bootstrap: str, tmp_path: Path) -> None:
    output = run("profile", "--bootstrap", kafka_bootstrap, "--topic", "nosuch", "--out", str(tmp_path), status=1)

    assert output == "sluicegate-spark: there is no topic 'nosuch' on this cluster\n"


@pytest.mark.long
def test_reports_an_unreachable_broker_in_one_line(tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_ports(1)}"

    output = run("profile", "--bootstrap", address, "--topic", "t", "--out", str(tmp_path), status=1)

    assert output.startswith(f"sluicegate-spark: given up after 5 s: {address}: ")
    assert "Connection refused" in output
    assert len(output.splitlines()) == 1


@pytest.mark.long
def test_profiles_with_the_login_of_a_settings_file(guarded: GuardedBroker, tmp_path: Path) -> None:
    settings = client_login("alice", "secret", "SCRAM-SHA-512") | {"ssl.ca.location": str(guarded.authority.file)}
    producer = Producer({"bootstrap.servers": guarded.kafka.bootstrap, **settings})
    for _ in range(10):
        producer.produce(TOPIC, "v")
    assert producer.flush(30) == 0
    file = tmp_path / "client.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    about = ("profile", "--bootstrap", guarded.kafka.bootstrap, "--topic", TOPIC, "--config", str(file))

    run_in_new_process(*about, "--out", str(tmp_path / "out"))

    assert summary(tmp_path / "out")["topics"][TOPIC]["records"] >= 10
    file.write_text(file.read_text().replace("secret", "wrong"))
    output = run(*about, "--out", str(tmp_path / "out"), status=1)
    assert "redential" in output
    assert len(output.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        (
            ("profile", "--config", "FILE"),
            "FILE: unknown client setting 'sasl.mechansm'; did you mean 'sasl.mech",
        ),
        (("profile", "--bootstrap", "nowhere"), "kafka.bootstrap.servers: expected host:port, found 'nowhere'"),
        (("extract", "--extractor", "skp"), "unknown extractor 'skp'; expected one of fail, skip, previous, wallclock"),
        (
            ("repair", "--keep", "nanos"),
            "unknown kind of timestamp nanos; expected one of seconds, microseconds, nanoseconds",
        ),
        (("verify",), "verify compares two topics: use --topic twice"),
        (
            ("repair", "--topic", "u", "--to", "clean"),
            "several topics cannot be written to one topic clean; use",
        ),
        (("repair", "--to", "a b"), "t cannot be repaired into a b: a topic's name has 1 to 249 characters of a-z"),
        (
            ("repair", "--to", "n" * 250),
            f"t cannot be repaired into {'n' * 250}: a topic's name has 1 to 249 characters of",
        ),
        (("repair", "--to", "{topic}"), "t cannot be repaired into t, which is a source itself"),
    ],
)
def test_rejects_invalid_option_values(arguments: tuple[str, ...], output: str, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("sasl.mechansm=PLAIN\n")
    given = [argument.replace("FILE", str(file)) for argument in arguments]
    if "--bootstrap" not in given:
        given += ["--bootstrap", "127.0.0.1:9"]

    message = run(*given, "--topic", "t", "--out", str(tmp_path / "out"), status=1)

    assert message.startswith("sluicegate-spark: " + output.replace("FILE", str(file)))
    assert not (tmp_path / "out").exists()


def test_invalid_policies_are_reported_before_output_folder_is_created(tmp_path: Path) -> None:
    file = tmp_path / "policies.yaml"
    file.write_text("upstream: {}\n")
    about = ("--bootstrap", "127.0.0.1:9", "--topic", "t", "--out", str(tmp_path / "out"), "--policies", str(file))

    output = run("audit", *about, status=1)

    assert output.startswith("sluicegate-spark: ")
    assert "upstream.bootstrap" in output
    assert not (tmp_path / "out").exists()


def test_rejects_an_invalid_master_in_one_line(kafka_bootstrap: str, tmp_path: Path) -> None:
    topic = create_topic(kafka_bootstrap, UNLIMITED, 1)
    about = ("profile", "--bootstrap", kafka_bootstrap, "--topic", topic, "--out", str(tmp_path / "out"))

    message = subprocess.run([COMMAND, *about, "--master", "locall"], capture_output=True, text=True, check=False)

    assert message.returncode == 1
    assert message.stderr.startswith("sluicegate-spark: --master locall is invalid: expected local, local[N], local[*]")
    assert len(message.stderr.splitlines()) == 1


@pytest.mark.long
def test_uses_the_master_passed_to_spark_submit(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "from sluicegate.pipeline.commands.spark import session\n"
        "print('runs on', session('none', None).sparkContext.master)\n"
    )
    submit = Path(sys.executable).with_name("spark-submit")
    command = [submit, "--master", "local[1]", "--conf", "spark.ui.enabled=false", program]
    environment = {**ENVIRONMENT, "PYSPARK_PYTHON": sys.executable}

    message = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, env=environment)

    assert "runs on local[1]" in message.stdout.splitlines(), message.stderr


def test_rejects_a_file_or_unknown_scheme_as_results_folder(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")

    with pytest.raises(BadFolder, match=f"{file} is a file; --out must be a folder"):
        Results(spark, str(file))
    with pytest.raises(BadFolder, match='nosuch://x/y cannot be used: No FileSystem for scheme "nosuch"'):
        Results(spark, "nosuch://x/y")
    with pytest.raises(BadFolder, match=f"{file}/out cannot be "):
        Results(spark, f"{file}/out").make()


def test_does_not_create_a_mistyped_profile_folder(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(NoProfile, match="has no profile"):
        read_profile(spark, Topics("127.0.0.1:9", ("t",)), str(tmp_path / "mistyped"))

    assert not (tmp_path / "mistyped").exists()


def test_records_after_an_open_transaction_are_reported(kafka_bootstrap: str) -> None:
    topic = create_topic(kafka_bootstrap, UNLIMITED, 1)
    open_one = Producer({"bootstrap.servers": kafka_bootstrap, "transactional.id": topic})
    open_one.init_transactions(30)
    open_one.begin_transaction()
    other = Producer({"bootstrap.servers": kafka_bootstrap})
    for producer, count in ((other, 3), (open_one, 2), (other, 4)):
        for _ in range(count):
            producer.produce(topic, "v")
        assert producer.flush(30) == 0

    held = Topics(kafka_bootstrap, (topic,)).open_transactions()

    open_one.abort_transaction(30)
    assert held == [
        f"{topic}-0: offsets 3 to 8 are after the start of an open transaction, and are skipped until that transaction "
        f"ends"
    ]


def test_an_invalid_topic_is_reported_with_the_name_of_the_brokers_error(kafka_bootstrap: str) -> None:
    cluster = Topics(kafka_bootstrap, ("no/topic",)).cluster()

    with pytest.raises(TopicTrouble, match=r"the broker returned (TOPIC_EXCEPTION|INVALID_TOPIC_EXCEPTION) \(17\)"):
        cluster.partitions(["no/topic"])
    cluster.close()


def test_report_limits_producers_and_formats_timestamps() -> None:
    damaged = [{"producer_id": i, "codec": "none", "damage": {"zero": 9}, "records": 9, "bytes": 1} for i in range(40)]

    plot, times = report._by_producer(damaged), [moment_and_ms(at) for at in (0, 2**63 - 1)]

    assert "the 12 with most of 40" in plot.svg
    assert times == ["1970-01-01 00:00:00 UTC (0)", f"no date ({2**63 - 1})"]


def test_task_error_is_reported_in_one_line(spark: SparkSession) -> None:
    def raise_folder_error(item: int) -> list[pa.RecordBatch]:
        raise OutputFolderError(f"s3a://b/{item} does not take a file")

    with pytest.raises(PySparkException) as raised:
        map_in_tasks(spark, [7], lambda _: 1, raise_folder_error, "id bigint").collect()

    assert running.message_of_failed_task(str(raised.value)) == "s3a://b/7 does not take a file"


def test_old_command_name_is_rejected_with_the_new_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["sluicegate-spark", "judge", "--topic", "t"])

    with pytest.raises(SystemExit, match="2"):
        cli.main()

    assert capsys.readouterr().err == "sluicegate-spark: unknown command 'judge': use 'audit'\n"
