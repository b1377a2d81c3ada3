"""The Python API for dead letters does what the example shows."""

import subprocess
import sys
from pathlib import Path

import pytest

from sluicegate.dead_letters import Cluster, ClusterUnavailable, PlanChanged, RedriveJob, RedriveRequest, letters_of
from sluicegate.proxy.reload.letter_policies import read_policies
from tests.dead_letters.desk import configuration, letters_for, new_topic, stored, write
from tests.dead_letters.letters import OWN

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "redrive.py"


def test_the_example_groups_validates_repairs_and_redrives(kafka_bootstrap: str, tmp_path: Path) -> None:
    original, dead = new_topic(kafka_bootstrap, "orders"), new_topic(kafka_bootstrap, "dead")
    values = (b'{"amount": 1}', b'{"amount": 2, "currency": "CHF"}', None, b'{"amount": "x"}')
    write(kafka_bootstrap, dead, [(b"a", value, letters_for(original)) for value in values])
    write(kafka_bootstrap, dead, [(b"a", b"no letter", OWN)])
    schema = '{"required": ["currency"], "properties": {"amount": {"type": "integer"}}}'
    rules = [{"name": "order", "value": {"required": True, "schema": {"format": "json", "text": schema}}}]
    file = configuration(tmp_path, kafka_bootstrap, topics=[{"match": original, "rules": rules}])

    done = subprocess.run(
        [sys.executable, str(EXAMPLE), kafka_bootstrap, dead, file], capture_output=True, text=True, check=True
    )

    assert done.stdout.splitlines() == [
        "4 org.apache.kafka.connect.errors.DataException Converting byte[] to Kafka Connect data failed",
        "1 valid without a repair",
        "2 to redrive, {'left_out_by_repair': 1, 'rule order': 1, 'not_a_dead_letter': 1} remain",
        "2 redriven",
    ]
    assert [each.value() for each in stored(kafka_bootstrap, original)] == [
        b'{"currency": "EUR", "amount": 1}',
        b'{"currency": "CHF", "amount": 2}',
    ]


def test_a_changed_plan_and_a_missing_topic_are_errors(kafka_bootstrap: str, tmp_path: Path) -> None:
    original, dead = new_topic(kafka_bootstrap, "orders"), new_topic(kafka_bootstrap, "dead")
    write(kafka_bootstrap, dead, [(b"a", b"1", letters_for(original))])
    cluster = Cluster({"bootstrap.servers": kafka_bootstrap})
    validator = read_policies(Path(configuration(tmp_path, kafka_bootstrap)), cluster.topics()).validator()
    job = RedriveJob(cluster, RedriveRequest(dead), validator)
    plan = job.plan()

    write(kafka_bootstrap, dead, [(b"a", b"2", letters_for(original))])
    with pytest.raises(PlanChanged) as changed:
        job.apply(plan.digest, "me")

    assert changed.value.digest == job.plan().digest
    assert stored(kafka_bootstrap, original) == []
    assert job.apply(changed.value.digest, "me").written == 2
    with pytest.raises(ClusterUnavailable, match="there is no topic"):
        list(letters_of(cluster, "no-such-topic"))
