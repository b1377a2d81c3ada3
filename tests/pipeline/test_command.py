"""What the command says when it cannot begin."""

from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.broker.ports import free_ports
from tests.integration.secure_brokers import TOPIC, Guarded, login
from tests.pipeline.commands import run, summary


def test_a_topic_that_is_not_there(kafka_bootstrap: str, tmp_path: Path) -> None:
    said = run("profile", "--bootstrap", kafka_bootstrap, "--topic", "nosuch", "--out", str(tmp_path), status=1)

    assert said == "sluicegate-spark: there is no topic 'nosuch' on this cluster\n"


def test_a_broker_that_is_not_there(tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_ports(1)}"

    said = run("profile", "--bootstrap", address, "--topic", "t", "--out", str(tmp_path), status=1)

    assert said.startswith(f"sluicegate-spark: given up after 5 s: {address}: ")
    assert "Connection refused" in said
    assert len(said.splitlines()) == 1


def test_a_login_from_a_file(guarded: Guarded, tmp_path: Path) -> None:
    settings = login("alice", "secret", "SCRAM-SHA-512") | {"ssl.ca.location": str(guarded.authority.file)}
    producer = Producer({"bootstrap.servers": guarded.kafka.bootstrap, **settings})
    for _ in range(10):
        producer.produce(TOPIC, "v")
    assert producer.flush(30) == 0
    file = tmp_path / "client.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    about = ("profile", "--bootstrap", guarded.kafka.bootstrap, "--topic", TOPIC, "--config", str(file))

    run(*about, "--out", str(tmp_path / "out"))

    assert summary(tmp_path / "out")["topics"][TOPIC]["records"] >= 10
    file.write_text(file.read_text().replace("secret", "wrong"))
    said = run(*about, "--out", str(tmp_path / "out"), status=1)
    assert "redential" in said
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("profile", "--config", "FILE"),
            "FILE: unknown client setting 'sasl.mechansm'; did you mean 'sasl.mech",
        ),
        (("profile", "--bootstrap", "nowhere"), "kafka.bootstrap.servers: expected host:port, found 'nowhere'"),
        (("extract", "--extractor", "skp"), "there is no extractor 'skp'; there are fail, skip, previous, wallclock"),
        (("repair", "--keep", "nanos"), "there is no damage nanos; there are seconds, microseconds, nanoseconds"),
        (("verify",), "verify compares two topics: give --topic twice"),
        (("repair", "--topic", "u", "--to", "clean"), "several topics cannot all be written to clean; have {topic} in"),
        (("repair", "--to", "{topic}"), "t cannot be repaired into t, which is read itself"),
    ],
)
def test_words_that_cannot_be(arguments: tuple[str, ...], said: str, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("sasl.mechansm=PLAIN\n")
    given = [argument.replace("FILE", str(file)) for argument in arguments]
    if "--bootstrap" not in given:
        given += ["--bootstrap", "127.0.0.1:9"]

    told = run(*given, "--topic", "t", "--out", str(tmp_path / "out"), status=1)

    assert told.startswith("sluicegate-spark: " + said.replace("FILE", str(file)))
    assert not (tmp_path / "out").exists()
