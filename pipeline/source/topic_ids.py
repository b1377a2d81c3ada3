"""Stores the ids of the topics that a job's results are about.

A later run or job therefore does not apply the results to a topic that was created again with the same name.
"""

import json
from collections.abc import Mapping

from sluicegate.pipeline.runs.errors import PipelineError
from sluicegate.pipeline.runs.results import Results
from sluicegate.pipeline.source.topics import Topics

_FILE = "topic_ids.json"


class TopicRecreated(PipelineError):
    """Raised if a topic was created again after results about it were written. The message gives both ids and a fix."""


def topic_ids(topics: Topics) -> dict[str, str]:
    """Return the topics' ids by name. Raises BrokerUnreachable.

    Brokers older than Kafka 2.8 do not support ids; for them the id is "".
    """
    with topics.cluster() as cluster:
        return cluster.topic_ids(topics.names)


def keep_topic_ids(results: Results, ids: Mapping[str, str]) -> None:
    """Write the topic ids that belong to the results."""
    results.write_text(_FILE, json.dumps(ids) + "\n")


def check_topic_ids(results: Results, topics: Topics, fix: str) -> None:
    """Raise TopicRecreated if a topic's id differs from the id in the results. The error's message ends with `fix`.

    Results of earlier releases contain no ids.
    """
    if not results.has(_FILE):
        return
    kept: dict[str, str] = json.loads(results.read_text(_FILE))
    now = topic_ids(topics)
    others = [name for name in topics.names if kept.get(name) and now.get(name) and kept[name] != now[name]]
    if others:
        each = "; ".join(f"{name} (its id was {kept[name]}, and is {now[name]})" for name in others)
        raise TopicRecreated(
            f"{results.path('')} is about topics that have since been deleted and recreated: {each}. {fix}"
        )
