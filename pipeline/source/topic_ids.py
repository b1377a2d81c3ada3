"""Stores the ids of the topics that the results of a job are about.

So a later run or job does not apply the results to a topic of the same name that was created again.
"""

import json
from collections.abc import Mapping

from sluicegate.pipeline.runs.errors import PipelineError
from sluicegate.pipeline.runs.results import Results
from sluicegate.pipeline.source.topics import Topics

_FILE = "topic_ids.json"


class TopicRecreated(PipelineError):
    """Raised if a topic was created again after results about it were written. The text has both ids and a fix."""


def topic_ids(topics: Topics) -> dict[str, str]:
    """Return the topics' ids by name, which are "" for brokers older than Kafka 2.8. Raises BrokerUnreachable."""
    with topics.cluster() as cluster:
        return cluster.topic_ids(topics.names)


def keep_topic_ids(results: Results, ids: Mapping[str, str]) -> None:
    """Write the ids that belong to the results."""
    results.write_text(_FILE, json.dumps(ids) + "\n")


def check_topic_ids(results: Results, topics: Topics, fix: str) -> None:
    """Raise TopicRecreated if a topic has another id than in the results. The error's text ends with `fix`.

    Results of earlier releases have no ids.
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
