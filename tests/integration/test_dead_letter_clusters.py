"""`dead-letters redrive` writes to another cluster only if --at-least-once is set."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from sluicegate.dead_letters import StoredRecord
from sluicegate.dead_letters.at_least_once_writer import AtLeastOnceWriter
from sluicegate.dead_letters.cluster import Cluster
from sluicegate.dead_letters.mark_topic import DEFAULT_MARKS
from sluicegate.dead_letters.marks import Marks, MarkState, mark_of
from sluicegate.dead_letters.plan import PlannedRecord
from sluicegate.dead_letters.redriving import Origin, Pace, Redrive
from tests.broker.fixtures import run_kafka
from tests.broker.kafka import Kafka
from tests.broker.proxy_process import ProxyProcess
from tests.dead_letters.desk import configuration, letters_for, new_topic, run, run_json, stored, write
from tests.oracle.kafka_java import KAFKA_NEW


@pytest.fixture(scope="module")
def other_bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the address of a second cluster."""
    yield from (kafka.bootstrap for kafka in run_kafka(Kafka(KAFKA_NEW, tmp_path_factory.mktemp("other"))))


def test_another_cluster_requires_at_least_once(kafka_bootstrap: str, other_bootstrap: str, tmp_path: Path) -> None:
    original, dead = new_topic(other_bootstrap, "orders", 3), new_topic(kafka_bootstrap, "dead")
    write(kafka_bootstrap, dead, [(b"a", b"1", letters_for(original))])
    file = configuration(tmp_path, kafka_bootstrap)

    output = run("redrive", dead, "--config", file, "--to-bootstrap", other_bootstrap, code=2)

    assert "--at-least-once" in output
    assert stored(other_bootstrap, original) == []


def test_records_are_written_to_another_cluster(kafka_bootstrap: str, other_bootstrap: str, tmp_path: Path) -> None:
    original, dead = new_topic(other_bootstrap, "orders", 3), new_topic(kafka_bootstrap, "dead")
    write(kafka_bootstrap, dead, [(b"k", f"{i}".encode(), letters_for(original, 1)) for i in range(2500)])
    options = (
        *("redrive", dead, "--config", configuration(tmp_path, kafka_bootstrap)),
        *("--to-bootstrap", other_bootstrap, "--at-least-once"),
    )

    plan = run_json(*options)
    first, again = (run_json(*options, "--apply", plan["digest"]) for _ in range(2))

    assert plan["redrive"] == {original: 2500}
    assert [each.value() for each in stored(other_bootstrap, original)] == [f"{i}".encode() for i in range(2500)]
    assert (first["written"], again["written"]) == (2500, 0)
    assert run_json(*options)["remain"] == {"already_redriven": 2500}
    marks = [mark_of(each.value()) for each in stored(kafka_bootstrap, DEFAULT_MARKS)]
    assert any(mark is not None and mark.topic == dead for mark in marks), "the marks are beside the dead letters"


def test_a_rejected_record_is_given_up_and_the_others_are_written_once(
    kafka_bootstrap: str, other_bootstrap: str
) -> None:
    original, marks = (
        new_topic(other_bootstrap, "orders", cleanup_policy="compact"),
        new_topic(kafka_bootstrap, "marks"),
    )
    source, target = (Cluster({"bootstrap.servers": each}) for each in (kafka_bootstrap, other_bootstrap))
    keys = [None if i in (3, 40, 41) else b"k" for i in range(100)]
    planned = [
        PlannedRecord(StoredRecord("dead", 0, i, 1, key, f"{i}".encode(), ()), original, 0, 1, (), False)
        for i, key in enumerate(keys)
    ]
    writer = AtLeastOnceWriter(target, source, marks)

    result = Redrive(writer, Origin("dead", "id", "plan", "me"), Pace(), lambda: 1).run(iter(planned))

    values = [each.value() for each in stored(other_bootstrap, original)]
    assert sorted(values, key=int) == [f"{i}".encode() for i, key in enumerate(keys) if key is not None]
    assert (result.written, result.given_up) == (97, {"invalid_record": 3})
    found = Marks("id", [mark_of(each.value()) for each in stored(kafka_bootstrap, marks)])
    assert [i for i in range(100) if found.state_of(0, i) is MarkState.GIVEN_UP] == [3, 40, 41]
    assert all(found.state_of(0, i) is not None for i in range(100))


def test_a_proxy_of_the_same_cluster_is_the_same_cluster(
    kafka_bootstrap: str, proxy: ProxyProcess, tmp_path: Path
) -> None:
    original, dead = new_topic(kafka_bootstrap, "orders", 3), new_topic(kafka_bootstrap, "dead")
    write(kafka_bootstrap, dead, [(b"a", b"1", letters_for(original))])
    options = ("redrive", dead, "--config", configuration(tmp_path, kafka_bootstrap), "--to-bootstrap", proxy.bootstrap)

    run_json(*options, "--apply", run_json(*options)["digest"])

    assert [each.value() for each in stored(kafka_bootstrap, original)] == [b"1"]
