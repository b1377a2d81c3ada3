"""Groups, validates and redrives the dead letters of a topic: python redrive.py BOOTSTRAP TOPIC CONFIGURATION."""

import json
import sys
from dataclasses import replace
from pathlib import Path

from sluicegate.dead_letters import (
    Cluster,
    FunctionRepair,
    LetterContent,
    RedriveJob,
    RedriveRequest,
    group_letters,
    letters_of,
)
from sluicegate.proxy.reload.letter_policies import read_policies


def with_currency(record: LetterContent) -> LetterContent | None:
    """Add a field to values in JSON. Null leaves a record out."""
    if record.value is None:
        return None
    return replace(record, value=json.dumps({"currency": "EUR", **json.loads(record.value)}).encode())


bootstrap, topic, configuration = sys.argv[1:]
cluster = Cluster({"bootstrap.servers": bootstrap})  # librdkafka's settings, with TLS and login
validator = read_policies(Path(configuration), cluster.topics()).validator()

for group in group_letters(letters_of(cluster, topic)):
    print(group.count, group.cause.error, group.cause.text)

valid = sum(validator.verdict(letter).is_valid for letter in letters_of(cluster, topic) if letter.obstacle is None)
print(valid, "valid without a repair")

repair = FunctionRepair("with_currency", "with_currency 1", with_currency)
job = RedriveJob(cluster, RedriveRequest(topic, repairs=[repair]), validator)
plan = job.plan()
print(plan.summary.count, "to redrive,", dict(plan.summary.remaining), "remain")
result = job.apply(plan.digest, actor="billing")
print(result.written, "redriven")
